"""Rank functions of the chapter on one training step: who holds what, when, and who made it equal."""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device


def with_gloo(
    rank: int, world_size: int, X, y, steps: int, lr: float, average: bool = True
) -> torch.Tensor:
    """The five moves by hand on a linear model: X (samples, features), y (samples,) float64 arrays.

    average: False leaves move 4 out. Returns this rank's weights (features,).
    """
    X, y = torch.tensor(X, device=device()), torch.tensor(y, device=device())
    X, y = X[rank::world_size], y[rank::world_size]  # 1. this rank's share of the batch
    w = torch.zeros(X.shape[1], dtype=X.dtype, device=device())  # 2. a full replica
    for _ in range(steps):
        gradient = 2 / len(y) * X.T @ (X @ w - y)  # 3. forward and backward, alone
        if average:
            dist.all_reduce(gradient)  # 4. sum over ranks ...
            gradient /= world_size  # ... and average
        w -= lr * gradient  # 5. the same update everywhere
    return w.cpu()


def with_ddp(rank: int, world_size: int, X, y, steps: int, lr: float) -> torch.Tensor:
    """The same with DistributedDataParallel, autograd and torch's SGD."""
    X, y = torch.tensor(X, device=device()), torch.tensor(y, device=device())
    model = torch.nn.Linear(X.shape[1], 1, bias=False, dtype=X.dtype, device=device())
    torch.nn.init.zeros_(model.weight)
    ddp, update = (
        DistributedDataParallel(model),
        torch.optim.SGD(model.parameters(), lr=lr),
    )
    for _ in range(steps):
        update.zero_grad()
        error = ddp(X[rank::world_size]).squeeze(1) - y[rank::world_size]
        error.pow(2).mean().backward()
        update.step()
    return model.weight.detach().flatten().cpu()


def stored_bytes(rank: int, world_size: int, sharded: bool) -> dict[str, int]:
    """Bytes of parameters, gradients and Adam's two moments that this rank stores after one float32 step.

    sharded: True wraps in FSDP2's fully_shard (ZeRO-3), False in DDP. Adam's step counters are left out.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Linear(64, 64, bias=False, device=device())
    if sharded:
        fully_shard(model, mesh=init_device_mesh(device().type, (world_size,)))
        wrapped = model
    else:
        # By default DDP keeps buckets as large as the gradients beside them; as views they cost nothing.
        wrapped = DistributedDataParallel(model, gradient_as_bucket_view=True)
    update = torch.optim.Adam(model.parameters())
    wrapped(torch.ones(2, 64, device=device())).sum().backward()
    update.step()
    own = [getattr(p, "to_local", lambda p=p: p)() for p in model.parameters()]
    gradients = [
        getattr(p.grad, "to_local", lambda p=p: p.grad)() for p in model.parameters()
    ]
    moments = [
        m for s in update.state.values() for name, m in s.items() if name != "step"
    ]
    moments = [getattr(m, "to_local", lambda m=m: m)() for m in moments]
    return {
        name: sum(t.numel() * t.element_size() for t in tensors)
        for name, tensors in (
            ("parameters", own),
            ("gradients", gradients),
            ("moments", moments),
        )
    }


def rows_seen(rank: int, world_size: int, batch: int, split: bool) -> int:
    """How many samples a rank's model sees when a batch is handed to DDP whole, or cut by the caller."""
    seen = []
    model = torch.nn.Linear(2, 1).to(device())
    model.register_forward_hook(
        lambda module, inputs, output: seen.append(len(inputs[0]))
    )
    samples = torch.ones(batch, 2, device=device())
    DistributedDataParallel(model)(samples[rank::world_size] if split else samples)
    return sum(seen)


def losses_of_one_share(
    rank: int, world_size: int, coupled: bool
) -> tuple[list[int], float, float]:
    """The collectives of DDP's first three forwards, this rank's loss inside the group, and the loss of the
    same share in a process of its own.

    coupled: a contrastive loss, which takes its negatives from every rank's features.
    """
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4).to(device())
    share = torch.randn(2, 4, generator=torch.Generator().manual_seed(rank)).to(
        device()
    )

    def loss(features, negatives):
        return (
            (features @ negatives.T).logsumexp(1).mean()
            if coupled
            else features.pow(2).mean()
        )

    alone = model(share)
    ddp, counts = DistributedDataParallel(model), []
    for _ in range(3):
        with CommDebugMode() as counter:
            features = ddp(share)
        counts.append(counter.get_total_counts())
        features.sum().backward()
    others = [torch.empty_like(features) for _ in range(world_size)]
    dist.all_gather(others, features.detach())
    together = loss(features, torch.cat(others))
    return counts, together.item(), loss(alone, alone.detach()).item()


def gradient_and_own(
    rank: int, world_size: int, in_no_sync: bool
) -> tuple[list[float], list[float], int]:
    """The gradient under DDP, plain autograd's gradient of the same share, and the AllReduces started.

    AllReduces are counted by DDP's own communication hook.
    """
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    torch.manual_seed(0)
    model = torch.nn.Linear(4, 1, bias=False).to(device())
    share = torch.randint(-4, 5, (2, 4), generator=torch.Generator().manual_seed(rank))
    share = share.float().to(device())
    (own,) = torch.autograd.grad(model(share).pow(2).sum(), model.weight)
    sent, ddp = [], DistributedDataParallel(model)

    def hook(state, bucket):
        sent.append(bucket.index())
        return allreduce_hook(None, bucket)

    ddp.register_comm_hook(None, hook)
    with ddp.no_sync() if in_no_sync else contextlib.nullcontext():
        ddp(share).pow(2).sum().backward()
    return model.weight.grad.flatten().tolist(), own.flatten().tolist(), len(sent)


def average_of_noise(
    rank: int, world_size: int, elements: int, own_order: bool
) -> torch.Tensor:
    """The average of every rank's float32 noise, by AllReduce or summed by each rank in its own order."""
    noise = torch.randn(elements, generator=torch.Generator().manual_seed(rank)).to(
        device()
    )
    if not own_order:
        dist.all_reduce(noise)
        return (noise / world_size).cpu()
    gathered = [torch.empty_like(noise) for _ in range(world_size)]
    dist.all_gather(gathered, noise)
    total = torch.zeros_like(noise)
    for step in range(world_size):
        total += gathered[(rank + step) % world_size]
    return (total / world_size).cpu()

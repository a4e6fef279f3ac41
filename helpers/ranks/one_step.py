"""Rank functions of the chapter on one training step: who holds what, when, and who made it equal."""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.tensor.debug import CommDebugMode
from torch.nn.parallel import DistributedDataParallel

from helpers.rank_process import device


def _flat(tensors) -> torch.Tensor:
    return torch.cat([t.detach().flatten() for t in tensors]).cpu().clone()


def moments(
    rank: int, world_size: int, steps: int = 3, init_sync: bool = True
) -> dict[str, torch.Tensor]:
    """A rank's parameters, flat, at each moment of a short run; every rank starts from a seed of its own.

    init_sync: False keeps DDP's constructor from sending rank 0's parameters to all ranks.
    The last entry, "buffers", is BatchNorm's running mean after the last forward.
    """
    torch.manual_seed(rank)
    layers = (
        torch.nn.Linear(8, 16),
        torch.nn.BatchNorm1d(16),
        torch.nn.ReLU(),
        torch.nn.Linear(16, 1),
    )
    model = torch.nn.Sequential(*layers).to(device())
    held = {"before DDP": _flat(model.parameters())}
    ddp = DistributedDataParallel(model, init_sync=init_sync)
    held["after DDP(model)"] = _flat(model.parameters())
    update = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        update.zero_grad()
        ddp(torch.randn(4, 8).to(device())).pow(2).mean().backward()
        update.step()
        held[f"after step {step + 1}"] = _flat(model.parameters())
    held["buffers"] = model[1].running_mean.cpu()
    return held


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
        wrapped = DistributedDataParallel(model)
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


def collectives_in_forward(rank: int, world_size: int, coupled: bool) -> int:
    """Collectives between the start of a forward and its loss; `coupled` compares samples across ranks."""
    model = DistributedDataParallel(torch.nn.Linear(4, 4).to(device()))
    inputs = torch.ones(2, 4, device=device()) * (rank + 1)
    with CommDebugMode() as counter:
        features = model(inputs)
        if coupled:  # a contrastive loss needs the other ranks' features as negatives
            others = [torch.empty_like(features) for _ in range(world_size)]
            dist.all_gather(others, features.detach())
            (features @ torch.cat(others).T).logsumexp(1).mean()
        else:
            features.pow(2).mean()
    return counter.get_total_counts()


def buckets_sent(rank: int, world_size: int, in_no_sync: bool) -> int:
    """AllReduces that one backward starts, counted by DDP's own communication hook."""
    from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

    sent, model = [], DistributedDataParallel(torch.nn.Linear(4, 1).to(device()))

    def hook(state, bucket):
        sent.append(bucket.index())
        return allreduce_hook(None, bucket)

    model.register_comm_hook(None, hook)
    with model.no_sync() if in_no_sync else contextlib.nullcontext():
        model(torch.ones(2, 4, device=device())).sum().backward()
    return len(sent)


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

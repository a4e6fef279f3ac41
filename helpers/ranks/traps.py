"""Rank functions of the museum of traps: code that runs green and is wrong, and its cure beside it."""

import contextlib

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from helpers.counting.volume import Volume
from helpers.guards import assert_gradients_synchronised, assert_shards_differ
from helpers.processes.rank import device

# Which halves of a micro-batch stand inside no_sync().
INSIDE = {
    "neither": (False, False),
    "both": (True, True),
    "forward": (True, False),
    "backward": (False, True),
}


def accumulate(
    rank: int, world_size: int, inside: list[str], guard: bool = False
) -> tuple[float, int]:
    """Micro-batches whose gradient on rank r is r + 1, each with some half inside no_sync().

    inside: for each micro-batch a key of INSIDE. guard: assert at the end that gradients are synchronised.
    Returns this rank's accumulated gradient, and how many AllReduces DDP made.
    """
    model = nn.Linear(1, 1, bias=False, device=device())
    ddp = DistributedDataParallel(model)
    reduced = []

    def hook(state, bucket):
        reduced.append(bucket.index())
        buffer = bucket.buffer().div_(world_size)
        future = dist.all_reduce(buffer, async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    ddp.register_comm_hook(None, hook)
    numbers = torch.full((1, 1), rank + 1.0, device=device())
    for halves in inside:
        forward, backward = (
            ddp.no_sync() if there else contextlib.nullcontext()
            for there in INSIDE[halves]
        )
        with forward:
            loss = ddp(numbers).sum()
        with backward:
            loss.backward()
    if guard:
        assert_gradients_synchronised(model)
    return model.weight.grad.item(), len(reduced)


def lost_wrapper(
    rank: int, world_size: int, keep: bool, inner: bool = False, guard: bool = False
) -> float:
    """The gradient, r + 1 on rank r before averaging, with DDP's wrapper kept in a name or not.

    inner: keep the wrapper, and call the model inside it.
    """
    model = nn.Linear(1, 1, bias=False, device=device())
    numbers = torch.full((1, 1), rank + 1.0, device=device())
    if keep:
        ddp = DistributedDataParallel(model)
        loss = (model if inner else ddp)(numbers).sum()
    else:
        loss = DistributedDataParallel(model)(numbers).sum()
    loss.backward()
    if guard:
        assert_gradients_synchronised(model)
    return model.weight.grad.item()


class Branches(nn.Module):
    """Two layers of one weight each, a and b, of which a step uses those that it is told."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(1, 1, bias=False)
        self.b = nn.Linear(1, 1, bias=False)

    def forward(self, x, used: str):
        return sum(getattr(self, name)(x) for name in used)


def branches(
    rank: int,
    world_size: int,
    used: list[str],
    find_unused: bool,
    steps: int = 3,
    guard: bool = False,
) -> dict[str, float | None]:
    """Some steps in which rank r uses the layers used[r], with gradients of r + 1 before averaging.

    guard: assert after each backward that gradients are synchronised. Returns the last step's gradients.
    """
    model = Branches().to(device())
    ddp = DistributedDataParallel(model, find_unused_parameters=find_unused)
    for _ in range(steps):
        ddp.zero_grad()
        numbers = torch.full((1, 1), rank + 1.0, device=device())
        ddp(numbers, used[rank]).sum().backward()
        if guard:
            assert_gradients_synchronised(model)
    gradients = {"a": model.a.weight.grad, "b": model.b.weight.grad}
    return {n: None if g is None else g.item() for n, g in gradients.items()}


def reductions(rank: int, world_size: int, find_unused: bool) -> int:
    """AllReduces of the third step of a model that uses all its parameters."""
    ddp = DistributedDataParallel(
        nn.Linear(4, 4).to(device()), find_unused_parameters=find_unused
    )
    numbers = torch.ones(1, 4, device=device())
    for _ in range(2):
        ddp(numbers).sum().backward()
    with Volume() as volume:
        ddp(numbers).sum().backward()
    return sum(call.name == "AllReduce" for call in volume.calls)


def storages(rank: int, world_size: int, view: bool) -> int:
    """How many pieces of memory hold the gradients of four parameters, under gradient_as_bucket_view."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to(device())
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=view)
    for _ in range(2):
        ddp(torch.ones(1, 4, device=device())).sum().backward()
    return len({p.grad.untyped_storage().data_ptr() for p in model.parameters()})


def epochs(
    rank: int, world_size: int, set_epoch: bool, shard: bool = True, guard: bool = False
) -> list[list[int]]:
    """The indices that this rank draws of 12 samples in two epochs.

    set_epoch: tell the sampler which epoch it is. shard: False forgets the sampler and shuffles with a
    common seed. guard: assert that no sample is drawn twice in an epoch.
    """
    sampler = DistributedSampler(range(12), seed=0)
    drawn = []
    for epoch in range(2):
        if set_epoch:
            sampler.set_epoch(epoch)
        if shard:
            drawn.append(list(sampler))
        else:
            order = torch.Generator().manual_seed(epoch)
            drawn.append(torch.randperm(12, generator=order).tolist())
        if guard:
            assert_shards_differ(drawn[-1])
    return drawn


def uneven(
    rank: int, world_size: int, batches: list[int], join: bool, epochs: int = 1
) -> list[tuple[int, float]]:
    """Train on batches[r] batches an epoch on rank r, with or without DDP's join().

    Batch b of epoch e has the gradient 10 e + b before averaging; both are counted from 1.
    Returns for each step this rank's own gradient, and the averaged one.
    """
    model = nn.Linear(1, 1, bias=False).to(device())
    ddp, seen = DistributedDataParallel(model), []
    for epoch in range(1, epochs + 1):
        with ddp.join() if join else contextlib.nullcontext():
            for batch in range(1, batches[rank] + 1):
                own = 10 * epoch + batch
                ddp.zero_grad()
                ddp(torch.full((1, 1), float(own), device=device())).sum().backward()
                seen.append((own, model.weight.grad.item()))
    return seen

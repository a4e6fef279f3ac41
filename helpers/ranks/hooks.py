"""Rank functions about communication hooks: which torch takes its own, and what a hook that waits may meet."""

import os
import threading
from datetime import timedelta
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel


def registered(rank: int, world_size: int, cuda: str | None, nccl: tuple | None) -> str:
    """What torch says when its own BF16 hook is to be used on this group, and what the hook averages.

    torch asks how it was built, not which backend the group has. cuda, nccl: versions of the build that it is
    told, None for a build without. The gradients are the ranks' numbers, from 1.
    """
    ddp = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    with (
        patch.multiple(torch.version, cuda=cuda, hip=None),
        patch.object(dist, "is_nccl_available", lambda: nccl is not None),
        patch.object(torch.cuda.nccl, "version", lambda: nccl),
        patch.object(torch.xpu, "is_available", lambda: False),
    ):
        try:
            ddp.register_comm_hook(None, default_hooks.bf16_compress_hook)
        except TypeError as error:
            return f"refused: {error}"
    ddp(torch.full((1, 1), rank + 1.0)).sum().backward()
    return f"accepted, gradient {ddp.module.weight.grad.item():g}"


def reduced_twice(
    rank: int, world_size: int, cases: dict[str, dict]
) -> dict[str, list[float]]:
    """What two buckets, 1 and 10 on every rank, hold after two AllReduces each.

    cases: arguments of `chained` by name; so is what is returned.
    """
    return {name: chained(rank, world_size, **case) for name, case in cases.items()}


def chained(
    rank: int,
    world_size: int,
    threads: int = 2,
    turned: int | None = None,
    patience: float = 10.0,
) -> list[float]:
    """Add each bucket over all ranks by gloo; when that is done a callback adds the sums, and waits.

    threads: of gloo, which by itself takes 2. The second sums start in the order of the buckets; turned: on
    this rank in the other order. After `patience` seconds a callback gives up, and the first sums stay.
    """
    group, store = _gloo(rank, world_size, threads, f"{threads} threads, {turned}")
    held = [torch.tensor([1.0]), torch.tensor([10.0])]
    order = [1, 0] if rank == turned else [0, 1]
    started, gave_up = threading.Event(), threading.Event()

    def again(i: int) -> None:
        if i == order[1]:
            started.wait(patience)
        total = held[i].clone()
        work = group.allreduce([total])
        started.set()
        try:
            work.wait(timedelta(seconds=patience))
        except RuntimeError:
            gave_up.set()
        if not gave_up.is_set():
            held[i] = total

    if rank > 0:
        store.wait(["rank 0 has its callbacks"])
    first = [group.allreduce([bucket]).get_future() for bucket in held]
    second = [first[i].then(lambda _, i=i: again(i)) for i in order]
    if rank == 0:
        store.set("rank 0 has its callbacks", "yes")
    for future in second:
        future.wait()
    dist.barrier()
    return [bucket.item() for bucket in held]


def _gloo(
    rank: int, world_size: int, threads: int, name: str
) -> tuple[dist.ProcessGroupGloo, dist.Store]:
    """A gloo group with so many threads; torch sets their number to 2 and has no argument for it."""
    options = dist.ProcessGroupGloo._Options()
    options._threads = threads
    interface = os.environ.get("GLOO_SOCKET_IFNAME", "")
    make = dist.ProcessGroupGloo.create_device
    options._devices = [
        make(interface=interface) if interface else make(hostname="localhost")
    ]
    store = dist.PrefixStore(name, dist.distributed_c10d._get_default_store())
    return dist.ProcessGroupGloo(store, rank, world_size, options), store

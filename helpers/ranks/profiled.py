"""A rank function that watches one real step of DDP with PyTorch's profiler."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from helpers.processes.rank import device

BACKWARD = "autograd::engine::evaluate_function: AddmmBackward0"


def spans(
    rank: int, world_size: int, layers: int = 8, width: int = 1024
) -> dict[str, list[tuple[float, float]]]:
    """Where the time of one backward pass goes: {"backward", "AllReduce"}: (start, end) in seconds.

    A chain of `layers` linear layers, each its own bucket; the third step, because in the first all
    gradients are one bucket. Start 0 is the first thing that the backward pass computes.
    """
    model = nn.Sequential(*[nn.Linear(width, width) for _ in range(layers)])
    ddp = DistributedDataParallel(
        model.to(device()), bucket_cap_mb=width**2 * 4 / 2**20
    )
    batch = torch.ones(256, width, device=device())
    for _ in range(2):
        ddp(batch).sum().backward()
    loss = ddp(batch).sum()
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        loss.backward()
        time.sleep(
            0.1
        )  # gloo's threads note the end of their work after the work itself
    names = {BACKWARD: "backward", f"{dist.get_backend()}:all_reduce": "AllReduce"}
    found = {name: [] for name in names.values()}
    for event in profiler.events():
        if event.name in names:
            span = (event.time_range.start / 1e6, event.time_range.end / 1e6)
            found[names[event.name]].append(span)
    zero = min(start for start, _ in found["backward"])
    return {
        name: sorted((start - zero, end - zero) for start, end in each)
        for name, each in found.items()
    }

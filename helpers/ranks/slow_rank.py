"""Rank functions in which one rank sleeps, as a card does that has become too hot."""

import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device


def fastest_step(
    rank: int, world_size: int, slow: int, sleep: float, ddp: bool, steps: int = 2
) -> float:
    """Seconds of this rank's fastest step of several; rank `slow` sleeps before each of its own.

    ddp: average gradients, or let everybody step alone. The first step warms up: nobody sleeps, and it
    is not counted.
    """
    model = torch.nn.Linear(8, 8).to(device())
    if ddp:
        model = DistributedDataParallel(model)
    inputs = torch.ones(4, 8, device=device())
    seconds = []
    for number in range(steps + 1):
        dist.barrier()
        start = time.perf_counter()
        if rank == slow and number:
            time.sleep(sleep)
        model(inputs).sum().backward()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])

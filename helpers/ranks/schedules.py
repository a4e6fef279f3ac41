"""Rank functions that run schedules for real."""

import time
from statistics import median

import torch
import torch.distributed as dist

from helpers.algorithms import BY_RANKS
from helpers.processes.rank import device
from helpers.schedule import Schedule
from helpers.transport import transport


def run_schedule(rank: int, world_size: int, schedule: Schedule, length: int) -> dict:
    """Run `schedule` on integers in float64; also gloo's own AllReduce of the same numbers.

    Returns "result" and "reference" (length,), and "sent", the bytes this rank sent.
    """
    draw = torch.Generator().manual_seed(rank)
    numbers = torch.randint(-99, 100, (length,), generator=draw).double().to(device())
    reference = numbers.clone()
    dist.all_reduce(reference)
    sent = transport(schedule, numbers)
    return {"result": numbers.cpu(), "reference": reference.cpu(), "sent": sent}


def run_by_name(rank: int, world_size: int, name: str, length: int) -> dict:
    """As `run_schedule`, for an algorithm of the book by its name."""
    return run_schedule(rank, world_size, BY_RANKS[name](world_size), length)


def race(rank: int, world_size: int, mib: int, repeats: int = 9) -> dict[str, float]:
    """Seconds of a ring AllReduce of `mib` MiB of float32, run in turn.

    "ring in Python" sends point-to-point messages, "gloo" is its own all_reduce. Returns the median of each over `repeats` rounds, after one to warm up: "ring in Python", "gloo".
    """
    numbers, schedule = torch.ones(mib * 2**18), BY_RANKS["ring-allreduce"](world_size)
    ways = {
        "ring in Python": lambda: transport(schedule, numbers),
        "gloo": lambda: dist.all_reduce(numbers),
    }
    seconds = {name: [] for name in ways}
    for _ in range(repeats + 1):
        for name, reduce in ways.items():
            numbers.fill_(1)
            dist.barrier()
            start = time.perf_counter()
            reduce()
            dist.barrier()
            seconds[name].append(time.perf_counter() - start)
    return {name: median(values[1:]) for name, values in seconds.items()}

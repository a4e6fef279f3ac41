"""Rank functions that run schedules for real."""

import torch
import torch.distributed as dist

from helpers.algorithms import BY_RANKS
from helpers.rank_process import device
from helpers.transport import transport


def run_by_name(rank: int, world_size: int, name: str, length: int) -> dict:
    """Run the named algorithm on integers in float64; also gloo's own AllReduce of the same numbers.

    Returns "result" and "reference" (length,), and "sent", the bytes this rank sent.
    """
    draw = torch.Generator().manual_seed(rank)
    numbers = torch.randint(-99, 100, (length,), generator=draw).double().to(device())
    reference = numbers.clone()
    dist.all_reduce(reference)
    sent = transport(BY_RANKS[name](world_size), numbers)
    return {"result": numbers.cpu(), "reference": reference.cpu(), "sent": sent}

"""Rank functions of an AllReduce to which not everybody brings the same shape."""

import torch
import torch.distributed as dist

from helpers.processes.rank import device


def adds(
    rank: int, world_size: int, shapes: list[tuple[int, ...]], detail: bool = False
) -> list:
    """Sum the numbers 0, 1, 2, ... in the shape that rank r brings, `shapes[r]`.

    detail: compare shapes first, as TORCH_DISTRIBUTED_DEBUG=DETAIL does for every group.
    Returns the sum as nested lists, in this rank's own shape.
    """
    group = dist.group.WORLD
    if detail:
        dist.set_debug_level(dist.DebugLevel.DETAIL)
        group = dist.new_group()
    shape = torch.Size(shapes[rank])
    numbers = torch.arange(shape.numel(), dtype=torch.float64, device=device())
    mine = numbers.reshape(shape)
    dist.all_reduce(mine, group=group)
    return mine.tolist()

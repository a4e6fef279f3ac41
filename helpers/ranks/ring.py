"""Rank functions of the chapter on the ring: real processes, and the bytes they put on the wire."""

import time
from pathlib import Path

import torch
import torch.distributed as dist

from helpers.algorithms.ring import ring_allreduce
from helpers.rank_process import device
from helpers.transport import transport


def total(rank: int, world_size: int, root_only: bool = False) -> int:
    """What this rank holds after an AllReduce of 1, 2, ..., K, or after a Reduce to rank 0."""
    number = torch.tensor(rank + 1, device=device())
    if root_only:
        dist.reduce(number, dst=0)
    else:
        dist.all_reduce(number)
    return int(number)


def states(rank: int, world_size: int) -> list[list[int]]:
    """This rank's chunks before the first step of a real ring AllReduce and after every step.

    Rank r brings the number 2^r in every chunk, so a chunk's value *is* the set of ranks that are in it.
    """
    chunks = torch.full((world_size,), 2**rank, dtype=torch.int64)
    seen = [chunks.tolist()]
    transport(
        ring_allreduce(world_size),
        chunks,
        after_step=lambda: seen.append(chunks.tolist()),
    )
    return seen


def in_two_halves(
    rank: int, world_size: int, skip_reduce: bool = False
) -> tuple[list, list]:
    """The same integers by gloo's AllReduce, and by its reduce-scatter followed by its all-gather."""
    draw = torch.Generator().manual_seed(rank)
    numbers = torch.randint(-99, 100, (3 * world_size,), generator=draw).double()
    parts = list(numbers.clone().chunk(world_size))
    own = parts[rank].clone()
    if not skip_reduce:
        dist.reduce_scatter(own, parts)
    gathered = [torch.empty_like(own) for _ in range(world_size)]
    dist.all_gather(gathered, own)
    dist.all_reduce(numbers)
    return numbers.tolist(), torch.cat(gathered).tolist()


def noisy_sum(
    rank: int, world_size: int, elements: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's float32 noise, and the sum of all ranks' that a ring of messages leaves here.

    The noise is sevenths of whole numbers: the same bits on every machine.
    """
    draw = torch.Generator().manual_seed(rank)
    noise = torch.randint(-(10**6), 10**6, (elements,), generator=draw).float() / 7
    total = noise.clone()
    transport(ring_allreduce(world_size), total)
    return noise, total


def wire_bytes(
    rank: int, world_size: int, elements: int, operations: list[str]
) -> list[int]:
    """Bytes that the loopback interface carries during each collective, all ranks together.

    operations: "all_reduce", "reduce_scatter" or "all_gather", on float32 vectors of `elements`. Only
    meaningful where nobody else uses the interface: in a network namespace of one's own.
    """
    whole, own = torch.ones(elements), torch.ones(elements // world_size)
    parts = list(torch.ones(elements).chunk(world_size))
    calls = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "reduce_scatter": lambda: dist.reduce_scatter(own, parts),
        "all_gather": lambda: dist.all_gather(parts, own),
    }
    moved = []
    for operation in operations:
        dist.barrier()
        time.sleep(0.2)
        before = _loopback_bytes()
        dist.barrier()
        calls[operation]()
        dist.barrier()
        time.sleep(0.2)
        moved.append(_loopback_bytes() - before)
    return moved


def _loopback_bytes() -> int:
    line = next(
        line
        for line in Path("/proc/net/dev").read_text().splitlines()
        if line.strip().startswith("lo:")
    )
    return int(line.split(":")[1].split()[8])

"""Rank functions of the chapter on the ring: real processes, and the bytes they put on the wire."""

import torch
import torch.distributed as dist

from helpers.algorithms.ring import ring_allreduce
from helpers.processes.rank import device
from helpers.ranks.on_the_wire import carried
from helpers.schedule import Schedule
from helpers.transport import transport


def total(
    rank: int, world_size: int, root_only: bool = False, number: int | None = None
) -> int:
    """What this rank holds after an AllReduce, or a Reduce to rank 0.

    Every rank brings `number`; without one, rank r brings r + 1.
    """
    number = torch.tensor(rank + 1 if number is None else number, device=device())
    if root_only:
        dist.reduce(number, dst=0)
    else:
        dist.all_reduce(number)
    return int(number)


def states(
    rank: int, world_size: int, schedule: Schedule | None = None
) -> list[list[int]]:
    """This rank's chunks before the first step of a real run and after every step.

    Rank r brings the number 2^r in every chunk, so that a chunk says who is in it. Runs `schedule`,
    or a ring AllReduce.
    """
    chunks = torch.full((world_size,), 2**rank, dtype=torch.int64)
    seen = [chunks.tolist()]
    transport(
        schedule or ring_allreduce(world_size),
        chunks,
        after_step=lambda: seen.append(chunks.tolist()),
    )
    return seen


def in_two_halves(
    rank: int, world_size: int, skip_reduce: bool = False
) -> tuple[list, list, list]:
    """Own integers; their sum by gloo's AllReduce; and by its reduce-scatter, then its all-gather."""
    draw = torch.Generator().manual_seed(rank)
    numbers = torch.randint(-99, 100, (3 * world_size,), generator=draw).double()
    parts = list(numbers.clone().chunk(world_size))
    mine = parts[rank].clone()
    if not skip_reduce:
        dist.reduce_scatter(mine, parts)
    gathered = [torch.empty_like(mine) for _ in range(world_size)]
    dist.all_gather(gathered, mine)
    total = numbers.clone()
    dist.all_reduce(total)
    return numbers.tolist(), total.tolist(), torch.cat(gathered).tolist()


def noisy_sums(
    rank: int, world_size: int, elements: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """This rank's float32 noise; all ranks' sum by a ring of messages; and by gloo's AllReduce.

    The noise is sevenths of whole numbers: the same bits on every machine.
    """
    draw = torch.Generator().manual_seed(rank)
    noise = torch.randint(-(10**6), 10**6, (elements,), generator=draw).float() / 7
    by_messages, by_gloo = noise.clone(), noise.clone()
    transport(ring_allreduce(world_size), by_messages)
    dist.all_reduce(by_gloo)
    return noise, by_messages, by_gloo


def wire_bytes(
    rank: int, world_size: int, elements: int, operations: list[str]
) -> list[int]:
    """Bytes that the loopback interface carries during each collective, all ranks together.

    operations: "all_reduce", "reduce_scatter" or "all_gather", on float32 vectors of `elements`.
    Counted as in helpers.ranks.on_the_wire.
    """
    whole, own = torch.ones(elements), torch.ones(elements // world_size)
    parts = list(torch.ones(elements).chunk(world_size))
    calls = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "reduce_scatter": lambda: dist.reduce_scatter(own, parts),
        "all_gather": lambda: dist.all_gather(parts, own),
    }
    return [carried(calls[operation]) for operation in operations]

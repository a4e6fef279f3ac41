"""Rank functions that add BF16 numbers in different places: on the way round the ring, or at its end."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from helpers.compression.compressors import Feedback, OneBit, TopK
from helpers.counting.handed import handed, sent_by_a_ring
from helpers.ranks.compression import exchange
from helpers.ranks.on_the_wire import carried


def added_in_fp32(tensor: torch.Tensor) -> torch.Tensor:
    """The BF16 sum over all ranks: BF16 on the wire, but every addition in float32.

    Each rank collects everybody's version of its own part, adds, rounds once, and hands
    the part round. Raises ValueError unless the number of ranks divides the length.
    """
    ranks = dist.get_world_size()
    if len(tensor) % ranks:
        raise ValueError(
            f"tensor: {len(tensor)} entries, expected a multiple of {ranks}"
        )
    versions = torch.empty_like(tensor)
    dist.all_to_all_single(versions, tensor)
    part = versions.view(ranks, -1).sum(dim=0, dtype=torch.float32).bfloat16()
    parts = [torch.empty_like(part) for _ in range(ranks)]
    dist.all_gather(parts, part)
    return torch.cat(parts)


def added_on_the_way(tensor: torch.Tensor) -> torch.Tensor:
    """The sum by AllReduce: whoever receives a partial sum adds to it and rounds."""
    total = tensor.clone()
    dist.all_reduce(total)
    return total


def ways(tensor: torch.Tensor) -> dict[str, Callable[[], torch.Tensor]]:
    """Three ways to the BF16 sum of this rank's BF16 vector and the others'."""
    return {
        "BF16 AllReduce": lambda: added_on_the_way(tensor),
        "FP32 AllReduce": lambda: added_on_the_way(tensor.float()).bfloat16(),
        "sent in BF16, added in FP32": lambda: added_in_fp32(tensor),
    }


def sums(
    rank: int, world_size: int, vectors: list[list[float]]
) -> dict[str, tuple[list[float], float]]:
    """The sum of BF16 vectors, one a rank, three ways; and the bytes that a rank sends for each.

    vectors: of one length, a multiple of the number of ranks.
    """
    told = {}
    for name, way in ways(torch.tensor(vectors[rank], dtype=torch.bfloat16)).items():
        with handed() as counted:
            total = way()
        told[name] = (total.tolist(), sent_by_a_ring(counted, world_size))
    return told


def wire_bytes(
    rank: int, world_size: int, elements: int
) -> dict[str, tuple[int, float]]:
    """Bytes on the loopback interface for each way to add or to exchange, and those counted, of all ranks.

    Only meaningful where nobody else uses the interface. Compressors get float64 vectors.
    """
    gradient = torch.randn(elements, dtype=torch.float64)
    calls = ways(gradient.bfloat16())
    for name, compressor in {"1 bit": OneBit(), "top 1 %": TopK(0.01)}.items():
        calls[name] = lambda c=compressor: exchange(Feedback(c), gradient)
    told = {}
    for name, call in calls.items():
        with handed() as counted:
            call()
        told[name] = (carried(call), world_size * sent_by_a_ring(counted, world_size))
    return told

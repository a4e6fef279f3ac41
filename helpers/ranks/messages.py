"""Rank functions that time single messages."""

import time

import torch
import torch.distributed as dist


def message_seconds(
    rank: int, world_size: int, sizes: list[int], repeats: int = 20
) -> list[float]:
    """Seconds of one message of each of `sizes` bytes from rank 0 to rank 1.

    Half of the shortest of `repeats` round trips: what the link can do when nobody else
    takes the processor.
    """
    seconds = []
    for size in sizes:
        payload, best = torch.zeros(size, dtype=torch.uint8), float("inf")
        for _ in range(repeats):
            dist.barrier()
            start = time.perf_counter()
            if rank == 0:
                dist.send(payload, 1)
                dist.recv(payload, 1)
            else:
                dist.recv(payload, 0)
                dist.send(payload, 0)
            best = min(best, (time.perf_counter() - start) / 2)
        seconds.append(best)
    return seconds

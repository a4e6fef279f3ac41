"""Run a schedule with real processes: every transfer is a point-to-point message of torch.distributed."""

from collections.abc import Callable

import torch
import torch.distributed as dist

from helpers.schedule import Schedule, chunk_sizes


def transport(schedule: Schedule, tensor: torch.Tensor, after_step: Callable[[], None] | None = None) -> int:
    """Run `schedule` on this rank's 1-d `tensor`, in place; returns the bytes this rank sent.

    after_step: called after each step, to look at the tensor in between.

    The process group must have as many ranks as the schedule has nodes. Raises ValueError otherwise.
    """
    rank, ranks = dist.get_rank(), dist.get_world_size()
    if ranks != schedule.nodes or tensor.ndim != 1:
        raise ValueError(
            f"{schedule.name}: {schedule.nodes} nodes and a 1-d tensor, not {ranks} ranks and {tensor.ndim}-d"
        )
    chunks = tensor.split(chunk_sizes(len(tensor), schedule.chunks).tolist())
    aside: list[torch.Tensor] = []  # kept from step to step: fresh memory costs more than the addition
    sent = 0
    for step in schedule.steps:
        moves = [move for move in step if rank in (move.source, move.destination) and len(chunks[move.chunk])]
        busy = [move.chunk for move in moves]
        operations, arrivals = [], []
        for move in moves:
            chunk = chunks[move.chunk]
            if move.source == rank:
                sent += chunk.numel() * tensor.element_size()
                operations.append(dist.P2POp(dist.isend, chunk, move.destination))
                continue
            # What overwrites arrives in place, unless the chunk is also on its way out or arrives twice.
            landing = chunk
            if move.add or busy.count(move.chunk) > 1:
                if len(arrivals) == len(aside):
                    aside.append(torch.empty_like(chunks[0]))
                landing = aside[len(arrivals)][: len(chunk)]
                arrivals.append((move, landing))
            operations.append(dist.P2POp(dist.irecv, landing, move.source))
        for request in dist.batch_isend_irecv(operations) if operations else []:
            request.wait()
        for move, payload in arrivals:
            if move.add:
                chunks[move.chunk].add_(payload)
            else:
                chunks[move.chunk].copy_(payload)
        if after_step:
            after_step()
    return sent

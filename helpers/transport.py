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
    sent = 0
    for step in schedule.steps:
        operations, arrivals = [], []
        for move in step:
            if rank not in (move.source, move.destination) or not len(chunks[move.chunk]):
                continue
            if move.source == rank:
                sent += chunks[move.chunk].numel() * tensor.element_size()
                operations.append(dist.P2POp(dist.isend, chunks[move.chunk], move.destination))
            else:
                # What arrives waits aside until the step is over: the chunk may be on its way out as well.
                arrivals.append((move, torch.empty_like(chunks[move.chunk])))
                operations.append(dist.P2POp(dist.irecv, arrivals[-1][1], move.source))
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

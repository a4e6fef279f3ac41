"""A real parameter server with workers that push gradients and pull parameters, and wait for nobody."""

import time

import torch
import torch.distributed as dist

STOP = float("nan")


def asynchronous(
    rank: int,
    world_size: int,
    lr: float,
    updates: int,
    order: list[int] | None = None,
    rest: list[float] | None = None,
) -> dict:
    """Rank 0 is the server, the others are workers 0, 1, ...; the loss is w^2 / 2, and w starts at 1.

    order: whose gradient the server takes, update by update; None takes what comes first.
    rest: seconds that each worker sleeps before it pushes. Sends without a source, so on gloo only.
    Returns of the server "w" after every update and the "order", of a worker how often it "pushed".
    """
    if rank > 0:
        return _work(rest[rank - 1] if rest else 0.0)
    w = torch.ones(1, dtype=torch.float64)
    workers = range(1, world_size)
    for worker in workers:
        dist.send(w, worker)
    seen, trace = [], []
    for update in range(updates):
        gradient = torch.empty_like(w)
        asked = None if order is None else order[update] + 1
        worker = dist.recv(gradient, asked)
        w = w - lr * gradient
        dist.send(w, worker)
        seen.append(worker - 1)
        trace.append(w.item())
    for worker in workers:
        dist.recv(torch.empty_like(w), worker)
        dist.send(torch.full_like(w, STOP), worker)
    return {"w": trace, "order": seen}


def _work(rest: float) -> dict:
    """Pull w, compute its gradient, push it, until the server says stop."""
    w = torch.empty(1, dtype=torch.float64)
    pushed = 0
    dist.recv(w, 0)
    while not w.isnan().item():
        w.requires_grad_(True)
        (gradient,) = torch.autograd.grad((w**2 / 2).sum(), w)
        w = w.detach()
        time.sleep(rest)
        dist.send(gradient, 0)
        pushed += 1
        dist.recv(w, 0)
    return {"pushed": pushed}

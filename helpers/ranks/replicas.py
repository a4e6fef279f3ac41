"""Rank functions that look at replicas: what parameters and buffers every rank holds, and when."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device


def _flat(tensors) -> torch.Tensor:
    return torch.cat([t.detach().flatten() for t in tensors]).cpu().clone()


def moments(
    rank: int,
    world_size: int,
    steps: int = 3,
    init_sync: bool = True,
    pushed: bool = False,
    rotated: bool = False,
) -> dict[str, torch.Tensor]:
    """A rank's parameters, flat, at each moment of a short run; every rank starts from a seed of its own.

    init_sync: False keeps DDP's constructor from sending rank 0's parameters to all ranks.
    pushed: rank 1 moves its weights by hand after the constructor.
    rotated: each rank adds up the gradients by itself, in an order of its own.
    "buffers" is BatchNorm's running mean after the last step, "buffers at the next forward" what the layer
    finds when it is called again.
    """
    torch.manual_seed(rank)
    norm = torch.nn.BatchNorm1d(16)
    layers = (torch.nn.Linear(8, 16), norm, torch.nn.ReLU(), torch.nn.Linear(16, 1))
    model = torch.nn.Sequential(*layers).to(device())
    held = {"before DDP": _flat(model.parameters())}
    ddp = DistributedDataParallel(model, init_sync=init_sync)
    if rotated:
        ddp.register_comm_hook(None, _add_in_own_order)
    held["after DDP(model)"] = _flat(model.parameters())
    if pushed and rank == 1:
        torch.nn.init.constant_(model[0].weight, 0.5)
    update = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(steps):
        update.zero_grad()
        ddp(torch.randn(4, 8).to(device())).pow(2).mean().backward()
        update.step()
        held[f"after step {step + 1}"] = _flat(model.parameters())
    held["buffers"] = norm.running_mean.cpu().clone()
    found = []
    norm.register_forward_pre_hook(
        lambda *_: found.append(norm.running_mean.cpu().clone())
    )
    ddp(torch.randn(4, 8).to(device()))
    return held | {"buffers at the next forward": found[0]}


def _add_in_own_order(state, bucket) -> torch.futures.Future[torch.Tensor]:
    """A communication hook without an AllReduce: gather everybody's bucket, add up from one's own on."""
    rank, ranks, own = dist.get_rank(), dist.get_world_size(), bucket.buffer()
    gathered = [torch.empty_like(own) for _ in range(ranks)]
    dist.all_gather(gathered, own)
    total = torch.zeros_like(own)
    for step in range(ranks):
        total += gathered[(rank + step) % ranks]
    done = torch.futures.Future()
    done.set_result(total / ranks)
    return done

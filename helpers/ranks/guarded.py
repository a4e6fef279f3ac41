"""Rank functions for what the guards must see: one element, one gradient, on one rank."""

import torch
from torch import nn

from helpers.guards import assert_gradients_synchronised, assert_replicas_equal
from helpers.rank_process import device


def replicas(rank: int, world_size: int, differs_on: int | None) -> bool:
    """Equal replicas, but for the last element of the weight on one rank, by one unit in the last place."""
    torch.manual_seed(0)
    model = nn.Linear(3, 3).to(device())
    if rank == differs_on:
        with torch.no_grad():
            last = model.weight.view(-1)[-1]
            last.copy_(torch.nextafter(last, last + 1))
    assert_replicas_equal(model)
    return True


def one_gradient(rank: int, world_size: int) -> None:
    """Only rank 0 has a gradient."""
    model = nn.Linear(2, 2, bias=False).to(device())
    if rank == 0:
        model(torch.ones(1, 2, device=device())).sum().backward()
    assert_gradients_synchronised(model)

"""Rank functions for what the guards must see: one element, one gradient, on one rank."""

import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler

from helpers.guards import (
    assert_gradients_synchronised,
    assert_replicas_equal,
    assert_shards_differ,
)
from helpers.processes.rank import device


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


def nan_everywhere(rank: int, world_size: int) -> bool:
    """All ranks hold NaN, in a matrix that does not lie in memory as it reads."""
    model = nn.Linear(2, 3, bias=False).to(device())
    model.weight = nn.Parameter(torch.full((2, 3), torch.nan, device=device()).T)
    assert_replicas_equal(model)
    return True


def no_gradient(rank: int, world_size: int) -> None:
    """The guard is called before the backward pass."""
    assert_gradients_synchronised(nn.Linear(2, 2).to(device()))


def loaded(
    rank: int, world_size: int, samples: int, shard: bool, whole: bool = False
) -> int:
    """The guard is given what a DataLoader hands out, a tensor of indices, two at a time.

    shard: give the loader a DistributedSampler. whole: one batch is the whole epoch. Returns the batches.
    """
    indices = range(samples)
    sampler = DistributedSampler(indices, shuffle=False) if shard else None
    size = samples if whole else 2
    steps = list(DataLoader(indices, size, sampler=sampler))
    for step in steps:
        assert_shards_differ(step)
    return len(steps)

"""Rank functions that average parameters now and then instead of gradients at every step: local SGD."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device
from helpers.ranks.gradient_noise import letters


def train(
    rank: int,
    world_size: int,
    every: int | None,
    steps: int = 48,
    batch: int = 32,
    lr: float = 8.0,
    optimizer: str = "SGD",
) -> torch.Tensor:
    """Train the model of helpers.scaling.letters on random pairs, `batch` a rank and step.

    every: average the parameters of all ranks after so many steps, the optimizer's state stays local; None
    is DDP. Returns the logits, float64 (27, 27). Raises ValueError for every below 1.
    """
    if every is not None and every < 1:
        raise ValueError(f"every={every}: expected at least 1, or None for DDP")
    model, first, second = letters()
    model = model.to(device())
    forward = DistributedDataParallel(model) if every is None else model
    update = getattr(torch.optim, optimizer)(model.parameters(), lr=lr)
    draw = torch.Generator().manual_seed(rank)
    for step in range(1, steps + 1):
        chosen = torch.randint(len(first), (batch,), generator=draw)
        inputs, labels = first[chosen].to(device()), second[chosen].to(device())
        update.zero_grad()
        cross_entropy(forward(inputs).flatten(0, 1), labels.flatten()).backward()
        update.step()
        if every is not None and step % every == 0:
            dist.all_reduce(model.weight.data)
            model.weight.data /= world_size
    return model.weight.detach().cpu()

"""Rank functions that train with one optimizer or another, right and with the factor K left out."""

import torch
from torch.nn.parallel import DistributedDataParallel

from helpers.average.token_loss import count_all, scale_loss
from helpers.processes.rank import device


def train(
    rank: int,
    world_size: int,
    recipe: str,
    optimizer: str,
    steps: int,
    clip: float | None = None,
    unit: float = 1.0,
) -> dict:
    """Train a float32 linear regression whose ranks hold 5 and 15 (25, 35, ...) tokens a step.

    optimizer: "SGD" or "Adam". clip: largest gradient norm, applied after the synchronisation.
    unit: the loss is measured in this unit, so gradients shrink with it.
    Returns the final weights and the number of steps in which the clip acted.
    """
    model = torch.nn.Linear(8, 1, bias=False, device=device())
    torch.nn.init.zeros_(model.weight)
    ddp = DistributedDataParallel(model)
    update = {
        "SGD": lambda p: torch.optim.SGD(p, lr=0.01),
        "Adam": lambda p: torch.optim.Adam(p, lr=0.1),
    }[optimizer](model.parameters())
    draw = torch.Generator().manual_seed(rank)
    tokens, clipped = 5 + 10 * rank, 0
    for _ in range(steps):
        inputs = torch.randint(-3, 4, (tokens, 8), generator=draw).float().to(device())
        error = ddp(inputs) - inputs.sum(1, keepdim=True) * 4
        all_tokens = count_all(tokens, device())
        update.zero_grad()
        loss_sum = unit * (error**2).sum()
        scale_loss(loss_sum, tokens, all_tokens, world_size, recipe).backward()
        if clip is not None:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
            clipped += int(norm > clip)
        update.step()
    return {"weights": model.weight.detach().cpu(), "clipped": clipped}

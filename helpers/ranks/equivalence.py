"""Rank functions that compare DDP on K ranks with one process on the whole batch."""

import torch
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device

SAMPLES = 16


def mlp_gradient(rank: int, world_size: int) -> torch.Tensor:
    """Gradient of a float64 MLP with LayerNorm on this rank's equal share of 16 samples, flat (parameters,).

    Every rank draws the same global batch and keeps its rows, as a sampler would deal them. With one
    rank this is the reference: the whole batch in one process.
    """
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(32, 64),
        torch.nn.LayerNorm(64),
        torch.nn.GELU(),
        torch.nn.Linear(64, 8),
    ]
    model = torch.nn.Sequential(*layers).double()
    inputs = torch.randn(SAMPLES, 32, dtype=torch.float64)
    labels = torch.randint(8, (SAMPLES,))
    return _gradient(
        model,
        inputs[rank::world_size],
        labels[rank::world_size],
        torch.nn.functional.cross_entropy,
    )


def integer_gradient(rank: int, world_size: int) -> torch.Tensor:
    """The same for a linear layer on small integers: every sum and quotient is exact, bit for bit."""
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 4)
    torch.nn.init.constant_(model.weight, 0.25)
    torch.nn.init.zeros_(model.bias)
    inputs = torch.randint(-4, 5, (SAMPLES, 8)).float()
    targets = torch.randint(-4, 5, (SAMPLES, 4)).float()
    return _gradient(
        model,
        inputs[rank::world_size],
        targets[rank::world_size],
        torch.nn.functional.mse_loss,
    )


def _gradient(model, inputs, labels, loss) -> torch.Tensor:
    ddp = DistributedDataParallel(model.to(device()))
    loss(ddp(inputs.to(device())), labels.to(device())).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters()]).cpu()

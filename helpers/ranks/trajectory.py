"""A rank function that trains a few steps on a fixed global batch, however many ranks share it."""

import torch
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device

SAMPLES, STEPS = 16, 20


def trained(
    rank: int,
    world_size: int,
    dropout: float = 0.0,
    lr: float = 0.1,
    shared: bool = True,
) -> tuple[torch.Tensor, list[int]]:
    """Parameters of a float64 MLP after 20 steps, flat (parameters,), and which samples this rank saw.

    shared: every rank keeps its equal share of the 16 samples; otherwise each keeps all of them. Each draws
    its own dropout masks.
    """
    torch.manual_seed(0)
    layers = [
        torch.nn.Linear(32, 64),
        torch.nn.LayerNorm(64),
        torch.nn.GELU(),
        torch.nn.Dropout(dropout),
        torch.nn.Linear(64, 8),
    ]
    model = torch.nn.Sequential(*layers).double().to(device())
    inputs = torch.randn(SAMPLES, 32, dtype=torch.float64)
    labels = torch.randint(8, (SAMPLES,))
    mine = list(range(SAMPLES))[rank::world_size] if shared else list(range(SAMPLES))
    inputs, labels = inputs[mine].to(device()), labels[mine].to(device())
    ddp = DistributedDataParallel(model)
    update = torch.optim.SGD(model.parameters(), lr=lr)
    torch.manual_seed(1 + rank)
    for _ in range(STEPS):
        update.zero_grad()
        torch.nn.functional.cross_entropy(ddp(inputs), labels).backward()
        update.step()
    flat = torch.cat([p.detach().flatten() for p in model.parameters()])
    return flat.cpu(), mine

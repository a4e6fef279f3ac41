"""Rank functions that train the byte model on sentences of unequal length."""

import torch
from torch.nn.parallel import DistributedDataParallel

from helpers.average.token_loss import count_all, scale_loss
from helpers.byte_model import ByteModel, loss_sum
from helpers.processes.rank import device
from helpers.text import batch


def sentence_gradient(
    rank: int, world_size: int, lines: list[bytes], recipe: str
) -> dict:
    """One backward over `lines`, dealt round the ranks like a sampler does: rank r takes lines r, r+K, ...

    Returns this rank's valid tokens and the gradient that DDP leaves, flattened (parameters,).
    """
    torch.manual_seed(0)
    model = DistributedDataParallel(ByteModel().to(device()))
    inputs, labels = batch(lines[rank::world_size])
    total, tokens = loss_sum(model, inputs.to(device()), labels.to(device()))
    scale_loss(
        total, tokens, count_all(tokens, device()), world_size, recipe
    ).backward()
    flat = torch.cat([p.grad.flatten() for p in model.parameters()])
    return {"tokens": tokens, "gradient": flat.cpu()}


def train_on_sentences(
    rank: int,
    world_size: int,
    lines: list[bytes],
    held_out: list[bytes],
    recipe: str,
    steps: int,
    per_rank: int,
) -> list[float]:
    """Train with AdamW, `per_rank` sentences a rank and step.

    Rank 0 returns the held-out loss (nats a token) before every fifth step and after the last.
    """
    torch.manual_seed(0)
    model = ByteModel().to(device())
    ddp = DistributedDataParallel(model)
    update = torch.optim.AdamW(model.parameters(), lr=0.01)
    test = [tensor.to(device()) for tensor in batch(held_out)]
    losses, per_step = [], per_rank * world_size
    for step in range(steps + 1):
        if rank == 0 and step % 5 == 0:
            with torch.no_grad():
                total, tokens = loss_sum(model, *test)
            losses.append((total / tokens).item())
        if step == steps:
            return losses
        shard = lines[step * per_step : (step + 1) * per_step][rank::world_size]
        inputs, labels = batch(shard)
        total, tokens = loss_sum(ddp, inputs.to(device()), labels.to(device()))
        update.zero_grad()
        scale_loss(
            total, tokens, count_all(tokens, device()), world_size, recipe
        ).backward()
        update.step()

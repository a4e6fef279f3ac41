"""Rank functions of the chapter on unequal tokens.

The model is as small as a model can be: one weight w = 1, and token t costs w * loss_t. Its gradient
with respect to w is the mean loss itself, so the number that DDP leaves in w.grad shows which mean
it computed.
"""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers.average.token_loss import OWN_MEAN, count_all, scale_loss
from helpers.processes.rank import device


class Weights(torch.nn.Module):
    """`size` float64 weights, all one; each token's loss is multiplied by its weight."""

    def __init__(self, size: int = 1):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(size, dtype=torch.float64))

    def forward(self, losses: torch.Tensor, at=slice(None)) -> torch.Tensor:
        return self.w[at] * losses


def gradient(
    rank: int, world_size: int, shards: list[list[float]], recipe: str
) -> float:
    """What DDP leaves in w.grad when each rank scales its loss by `recipe`."""
    model = DistributedDataParallel(Weights().to(device()))
    losses = torch.tensor(shards[rank], dtype=torch.float64, device=device())
    all_tokens = count_all(len(losses), device())
    scale_loss(
        model(losses).sum(), len(losses), all_tokens, world_size, recipe
    ).backward()
    return model.module.w.grad.item()


def token_weights(
    rank: int, world_size: int, counts: list[int], recipe: str
) -> list[float]:
    """What each token of every rank weighs in DDP's average: one model weight a token, losses of 1."""
    model = DistributedDataParallel(Weights(sum(counts)).to(device()))
    start = sum(counts[:rank])
    losses = torch.ones(counts[rank], dtype=torch.float64, device=device())
    loss_sum = model(losses, slice(start, start + counts[rank])).sum()
    scale_loss(
        loss_sum, counts[rank], count_all(counts[rank], device()), world_size, recipe
    ).backward()
    return model.module.w.grad.tolist()


def logged_losses(
    rank: int, world_size: int, shards: list[list[float]]
) -> tuple[float, float]:
    """The dashboard's number two ways: average the ranks' means; add sums and counts, then divide."""
    losses = torch.tensor(shards[rank], dtype=torch.float64, device=device())
    mean = losses.mean()
    dist.all_reduce(mean)
    sum_and_count = torch.stack(
        [losses.sum(), torch.tensor(float(len(losses))).to(losses)]
    )
    dist.all_reduce(sum_and_count)
    return (mean / world_size).item(), (sum_and_count[0] / sum_and_count[1]).item()


def without_tokens(
    rank: int, world_size: int, labels: list[list[int]], recipe: str
) -> dict:
    """One backward where some rank may have no valid token; labels of -100 are padding.

    recipe: OWN_MEAN is cross_entropy's own mean; "mask and divide" multiplies by the mask and divides by
    its sum; any other is scale_loss's. Returns this rank's loss and the weight's gradient (8, 4).
    """
    torch.manual_seed(0)
    model = DistributedDataParallel(
        torch.nn.Linear(4, 8, dtype=torch.float64).to(device())
    )
    target = torch.tensor(labels[rank], device=device())
    inputs = (
        torch.arange(4.0 * len(target), dtype=torch.float64, device=device()).reshape(
            -1, 4
        )
        / 8
    )
    valid = target != -100
    cross_entropy = torch.nn.functional.cross_entropy
    if recipe == OWN_MEAN:
        loss = cross_entropy(model(inputs), target, ignore_index=-100)
    elif recipe == "mask and divide":
        loss = cross_entropy(model(inputs), target.clamp(min=0), reduction="none")
        loss = (loss * valid).sum() / valid.sum()
    else:
        loss_sum = cross_entropy(
            model(inputs), target, ignore_index=-100, reduction="sum"
        )
        tokens = int(valid.sum())
        loss = scale_loss(
            loss_sum, tokens, count_all(tokens, device()), world_size, recipe
        )
    loss.backward()
    return {"loss": loss.item(), "gradient": model.module.weight.grad.cpu()}

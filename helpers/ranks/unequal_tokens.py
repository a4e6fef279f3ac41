"""Rank functions of the chapter on unequal tokens.

The model is as small as a model can be: one weight w = 1, and token t costs w * loss_t. Its gradient
with respect to w is the mean loss itself, so the number that DDP leaves in w.grad shows which mean
it computed.
"""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers.rank_process import device
from helpers.token_loss import OWN_MEAN, count_all, scale_loss


class Weights(torch.nn.Module):
    """`size` float64 weights, all one; each token's loss is multiplied by its weight."""

    def __init__(self, size: int = 1):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(size, dtype=torch.float64))

    def forward(self, losses: torch.Tensor, at: slice = slice(None)) -> torch.Tensor:
        return self.w[at] * losses


def gradient(rank: int, world_size: int, shards: list[list[float]], recipe: str) -> float:
    """What DDP leaves in w.grad when each rank scales its loss by `recipe`."""
    model = DistributedDataParallel(Weights().to(device()))
    losses = torch.tensor(shards[rank], dtype=torch.float64, device=device())
    all_tokens = count_all(len(losses), device())
    scale_loss(model(losses).sum(), len(losses), all_tokens, world_size, recipe).backward()
    return model.module.w.grad.item()


def token_weights(rank: int, world_size: int, counts: list[int], recipe: str) -> list[float]:
    """What each token of every rank weighs in DDP's average: one model weight a token, losses of 1."""
    model = DistributedDataParallel(Weights(sum(counts)).to(device()))
    start = sum(counts[:rank])
    losses = torch.ones(counts[rank], dtype=torch.float64, device=device())
    loss_sum = model(losses, slice(start, start + counts[rank])).sum()
    scale_loss(loss_sum, counts[rank], count_all(counts[rank], device()), world_size, recipe).backward()
    return model.module.w.grad.tolist()


def logged_losses(rank: int, world_size: int, shards: list[list[float]]) -> tuple[float, float]:
    """The dashboard's number two ways: average the ranks' means; add sums and counts, then divide."""
    losses = torch.tensor(shards[rank], dtype=torch.float64, device=device())
    mean = losses.mean()
    dist.all_reduce(mean)
    sum_and_count = torch.stack([losses.sum(), torch.tensor(float(len(losses))).to(losses)])
    dist.all_reduce(sum_and_count)
    return (mean / world_size).item(), (sum_and_count[0] / sum_and_count[1]).item()


def accumulated(rank: int, world_size: int, windows: list[list[list[float]]], per_window: bool) -> float:
    """w.grad after one window of micro-batches, synchronised once.

    windows: per rank a list of micro-batches, each a list of token losses.
    per_window: True takes one denominator for the whole window and all ranks; False divides every
    micro-batch by its own tokens on all ranks and then by the number of micro-batches.
    """
    model = DistributedDataParallel(Weights().to(device()))
    own = [torch.tensor(losses, dtype=torch.float64, device=device()) for losses in windows[rank]]
    window_tokens = count_all(sum(map(len, own)), device())
    for i, losses in enumerate(own):
        all_tokens = window_tokens if per_window else count_all(len(losses), device()) * len(own)
        last = i == len(own) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            (world_size * model(losses).sum() / all_tokens).backward()
    return model.module.w.grad.item()


def samples_in_step(rank: int, world_size: int, per_micro_batch: int, micro_batches: int) -> int:
    """Samples that one optimizer step sees, counted by the gradient: a sample's loss is the weight."""
    model = DistributedDataParallel(Weights().to(device()))
    samples = torch.ones(per_micro_batch, dtype=torch.float64, device=device())
    for i in range(micro_batches):
        with contextlib.nullcontext() if i == micro_batches - 1 else model.no_sync():
            (world_size * model(samples).sum()).backward()
    return int(model.module.w.grad)


def without_tokens(rank: int, world_size: int, labels: list[list[int]], recipe: str) -> dict:
    """One backward where some rank may have no valid token; labels of -100 are padding.

    recipe: OWN_MEAN is cross_entropy's own mean; "mask and divide" multiplies by the mask and divides by
    its sum; any other is scale_loss's. Returns this rank's loss and the weight's gradient (8, 4).
    """
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(4, 8, dtype=torch.float64).to(device()))
    target = torch.tensor(labels[rank], device=device())
    inputs = torch.arange(4.0 * len(target), dtype=torch.float64, device=device()).reshape(-1, 4) / 8
    valid = target != -100
    cross_entropy = torch.nn.functional.cross_entropy
    if recipe == OWN_MEAN:
        loss = cross_entropy(model(inputs), target, ignore_index=-100)
    elif recipe == "mask and divide":
        loss = cross_entropy(model(inputs), target.clamp(min=0), reduction="none")
        loss = (loss * valid).sum() / valid.sum()
    else:
        loss_sum = cross_entropy(model(inputs), target, ignore_index=-100, reduction="sum")
        tokens = int(valid.sum())
        loss = scale_loss(loss_sum, tokens, count_all(tokens, device()), world_size, recipe)
    loss.backward()
    return {"loss": loss.item(), "gradient": model.module.weight.grad.cpu()}


def halved_where(rank: int, world_size: int, value: float) -> tuple[float, float]:
    """An fp16 gradient of `value` on every rank: as DDP averages it, and as sum-then-divide would."""
    model = torch.nn.Linear(1, 1, bias=False, dtype=torch.float16, device=device())
    ddp = DistributedDataParallel(model)
    ddp(torch.full((1, 1), value, dtype=torch.float16, device=device())).sum().backward()
    after = torch.full((1,), value, dtype=torch.float16, device=device())
    dist.all_reduce(after)
    return model.weight.grad.item(), (after / world_size).item()


def train(
    rank: int, world_size: int, recipe: str, optimizer: str, steps: int, clip: float | None = None
) -> dict:
    """Train a float32 linear regression whose ranks hold 5 and 15 (25, 35, ...) tokens a step.

    optimizer: "SGD" or "Adam". clip: largest gradient norm, applied after the synchronisation.
    Returns the final weights and the number of steps in which the clip acted.
    """
    model = torch.nn.Linear(8, 1, bias=False, device=device())
    torch.nn.init.zeros_(model.weight)
    ddp = DistributedDataParallel(model)
    step_of = {"SGD": lambda p: torch.optim.SGD(p, lr=0.01), "Adam": lambda p: torch.optim.Adam(p, lr=0.1)}
    update = step_of[optimizer](model.parameters())
    draw = torch.Generator().manual_seed(rank)
    tokens, clipped = 5 + 10 * rank, 0
    for _ in range(steps):
        inputs = torch.randint(-3, 4, (tokens, 8), generator=draw).float().to(device())
        error = ddp(inputs) - inputs.sum(1, keepdim=True) * 4
        all_tokens = count_all(tokens, device())
        update.zero_grad()
        scale_loss((error**2).sum(), tokens, all_tokens, world_size, recipe).backward()
        if clip is not None:
            clipped += int(torch.nn.utils.clip_grad_norm_(model.parameters(), clip) > clip)
        update.step()
    return {"weights": model.weight.detach().cpu(), "clipped": clipped}

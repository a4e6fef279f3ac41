"""Rank functions on windows of micro-batches: one denominator, what wrappers divide, how large a step is."""

import contextlib

import torch
from torch.nn.parallel import DistributedDataParallel

from helpers.average.token_loss import count_all
from helpers.processes.rank import device
from helpers.ranks.unequal_tokens import Weights


def accumulated(
    rank: int,
    world_size: int,
    windows: list[list[list[float]]],
    per_window: bool,
    wrapper_divides: int = 1,
    compensate: bool = True,
) -> float:
    """w.grad after one window of micro-batches, synchronised once.

    windows: per rank a list of micro-batches, each a list of token losses.
    per_window: True takes one denominator for the whole window and all ranks; False divides every
    micro-batch by its own tokens on all ranks and then by the number of micro-batches.
    wrapper_divides: what a library's backward divides the loss by, unasked; compensate: multiply by it first.
    """
    model = DistributedDataParallel(Weights().to(device()))
    own = [
        torch.tensor(losses, dtype=torch.float64, device=device())
        for losses in windows[rank]
    ]
    window_tokens = count_all(sum(map(len, own)), device())
    for i, losses in enumerate(own):
        all_tokens = (
            window_tokens if per_window else count_all(len(losses), device()) * len(own)
        )
        loss = world_size * model(losses).sum() / all_tokens
        if compensate:
            loss = loss * wrapper_divides
        last = i == len(own) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            (loss / wrapper_divides).backward()
    return model.module.w.grad.item()


def take_home(rank: int, world_size: int, windows: list[list[list[float]]]) -> float:
    """The same window written plainly: the lines that the chapter gives away, with w.grad at the end.

    The tokens are counted once a window, before the first backward(); a window without any gives zero.
    """
    model = DistributedDataParallel(Weights().to(device()))
    micro_batches = [
        torch.tensor(losses, dtype=torch.float64, device=device())
        for losses in windows[rank]
    ]
    all_tokens = max(count_all(sum(map(len, micro_batches)), device()), 1)
    for i, losses in enumerate(micro_batches):
        last = i == len(micro_batches) - 1
        with contextlib.nullcontext() if last else model.no_sync():
            (world_size * model(losses).sum() / all_tokens).backward()
    return model.module.w.grad.item()


def samples_in_step(
    rank: int, world_size: int, per_micro_batch: int, micro_batches: int
) -> int:
    """Samples that one optimizer step sees: each has a weight of its own, and DDP's gradient tells which came up."""
    samples = world_size * per_micro_batch * micro_batches
    model = DistributedDataParallel(Weights(samples).to(device()))
    dealt = torch.arange(samples)[rank::world_size].split(per_micro_batch)
    for i, indices in enumerate(dealt):
        with contextlib.nullcontext() if i == len(dealt) - 1 else model.no_sync():
            model(
                torch.ones(len(indices), dtype=torch.float64, device=device()), indices
            ).sum().backward()
    return int((model.module.w.grad != 0).sum())

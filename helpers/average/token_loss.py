"""What to back-propagate when ranks hold unequal numbers of tokens.

DDP averages: it sends (g_0 + ... + g_{K-1}) / K back to every rank. So the loss of rank k must already
carry the weight that its tokens deserve. Left out: sequence weights, and losses that are not sums.
"""

from fractions import Fraction

import torch
import torch.distributed as dist

# The three ways in which a training loop can scale its loss sum before backward().
OWN_MEAN = "mean of own tokens"
ALL_TOKENS = "sum / all tokens"
TOKEN_MEAN = "K x sum / all tokens"
RECIPES = (OWN_MEAN, ALL_TOKENS, TOKEN_MEAN)


def count_all(tokens: int, device: torch.device | None = None) -> int:
    """The number of tokens on all ranks together: one AllReduce of one integer."""
    total = torch.tensor(tokens, device=device)
    dist.all_reduce(total)
    return int(total)


def scale_loss(
    loss_sum: torch.Tensor, tokens: int, all_tokens: int, world_size: int, recipe: str
) -> torch.Tensor:
    """The loss of one rank to call backward() on.

    loss_sum: sum of the losses of this rank's valid tokens, a scalar in nats.
    tokens: this rank's valid tokens. all_tokens: those of every rank (and of the whole accumulation window).
    recipe: one of RECIPES; only TOKEN_MEAN makes DDP's average the mean over all tokens.
    Raises ValueError for another recipe. Source: accelerate docs, "gradient accumulation on training
    samples of variable size".
    """
    if recipe == OWN_MEAN:
        return loss_sum / tokens
    if recipe == ALL_TOKENS:
        return loss_sum / all_tokens
    if recipe == TOKEN_MEAN:
        return world_size * loss_sum / all_tokens
    raise ValueError(f"recipe={recipe!r}: expected one of {RECIPES}")


def spread(tokens: int, loss_sum: float) -> list[float]:
    """Losses of `tokens` tokens that add up to `loss_sum` and are not all alike.

    Pairs lie above and below the mean by 1/16, 2/16, ..., 16/16 nats, so that every value is a short binary
    fraction when the mean is one, and sums are exact. An odd token out gets the mean.

    >>> spread(4, 10)
    [2.5625, 2.4375, 2.625, 2.375]
    """
    mean = loss_sum / tokens
    losses = []
    for pair in range(tokens // 2):
        step = (pair % 16 + 1) / 16
        losses += [mean + step, mean - step]
    return losses + [mean] * (tokens % 2)


def mean_of_means(shards: list[list[float]]) -> Fraction:
    """Average over ranks of each rank's average, in exact arithmetic. Every shard needs a token."""
    return sum(sum(map(Fraction, shard)) / len(shard) for shard in shards) / len(shards)


def token_mean(shards: list[list[float]]) -> Fraction:
    """Average over all tokens of all ranks, in exact arithmetic."""
    return sum(sum(map(Fraction, shard)) for shard in shards) / sum(map(len, shards))

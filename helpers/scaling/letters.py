"""A language model small enough to print: the next letter from the one before, 27 x 27 numbers.

Softmax regression on the text of the book, letters and spaces. Its loss, its gradient and the noise of its
gradient are exact sums over the counted pairs, and a thousand trainings take a second. Left out: context.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from helpers.text import sentences

SYMBOLS = 27  # a to z, and a space for everything else


@cache
def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Every letter and the one after it, int64 (pairs,) each; runs of spaces are one."""
    text = np.frombuffer(b" ".join(sentences()).lower(), np.uint8).astype(np.int64) - ord("a")
    text = np.where((text >= 0) & (text < 26), text, 26)
    keep = np.append(True, (text[1:] != 26) | (text[:-1] != 26))
    return text[keep][:-1], text[keep][1:]


@cache
def frequencies() -> np.ndarray:
    """Share of each pair among all, float64 (27, 27)."""
    counts = np.zeros((SYMBOLS, SYMBOLS))
    np.add.at(counts, pairs(), 1)
    return counts / counts.sum()


def softmax(logits: np.ndarray) -> np.ndarray:
    """Along the last axis."""
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def loss(logits: np.ndarray) -> np.ndarray:
    """Mean cross-entropy over the whole text in nats: float64 (..., 27, 27) -> (...)."""
    return -(frequencies() * np.log(softmax(logits))).sum((-1, -2))


def gradient(logits: np.ndarray) -> np.ndarray:
    """Of the loss over the whole text, float64 (..., 27, 27)."""
    return frequencies().sum(1)[:, None] * softmax(logits) - frequencies()


def descend(steps: int, lr: float = 8.0) -> np.ndarray:
    """Logits after gradient descent on the whole text from zero."""
    logits = np.zeros((SYMBOLS, SYMBOLS))
    for _ in range(steps):
        logits = logits - lr * gradient(logits)
    return logits


@dataclass(frozen=True)
class Noise:
    """trace: of the covariance of one sample's gradient; square: of the norm of the mean gradient."""

    trace: float
    square: float

    @property
    def scale(self) -> float:
        """The simple noise scale of McCandlish et al. (2018), in samples: trace / square.

        Infinite where nothing is left of the square, as estimates have it when noise hides the mean.
        """
        return self.trace / self.square if self.square > 0 else math.inf


def noise(logits: np.ndarray) -> Noise:
    """Exact, from the counts: a sample's gradient is softmax minus one-hot, in the row of its letter."""
    share, p = frequencies(), softmax(logits)
    mean_square = (share * ((p**2).sum(1, keepdims=True) - 2 * p + 1)).sum()
    square = (gradient(logits) ** 2).sum()
    return Noise(float(mean_square - square), float(square))


def steps_to(target: float, batch: int, seed: int = 0, runs: int = 32, most: int = 3000) -> float:
    """Steps of SGD until the mean loss over the whole text of `runs` runs is `target`, at the best rate.

    A search among 14 rates a factor of the square root of 2 apart, with four runs each, comes first, then
    one among five around the best, quarter powers of 2 apart. Between two steps the loss is interpolated.
    Samples come from RandomState, whose stream NumPy has frozen. Raises ValueError for a batch or runs below
    1, and where no rate is there after `most` steps.
    """
    if batch < 1 or runs < 1:
        raise ValueError(f"batch={batch}, runs={runs}: expected at least 1")
    coarse = 2.0 ** np.arange(0, 7, 0.5)
    best = _race(target, batch, coarse, 4, np.random.RandomState(seed), most)[1]
    fine = best * 2.0 ** np.arange(-0.5, 0.75, 0.25)
    return _race(target, batch, fine, runs, np.random.RandomState(100 + seed), most)[0]


def _race(target, batch, rates, runs, draw, most) -> tuple[float, float]:
    """Train `runs` runs at each rate side by side, from zero; steps of the first rate there, and the rate."""
    first, second = pairs()
    cell, many = first * SYMBOLS + second, len(rates) * runs
    logits, base = np.zeros((many, SYMBOLS, SYMBOLS)), np.arange(many)[:, None] * SYMBOLS**2
    step_size, before = np.repeat(rates, runs)[:, None, None], np.full(len(rates), np.log(SYMBOLS))
    for step in range(most + 1):
        p = softmax(logits)
        now = -(frequencies() * np.log(p)).sum((1, 2)).reshape(-1, runs).mean(1)
        there = now <= target
        if step and there.any():
            part = np.where(there, (before - target) / np.where(there, before - now, 1), np.inf)
            return step - 1 + float(part.min()), float(rates[part.argmin()])
        before = now
        if batch < 1500:
            chosen = cell[draw.randint(len(cell), size=(many, batch))]
            counts = np.bincount((chosen + base).ravel(), minlength=many * SYMBOLS**2)
        else:
            counts = draw.multinomial(batch, frequencies().ravel(), size=many)
        share = counts.reshape(logits.shape) / batch
        logits -= step_size * (share.sum(2, keepdims=True) * p - share)
    raise ValueError(f"target={target}: not reached in {most} steps of {batch} at any of {rates}")

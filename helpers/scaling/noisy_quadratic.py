"""SGD on a noisy quadratic: the exact mean and variance of its parameter, and many simulated runs.

Loss h w^2 / 2, gradient of a batch h w + noise with variance sigma^2 / batch. Everything that a rule for the
learning rate promises can be read off here (Goyal et al. 2017; McCandlish et al. 2018).
"""

import numpy as np


def stationary(lr: float, batch: int, h: float = 1.0, sigma: float = 1.0) -> float:
    """Variance of w in the end: lr sigma^2 / (batch h (2 - lr h)).

    Raises ValueError where SGD diverges, at lr h of 2 or more.
    """
    if not 0 < lr * h < 2:
        raise ValueError(f"lr={lr}: expected lr * h between 0 and 2, h={h}")
    return lr * sigma**2 / (batch * h * (2 - lr * h))


def moments(
    lr: float, batch: int, steps: int, start: float = 0.0, h: float = 1.0, sigma: float = 1.0
) -> tuple[float, float]:
    """Mean and variance of w after `steps` steps from `start`, step by step and exact."""
    mean, variance = start, 0.0
    for _ in range(steps):
        mean = (1 - lr * h) * mean
        variance = (1 - lr * h) ** 2 * variance + lr**2 * sigma**2 / batch
    return mean, variance


def simulated(
    lr: float, batch: int, steps: int, runs: int, start: float = 0.0, h: float = 1.0, sigma: float = 1.0
) -> np.ndarray:
    """w after `steps` steps in each of `runs` runs, float64 (runs,); every sample's noise is drawn
    (RandomState, whose stream NumPy has frozen)."""
    draw = np.random.RandomState(0)
    w = np.full(runs, start)
    for _ in range(steps):
        noise = sigma * draw.standard_normal((batch, runs)).mean(axis=0)
        w = w - lr * (h * w + noise)
    return w

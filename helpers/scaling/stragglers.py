"""The slowest of K: expected order statistics of normal step times, by quadrature and by drawing.

A step that waits for all takes as long as its slowest rank (Chen et al. 2016). Times are a mean of 1 plus
`sigma` times a standard normal number, independent from rank to rank and step to step.
"""

import math

import numpy as np
import torch


def expected(ranks: int, sigma: float, place: int | None = None) -> float:
    """Expected time of the rank that is done as number `place`, from 1; None is the last of all.

    The density of the r-th of K is K!/((r-1)!(K-r)!) F^(r-1) (1-F)^(K-r) f; the trapezoidal rule is exact to
    rounding for such smooth integrands. Raises ValueError for a place outside 1 to `ranks` or a negative
    sigma.

    >>> round(expected(2, 1.0), 6), round(1 + 1 / math.sqrt(math.pi), 6)
    (1.56419, 1.56419)
    """
    place = ranks if place is None else place
    if not 1 <= place <= ranks:
        raise ValueError(f"place={place}: expected 1 to ranks={ranks}")
    if not sigma >= 0:
        raise ValueError(f"sigma={sigma}: expected a spread of 0 or more")
    x = torch.linspace(-12, 12, 4801, dtype=torch.float64)
    below, above = torch.special.log_ndtr(x), torch.special.log_ndtr(-x)
    factor = math.lgamma(ranks + 1) - math.lgamma(place) - math.lgamma(ranks - place + 1)
    density = factor + (place - 1) * below + (ranks - place) * above - x**2 / 2
    integrand = x * torch.exp(density) / math.sqrt(2 * math.pi)
    return 1 + sigma * float(torch.trapezoid(integrand, x))


def drawn(ranks: int, sigma: float, steps: int, seed: int = 0) -> np.ndarray:
    """Times of every rank in every step, float64 (steps, ranks), from a stream that NumPy has frozen."""
    return 1 + sigma * np.random.RandomState(seed).standard_normal((steps, ranks))


def mean_and_error(values: np.ndarray) -> tuple[float, float]:
    """Mean of independent values and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(values.size))

"""Two numbers for a link: the alpha and the bandwidth that fit measured times best."""

import numpy as np


def hockney(sizes: list[float], seconds: list[float], relative: bool = True) -> tuple[float, float]:
    """(alpha, bandwidth), seconds and bytes a second, so that alpha + size/bandwidth fits `seconds`.

    Least squares of the relative errors. With relative=False, of the absolute ones: then the largest
    message decides alone, and alpha may come out below zero while R^2 is above 0.99.
    Raises ValueError where all sizes are equal: then any alpha fits.

    >>> alpha, bandwidth = hockney([1e3, 1e6], [21e-6, 1.02e-3])
    >>> round(alpha * 1e6), round(bandwidth / 1e9)
    (20, 1)
    """
    if len(set(sizes)) < 2:
        raise ValueError(f"sizes={sizes}: expected at least two different ones")
    weights = 1 / np.asarray(seconds) if relative else np.ones(len(seconds))
    columns = np.column_stack([np.ones(len(sizes)), np.asarray(sizes, float)]) * weights[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(columns, np.asarray(seconds) * weights, rcond=None)
    return float(alpha), float(1 / beta)


def r_squared(sizes: list[float], seconds: list[float], alpha: float, bandwidth: float) -> float:
    """The share of the variance of `seconds` that the line explains."""
    times = np.asarray(seconds)
    missed = times - alpha - np.asarray(sizes) / bandwidth
    return float(1 - (missed**2).sum() / ((times - times.mean()) ** 2).sum())

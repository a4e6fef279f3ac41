"""Two numbers for a link: the alpha and the bandwidth that fit measured times best."""

import numpy as np


def hockney(sizes: list[float], seconds: list[float]) -> tuple[float, float]:
    """(alpha, bandwidth), seconds and bytes a second, so that alpha + size/bandwidth fits `seconds`.

    Least squares of the relative errors. Of the absolute ones the largest message would decide alone, and
    alpha may come out below zero while R^2 is above 0.99.
    Raises ValueError where all sizes are equal: then any alpha fits.

    >>> alpha, bandwidth = hockney([1e3, 1e6], [21e-6, 1.02e-3])
    >>> round(alpha * 1e6), round(bandwidth / 1e9)
    (20, 1)
    """
    if len(set(sizes)) < 2:
        raise ValueError(f"sizes={sizes}: expected at least two different ones")
    weights = 1 / np.asarray(seconds)
    columns = np.column_stack([np.ones(len(sizes)), np.asarray(sizes, float)]) * weights[:, None]
    (alpha, beta), *_ = np.linalg.lstsq(columns, np.ones(len(sizes)), rcond=None)
    return float(alpha), float(1 / beta)

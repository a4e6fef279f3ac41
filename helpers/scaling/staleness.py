"""Asynchronous SGD on a simulated clock: who pushes when, how stale each gradient is, what becomes of w.

A worker reads the parameter, computes for its period, pushes the gradient of what it read, and reads again
at once; the server applies what comes, in the order in which it comes (Dean et al. 2012). The loss is
w^2 / 2, so that a gradient is the parameter that was read. Times are whole numbers: no rounding, no races.
"""

import heapq
import math

import numpy as np


def arrivals(periods: list[int], updates: int) -> list[int]:
    """Which worker's gradient the server applies, update by update; ties go to the lower number.

    Raises ValueError for no worker or a period below 1.

    >>> arrivals([2, 3], updates=5)
    [0, 1, 0, 0, 1]
    """
    if not periods or min(periods) < 1:
        raise ValueError(f"periods={periods}: expected one whole number above 0 a worker")
    clock, order = [(period, worker) for worker, period in enumerate(periods)], []
    heapq.heapify(clock)
    for _ in range(updates):
        now, worker = clock[0]
        order.append(worker)
        heapq.heapreplace(clock, (now + periods[worker], worker))
    return order


def lags(order: list[int], together: int = 1) -> list[int]:
    """How many updates old each gradient is when it is used, once every worker has pushed a first time.

    together: gradients that make one update; with as many as there are workers, all wait for all.
    Raises ValueError for together below 1.

    >>> lags([0, 1, 0, 1, 0, 1]), lags([0, 1, 0, 1, 0, 1], together=2)
    ([1, 1, 1, 1], [0, 0, 0, 0])
    """
    if together < 1:
        raise ValueError(f"together={together}: expected at least 1")
    read: dict[int, int] = {}
    found = []
    for number, worker in enumerate(order):
        version = number // together
        if worker in read:
            found.append(version - read[worker])
        read[worker] = version + 1
    return found


def replay(order: list[int], lr: float, start: float = 1.0) -> list[float]:
    """The parameter after every update, if gradients come in this order."""
    w, read, trace = start, {}, []
    for worker in order:
        w = w - lr * read.get(worker, start)
        read[worker] = w
        trace.append(w)
    return trace


def limit(lag: int) -> float:
    """Largest stable lr times curvature when every gradient is `lag` updates old: 2 sin(pi/(2(2 lag + 1))).

    Levin and May (1976) state it as 2 cos(lag pi/(2 lag + 1)) for w[n+1] = w[n] - a w[n-lag].
    Raises ValueError for a negative lag.

    >>> round(limit(0), 12), round(limit(1), 12), round(limit(3), 3)
    (2.0, 1.0, 0.445)
    """
    if lag < 0:
        raise ValueError(f"lag={lag}: expected 0 or more")
    return 2 * math.sin(math.pi / (2 * (2 * lag + 1)))


def growth(lag: int, a: float) -> float:
    """Factor by which |w| grows an update in the end: largest root of z^(lag+1) = z^lag - a, in size."""
    coefficients = [1.0, -1.0] + [0.0] * (lag - 1) + [a] if lag else [1.0, a - 1.0]
    return float(np.abs(np.roots(coefficients)).max())


def searched(lag: int, low: float = 0.0, high: float = 3.0) -> float:
    """The rate at which `growth` passes 1, by bisection: what `limit` should be, without its formula."""
    while not math.isclose(low, high, rel_tol=1e-9):
        middle = (low + high) / 2
        low, high = (middle, high) if growth(lag, middle) < 1 else (low, middle)
    return low

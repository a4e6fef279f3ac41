"""Cards watched tick by tick, and speed-up when a part of the work cannot be shared.

`watch` counts steps and busy cards and knows no formula for efficiency; `finish` deals items to workers and
knows neither Amdahl's formula (1967: the same work, more workers) nor Gustafson's (1988: work that grows).
"""

import heapq
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Watched:
    """steps_a_tick: what was done; busy: share of the ticks of all cards in which they computed."""

    steps_a_tick: Fraction
    busy: Fraction


def watch(compute: list[int], wait: int, steps: int = 3) -> Watched:
    """Let cards take `steps` steps, tick by tick, and count.

    compute: ticks that each card computes in a step; wait: ticks that all wait, once all have computed.
    Raises ValueError for no card, a card that does not compute, a negative wait or no step.

    >>> watch([4, 2], wait=1, steps=2)
    Watched(steps_a_tick=Fraction(1, 5), busy=Fraction(3, 5))
    """
    if not compute or min(compute) < 1:
        raise ValueError(f"compute={compute}: expected at least one tick for every card")
    if wait < 0 or steps < 1:
        raise ValueError(f"wait={wait}, steps={steps}: expected 0 or more, and 1 or more")
    ticks = busy = 0
    for _ in range(steps):
        left, waited = list(compute), 0
        while any(left) or waited < wait:
            computing = sum(each > 0 for each in left)
            waited += computing == 0
            left = [max(0, each - 1) for each in left]
            busy += computing
            ticks += 1
    return Watched(Fraction(steps, ticks), Fraction(busy, ticks * len(compute)))


def finish(alone: int, items: int, workers: int) -> int:
    """When the last worker is done: `alone` units that one does first, then `items` of one unit each.

    Each item goes to the worker who is free first. Raises ValueError for no worker or negative work.

    >>> finish(alone=1, items=8, workers=4)
    3
    """
    if workers < 1 or alone < 0 or items < 0:
        raise ValueError(f"alone={alone}, items={items}, workers={workers}: expected 0 or more, and a worker")
    free = [alone] * workers
    for _ in range(items):
        heapq.heappush(free, heapq.heappop(free) + 1)
    return max(free)


def amdahl(alone: Fraction, workers: int) -> Fraction:
    """Speed-up with the same work; `alone`: the share of one worker's time that cannot be shared.

    Raises ValueError for less than one worker or a share outside 0 to 1.
    """
    _check(alone, workers)
    return 1 / (alone + (1 - alone) / workers)


def gustafson(alone: Fraction, workers: int) -> Fraction:
    """Speed-up with work that grows; `alone`: the share of the time on `workers` workers.

    Raises ValueError for less than one worker or a share outside 0 to 1.
    """
    _check(alone, workers)
    return alone + (1 - alone) * workers


def _check(alone: Fraction, workers: int) -> None:
    if workers < 1 or not 0 <= alone <= 1:
        raise ValueError(f"alone={alone}, workers={workers}: expected a share of 0 to 1, and a worker")

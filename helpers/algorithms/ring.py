"""Rings: every rank sends to the next one only (Patarasuk and Yuan 2009, section 3).

Chunk numbers follow the picture everybody draws: in step 1 rank i sends chunk i, and after the
reduce-scatter rank i holds the sum of chunk i + 1.
"""

import numpy as np

from helpers.schedule import ADD, COPY, Builder, Schedule

REDUCE_SCATTER, ALL_GATHER = "reduce-scatter", "all-gather"


def _reduce_scatter(build: Builder, order: list[int], first: int = 0) -> None:
    """K - 1 steps round `order`; its k-th member ends with the sum of chunk first + k + 1."""
    K = len(order)
    for t in range(K - 1):
        build.step(
            ((order[k], order[(k + 1) % K], first + (k - t) % K, ADD) for k in range(K)), REDUCE_SCATTER
        )


def _all_gather(build: Builder, order: list[int], first: int = 0) -> None:
    K = len(order)
    for t in range(K - 1):
        build.step(
            ((order[k], order[(k + 1) % K], first + (k + 1 - t) % K, COPY) for k in range(K)), ALL_GATHER
        )


def ring_reduce_scatter(ranks: int) -> Schedule:
    """K - 1 steps; rank i ends with the sum of chunk (i + 1) mod K and has sent (K - 1)/K of a vector."""
    ends = np.eye(max(ranks, 1), dtype=bool)[:, np.arange(max(ranks, 1)) - 1] if ranks > 0 else None
    build = Builder("ring-reduce-scatter", ranks, ranks, ends=ends)
    _reduce_scatter(build, list(range(ranks)))
    return build.finish()


def ring_all_gather(ranks: int) -> Schedule:
    """K - 1 steps; rank i starts with chunk (i + 1) mod K alone, everybody ends with all chunks."""
    starts = np.eye(max(ranks, 1), dtype=bool)[:, np.arange(max(ranks, 1)) - 1] if ranks > 0 else None
    build = Builder("ring-all-gather", ranks, ranks, starts=starts)
    _all_gather(build, list(range(ranks)))
    return build.finish()


def ring_allreduce(ranks: int) -> Schedule:
    """Reduce-scatter, then all-gather: 2(K - 1) steps of M/K bytes a rank."""
    build = Builder("ring-allreduce", ranks, ranks)
    _reduce_scatter(build, list(range(ranks)))
    _all_gather(build, list(range(ranks)))
    return build.finish()


def bidirectional_ring_allreduce(ranks: int) -> Schedule:
    """Two rings in opposite directions, half of the vector each: 2(K - 1) steps of M/(2K) a direction."""
    build = Builder("bidirectional-ring-allreduce", ranks, 2 * ranks)
    clockwise, back = Builder("", ranks, 2 * ranks), Builder("", ranks, 2 * ranks)
    for half, order, first in ((clockwise, range(ranks), 0), (back, range(ranks)[::-1], ranks)):
        _reduce_scatter(half, list(order), first)
        _all_gather(half, list(order), first)
    for one, other in zip(clockwise.steps, back.steps, strict=True):
        build.step([*one, *other], one.phase)
    return build.finish()


def unchunked_ring_allreduce(ranks: int) -> Schedule:
    """The whole vector passed on: K - 1 steps to add up, K - 1 to hand the sum on; one sends at a time."""
    build = Builder("unchunked-ring-allreduce", ranks, 1)
    for t in range(ranks - 1):
        build.step([(t, t + 1, 0, ADD)], "reduce")
    for t in range(ranks - 1):
        build.step([((ranks - 1 + t) % ranks, (ranks + t) % ranks, 0, COPY)], "broadcast")
    return build.finish()

"""Rings that are wrong on purpose, so that a check can be seen to find them."""

from helpers.schedule import ADD, COPY, Builder, Schedule


def resending_ring(ranks: int) -> Schedule:
    """Rank i sends its own chunk i in every step of the reduce-scatter, not what came.

    On ones, chunk i - 1 of rank i then looks complete; the all-gather hands that one round.
    """
    build = Builder("resending-ring", ranks, ranks)
    for _ in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, i, ADD) for i in range(ranks)), "reduce-scatter")
    for t in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, (i - 1 - t) % ranks, COPY) for i in range(ranks)), "all-gather")
    return build.finish()


def literal_all_gather(ranks: int) -> Schedule:
    """A correct reduce-scatter, then an all-gather that sends the chunk it completed first every time."""
    build = Builder("literal-all-gather", ranks, ranks)
    for t in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, (i - t) % ranks, ADD) for i in range(ranks)), "reduce-scatter")
    for _ in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, (i + 1) % ranks, COPY) for i in range(ranks)), "all-gather")
    return build.finish()

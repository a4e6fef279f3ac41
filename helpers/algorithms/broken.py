"""Rings that are wrong on purpose, so that a check can be seen to find them."""

from helpers.schedule import ADD, COPY, Builder, Schedule


def resending_ring(ranks: int) -> Schedule:
    """A reduce-scatter in which rank i sends its own chunk i in every step, not what came."""
    build = Builder("resending-ring", ranks, ranks)
    for _ in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, i, ADD) for i in range(ranks)), "reduce-scatter")
    return build.finish()


def literal_all_gather(ranks: int) -> Schedule:
    """A correct reduce-scatter, then an all-gather that sends "the locally held reduced chunk" every time."""
    build = Builder("literal-all-gather", ranks, ranks)
    for t in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, (i - t) % ranks, ADD) for i in range(ranks)), "reduce-scatter")
    for _ in range(ranks - 1):
        build.step(((i, (i + 1) % ranks, (i + 1) % ranks, COPY) for i in range(ranks)), "all-gather")
    return build.finish()

"""All-to-all: everybody has something else for everybody. No sum; the collective of expert parallelism."""

import numpy as np

from helpers.schedule import COPY, Builder, Schedule


def all_to_all(ranks: int) -> Schedule:
    """K - 1 steps; in step s rank i sends its block for rank i + s there. Chunk i K + j goes from i to j."""
    K = max(ranks, 1)
    starts, ends = np.zeros((K, K * K), bool), np.zeros((K, K * K), bool)
    for i in range(K):
        starts[i, i * K : (i + 1) * K] = True
        ends[i, i::K] = True
    build = Builder("all-to-all", ranks, K * K if ranks > 0 else 1, starts=starts, ends=ends)
    for s in range(1, ranks):
        build.step(((i, (i + s) % K, i * K + (i + s) % K, COPY) for i in range(K)), "exchange")
    return build.finish()

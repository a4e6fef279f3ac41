"""AllReduce by a switch that adds (Graham et al. 2016, SHARP): nobody but the switch sees all the parts."""

import numpy as np

from helpers.schedule import ADD, COPY, Builder, Schedule


def in_network_allreduce(nodes: int, gpus: int) -> Schedule:
    """Reduce-scatter inside each node, one addition in the switch of each rail, all-gather inside each node.

    Rank r is GPU r mod g of node r // g; switch j, with the number n g + j, adds what the j-th GPUs send.
    A switch has a port for every cable, so its own load is no limit.
    """
    name = "in-network-allreduce"
    for word, value in (("nodes", nodes), ("gpus", gpus)):
        if value < 1:
            raise ValueError(f"{name}: {word}={value}: expected at least 1")
    K = nodes * gpus
    starts = np.zeros((K + gpus, gpus), bool)
    starts[:K] = True  # the switches hold nothing of their own
    build = Builder(name, K, gpus, nodes=K + gpus, starts=starts, ends=starts.copy())

    def inside(phase: str, shift: int, add: bool) -> None:
        for t in range(gpus - 1):
            build.step(
                (
                    (n * gpus + j, n * gpus + (j + 1) % gpus, (j + shift - t) % gpus, add)
                    for n in range(nodes)
                    for j in range(gpus)
                ),
                phase,
            )

    inside("reduce-scatter in node", 0, ADD)
    cables = [(n * gpus + j, K + j, (j + 1) % gpus) for n in range(nodes) for j in range(gpus)]
    build.step(((gpu, switch, part, ADD) for gpu, switch, part in cables), "to the switch")
    build.step(((switch, gpu, part, COPY) for gpu, switch, part in cables), "from the switch")
    inside("all-gather in node", 1, COPY)
    return build.finish()

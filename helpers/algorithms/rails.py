"""Several nodes with several GPUs: rings that use every port, and the hierarchical AllReduce.

Rank r is GPU r mod g of node r // g, and each GPU has a network port of its own. A rail is the network
that joins the ports of the same number of all nodes.
"""

from helpers.schedule import ADD, COPY, Builder, Schedule


def rails_allreduce(nodes: int, gpus: int, rings: int) -> Schedule:
    """`rings` rings over all n g ranks, each with its part of the vector and its own order inside a node.

    Ring r enters every node at GPU r and leaves it at GPU r - 1, so each network port serves one ring out
    and one in. Its hops across change the rail; NCCL would go back to the port of entry, over NVLink.
    rings=1 is the plain ring. Raises ValueError for rings outside 1 to gpus.
    """
    name = "rails-allreduce"
    _check(name, nodes, gpus)
    if not 1 <= rings <= gpus:
        raise ValueError(f"{name}: rings={rings}: expected 1 to {gpus}, one a port")
    K = nodes * gpus
    build = Builder(name, K, K * rings)
    orders = [[n * gpus + (r + j) % gpus for n in range(nodes) for j in range(gpus)] for r in range(rings)]
    for phase, shift, add in (("reduce-scatter", 0, ADD), ("all-gather", 1, COPY)):
        for t in range(K - 1):
            moves = [
                (order[k], order[(k + 1) % K], r * K + (k + shift - t) % K, add)
                for r, order in enumerate(orders)
                for k in range(K)
            ]
            build.step(moves, phase)
    return build.finish()


def hierarchical_allreduce(nodes: int, gpus: int) -> Schedule:
    """Reduce-scatter inside each node, a ring per GPU number across nodes, all-gather inside each node.

    The vector has g parts of n chunks; after the first phase GPU j of each node answers for part j + 1.
    """
    name = "hierarchical-allreduce"
    _check(name, nodes, gpus)
    build = Builder(name, nodes * gpus, nodes * gpus)

    def inside(phase: str, shift: int, add: bool) -> None:
        for t in range(gpus - 1):
            moves = []
            for n in range(nodes):
                for j in range(gpus):
                    part = (j + shift - t) % gpus
                    next_rank = n * gpus + (j + 1) % gpus
                    moves += [(n * gpus + j, next_rank, part * nodes + c, add) for c in range(nodes)]
            build.step(moves, phase)

    def across(phase: str, shift: int, add: bool) -> None:
        for t in range(nodes - 1):
            moves = []
            for n in range(nodes):
                for j in range(gpus):
                    part = (j + 1) % gpus
                    next_rank = (n + 1) % nodes * gpus + j
                    moves.append((n * gpus + j, next_rank, part * nodes + (n + shift - t) % nodes, add))
            build.step(moves, phase)

    inside("reduce-scatter in node", 0, ADD)
    across("reduce-scatter across", 0, ADD)
    across("all-gather across", 1, COPY)
    inside("all-gather in node", 1, COPY)
    return build.finish()


def _check(name: str, nodes: int, gpus: int) -> None:
    for word, value in (("nodes", nodes), ("gpus", gpus)):
        if value < 1:
            raise ValueError(f"{name}: {word}={value}: expected at least 1")

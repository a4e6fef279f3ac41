"""Parameter servers (Li et al. 2014): everybody sends to the centre, the centre answers everybody."""

import numpy as np

from helpers.schedule import ADD, COPY, Builder, Schedule


def parameter_server(ranks: int, servers: int = 1, colocated: bool = False) -> Schedule:
    """K workers push, S servers add and answer; server s is responsible for chunk s.

    Servers are nodes of their own with the numbers K, K + 1, ...; colocated: server s is worker s
    instead, and what it would send to itself is not sent (needs servers <= ranks).
    Raises ValueError for servers < 1, or more of them than workers to sit on.
    """
    name = "parameter-server"
    if servers < 1 or (colocated and servers > ranks):
        limit = f"1 to {ranks}" if colocated else "at least 1"
        raise ValueError(f"{name}: servers={servers}: expected {limit}")
    nodes = ranks if colocated else ranks + servers
    starts = np.zeros((max(nodes, 1), servers), bool)
    starts[: max(ranks, 0)] = True
    build = Builder(name, ranks, servers, nodes=nodes, starts=starts, ends=starts.copy())

    def at(s: int) -> int:
        return s if colocated else ranks + s

    pairs = [(worker, s) for worker in range(ranks) for s in range(servers) if worker != at(s)]
    build.step(((worker, at(s), s, ADD) for worker, s in pairs), "push")
    build.step(((at(s), worker, s, COPY) for worker, s in pairs), "pull")
    return build.finish()

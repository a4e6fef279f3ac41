"""Price a schedule: event simulation on a network, and beside it the closed formulas of the text.

The rule of the events: a rank starts a step when it and its partners have finished the one before; what
shares a port in a step shares its bandwidth; a message costs alpha and the bytes of its busiest port over
the bandwidth. Hockney (1994) for one message, Thakur et al. (2005) for the collectives.

With `alpha_on_the_way` a message leaves the sender free when its last byte has left, and nobody waits for
the receiver: alpha is time on the wire, as latency is in LogGP (Alexandrov et al. 1995).
"""

import math
from dataclasses import dataclass

import numpy as np

from helpers.cost.network import Network, flat
from helpers.schedule import Schedule


@dataclass(frozen=True)
class Price:
    """seconds: until the last rank is done. by_phase: seconds until the last rank has left each phase."""

    seconds: float
    by_phase: dict[str, float]


def price(schedule: Schedule, total_bytes: float, network: Network, alpha_on_the_way: bool = False) -> Price:
    """Time of `schedule` for a vector of `total_bytes` bytes, cut into equal chunks, on `network`."""
    chunk = total_bytes / schedule.chunks
    clock, phases = np.zeros(schedule.nodes), {}
    for step in schedule.steps:
        across = network.is_across(step.source, step.destination)
        out = network.ports(step.source, across)
        into = network.ports(step.destination, across)
        ports = 2 * schedule.nodes
        load_out = np.bincount(out, minlength=ports)[out]
        load_in = np.bincount(into, minlength=ports)[into]
        alpha = np.where(across, network.across.alpha, network.inside.alpha if network.inside else 0.0)
        bandwidth = np.where(
            across, network.across.bandwidth, network.inside.bandwidth if network.inside else 1.0
        )
        start = clock[step.source]
        if not alpha_on_the_way:
            start = np.maximum(start, clock[step.destination])
        gone = start + np.maximum(load_out, load_in) * chunk / bandwidth
        after = clock.copy()
        np.maximum.at(after, step.source, gone if alpha_on_the_way else gone + alpha)
        np.maximum.at(after, step.destination, gone + alpha)
        clock = after
        phases[step.phase] = float(clock.max())
    return Price(float(clock.max()) if schedule.steps else 0.0, phases)


def price_flat(schedule: Schedule, total_bytes: float, alpha: float, bandwidth: float) -> float:
    """Seconds of `schedule` where every rank has one port of the same kind: the alpha-beta model."""
    return price(schedule, total_bytes, flat(alpha, bandwidth)).seconds


def ring(K: int, M: float, alpha: float, B: float) -> float:
    """Ring AllReduce: 2(K - 1) alpha + 2 (K - 1)/K M/B."""
    return 2 * (K - 1) * alpha + 2 * (K - 1) / K * M / B


def half_ring(K: int, M: float, alpha: float, B: float) -> float:
    """Ring reduce-scatter, or all-gather: half of ring."""
    return ring(K, M, alpha, B) / 2


def unchunked_ring(K: int, M: float, alpha: float, B: float) -> float:
    """The whole vector passed round and round again: 2(K - 1)(alpha + M/B)."""
    return 2 * (K - 1) * (alpha + M / B)


def binomial_tree(K: int, M: float, alpha: float, B: float) -> float:
    """Reduce and broadcast: 2 ceil(log2 K)(alpha + M/B)."""
    return 2 * math.ceil(math.log2(K)) * (alpha + M / B)


def halving_doubling(K: int, M: float, alpha: float, B: float) -> float:
    """2 log2 P alpha + 2 (P - 1)/P M/B with P the power of two below K, and 2(alpha + M/B) if K is not P."""
    P = 1 << (K.bit_length() - 1)
    core = 2 * math.log2(P) * alpha + 2 * (P - 1) / P * M / B
    return core if P == K else core + 2 * (alpha + M / B)


def parameter_server(K: int, M: float, alpha: float, B: float, servers: int = 1) -> float:
    """Push and pull through S servers of their own: 2(alpha + max(M, K M/S)/B)."""
    return 2 * (alpha + max(M, K * M / servers) / B)


def all_to_all(K: int, M: float, alpha: float, B: float) -> float:
    """K - 1 blocks of M/K^2, M being all K^2 blocks together: (K - 1)(alpha + M/(K^2 B))."""
    return (K - 1) * (alpha + M / K**2 / B)


def hierarchical(n: int, g: int, M: float, network: Network) -> float:
    """Rings inside nodes around rings across: 2(g-1)(a_in + M/(g B_in)) + 2(n-1)(a + M/(n g B))."""
    inside, across = network.inside, network.across
    one = 2 * (g - 1) * (inside.alpha + M / g / inside.bandwidth) if g > 1 else 0.0
    return one + 2 * (n - 1) * (across.alpha + M / (n * g) / across.bandwidth)


def rails(n: int, g: int, R: int, M: float, network: Network) -> float:
    """R rings over n g ranks: 2(n g - 1) times the slower of a chunk across and what a GPU sends inside."""
    K, chunk = n * g, M / (R * n * g)
    steps = []
    if n > 1:
        steps.append(network.across.alpha + chunk / network.across.bandwidth)
    if g > 1:
        carried = R if R < g or n == 1 else g - 1
        steps.append(network.inside.alpha + carried * chunk / network.inside.bandwidth)
    return 2 * (K - 1) * max(steps, default=0.0)


def threshold(K: int, alpha: float, B: float) -> float:
    """M* = K alpha B: the bytes at which both terms of the ring are equal."""
    return K * alpha * B


FORMULAS = {
    "ring-allreduce": ring,
    "bidirectional-ring-allreduce": ring,
    "ring-reduce-scatter": half_ring,
    "ring-all-gather": half_ring,
    "unchunked-ring-allreduce": unchunked_ring,
    "binomial-tree-allreduce": binomial_tree,
    "halving-doubling-allreduce": halving_doubling,
    "parameter-server": parameter_server,
    "all-to-all": all_to_all,
}

"""What every port of a network carries, and the time below which no pipeline gets.

A port is busy for its bytes over its bandwidth, whatever the order of the messages. The busiest one gives
a bound: with the steps of an algorithm cut into ever smaller pieces that follow each other, its time goes
down to that, and not below.
"""

from dataclasses import dataclass

import numpy as np

from helpers.cost.network import Network
from helpers.schedule import Schedule


@dataclass(frozen=True)
class Load:
    """Bytes out of and into every rank's port, float64 (ranks,): links inside a node, and across nodes."""

    inside_out: np.ndarray
    inside_in: np.ndarray
    across_out: np.ndarray
    across_in: np.ndarray


def load(schedule: Schedule, total_bytes: float, network: Network) -> Load:
    """Bytes on every port of `network` when `schedule` moves a vector of `total_bytes`, in equal chunks."""
    chunk, ranks = total_bytes / schedule.chunks, schedule.nodes
    totals = np.zeros((2, 2 * ranks))
    for step in schedule.steps:
        across = network.is_across(step.source, step.destination)
        for way, ends in enumerate((step.source, step.destination)):
            totals[way] += np.bincount(network.ports(ends, across), minlength=2 * ranks)
    (out, into) = totals * chunk
    return Load(out[0::2], into[0::2], out[1::2], into[1::2])


def busiest_port(schedule: Schedule, total_bytes: float, network: Network) -> float:
    """Seconds for which the busiest port of a rank is busy: what a perfect pipeline of `schedule` takes.

    Nodes of the schedule beyond the ranks (servers, switches) are left out: they may have more ports.
    """
    found = load(schedule, total_bytes, network)
    ranks = slice(schedule.ranks)
    across = max(found.across_out[ranks].max(), found.across_in[ranks].max()) / network.across.bandwidth
    if network.inside is None:
        return float(across)
    inside = max(found.inside_out[ranks].max(), found.inside_in[ranks].max()) / network.inside.bandwidth
    return float(max(across, inside))

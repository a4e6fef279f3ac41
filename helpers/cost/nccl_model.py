"""NCCL's own estimate of an AllReduce, for the two oldest of its algorithms.

NCCL decides by a model, and this is the part of it that prices Ring and Tree with the protocol Simple on
several nodes of NVLink GPUs of the Hopper generation (src/graph/tuning.cc, version 2.30.7): a latency that
is paid once, one for each hop inside a node and one for each hop across, and a bandwidth. Left out: the
protocols LL and LL128, NVLS and NVLSTree (which H100s with NVSwitch often take), CollNet, limits of a
channel, what the topology adds to a hop across, and the cost of posting to the network, which on AMD hosts
raises the ring's hop inside to 6 microseconds.
"""

from dataclasses import dataclass

# Microseconds, protocol Simple.
BASE = 8.4  # once a collective, whichever algorithm
HOP_INSIDE = {"ring": 3.4, "tree": 4.0}  # NVLink
HOP_ACROSS = 14.0
RING_PLATEAU = 1.4  # the ring's latency counts so much more once every chunk has 64 bytes

TREE_SHARE = 0.92  # of the ring's bus bandwidth
# What the tree reaches of that, by the power of two of the size, from 64 bytes up.
TREE_BY_SIZE = (
    *(0.9,) * 7, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """Microseconds of latency, and of bytes over bandwidth."""

    latency: float
    transfer: float

    @property
    def total(self) -> float:
        return self.latency + self.transfer


def hops(algorithm: str, nodes: int, gpus: int) -> tuple[int, int]:
    """Hops that follow each other inside nodes and across them, in one AllReduce.

    >>> hops("ring", 8, 8), hops("tree", 8, 8)
    ((112, 14), (14, 6))
    """
    if algorithm == "ring":
        across = 2 * (nodes - 1)
        return 2 * (nodes * gpus - 1) - across, across
    if algorithm == "tree":
        return 2 * (gpus - 1), 2 * (nodes.bit_length() - 1)
    raise ValueError(f"algorithm={algorithm!r}: expected 'ring' or 'tree'")


def latency(algorithm: str, nodes: int, gpus: int) -> float:
    """Microseconds before size counts: a base, and the hops."""
    inside, across = hops(algorithm, nodes, gpus)
    return BASE + inside * HOP_INSIDE[algorithm] + across * HOP_ACROSS


def estimate(algorithm: str, nodes: int, gpus: int, total_bytes: float, bus_bandwidth: float) -> Estimate:
    """An AllReduce of `total_bytes` over `nodes` of `gpus`, the ring's bus bandwidth given in bytes a second.

    Raises ValueError for another algorithm than 'ring' or 'tree', and for fewer than 2 nodes.
    """
    if nodes < 2:
        raise ValueError(f"nodes={nodes}: expected at least 2; one node has other constants")
    ranks, late = nodes * gpus, latency(algorithm, nodes, gpus)
    if algorithm == "ring":
        rate = bus_bandwidth * ranks / (2 * (ranks - 1))
        return Estimate(late * RING_PLATEAU, total_bytes / rate * 1e6)
    power = int(total_bytes / 64).bit_length() - 1
    reached = TREE_BY_SIZE[power] if 0 <= power < len(TREE_BY_SIZE) else 1.0
    return Estimate(late, total_bytes / (bus_bandwidth * TREE_SHARE * 0.5 * reached) * 1e6)

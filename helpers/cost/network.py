"""What a schedule is priced on: classes of links with a latency and a bandwidth, and shared ports."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Link:
    """A class of links. alpha: seconds a message; bandwidth: bytes a second, one way."""

    alpha: float
    bandwidth: float

    def __post_init__(self):
        if not self.alpha >= 0:
            raise ValueError(f"alpha={self.alpha}: expected seconds, 0 or more")
        if not self.bandwidth > 0:
            raise ValueError(f"bandwidth={self.bandwidth}: expected bytes a second, above 0")


@dataclass(frozen=True)
class Network:
    """Ranks on nodes. Every rank has one port out and one in per class of link (full duplex).

    inside: the link between ranks of one node. across: between nodes. gpus: ranks a node; 0 puts all
    ranks on one flat network of `across` links. shared_port: all ranks of a node share one port across.
    """

    across: Link
    inside: Link | None = None
    gpus: int = 0
    shared_port: bool = False

    def __post_init__(self):
        if self.gpus < 0 or (self.gpus and self.inside is None):
            raise ValueError(f"gpus={self.gpus}: expected 0, or a number of ranks a node with `inside` given")

    def is_across(self, source: np.ndarray, destination: np.ndarray) -> np.ndarray:
        """Which transfers leave their node: bool, like the arguments."""
        if not self.gpus:
            return np.ones(len(source), bool)
        return source // self.gpus != destination // self.gpus

    def ports(self, ranks: np.ndarray, across: np.ndarray) -> np.ndarray:
        """Numbers of the ports that `ranks` use: even for links inside, odd for links across."""
        owner = ranks // self.gpus * self.gpus if self.shared_port and self.gpus else ranks
        return np.where(across, 2 * owner + 1, 2 * ranks)


def flat(alpha: float, bandwidth: float) -> Network:
    """All ranks on links of one class, the network of the alpha-beta model."""
    return Network(Link(alpha, bandwidth))

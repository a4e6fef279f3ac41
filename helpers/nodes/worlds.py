"""How many worlds did a launch make? Read from what `helpers.ddp` printed: each world's rank 0 speaks."""

import re
from typing import NamedTuple

from helpers.nodes.together import Ended

SAYS = re.compile(
    r"(?P<ranks>\d+) ranks?, .*?loss (?P<first>\d+\.\d+).*loss (?P<last>\d+\.\d+).*"
    r"rank 0: (?P<same>\d+ of \d+)\nsha256 (?P<digest>\w+)",
    re.DOTALL,
)


class World(NamedTuple):
    """One process group: its ranks, first and last loss in nats, how many replicas agree, their digest."""

    ranks: int
    first: float
    last: float
    same: str
    digest: str

    def __str__(self) -> str:
        return f"{self.ranks} ranks, loss {self.first:.1f} to {self.last:.1f}, equal replicas {self.same}"


def world_of(node: Ended) -> World | None:
    """The world whose rank 0 is on this node, or None where rank 0 is elsewhere.

    Raises RuntimeError with the node's own words when it did not end well.

    >>> print(world_of(Ended(0, "", "")))
    None
    """
    if node.status != 0:
        raise RuntimeError(f"a node ended with status {node.status}: {node.err.strip()[-500:]}")
    told = SAYS.search(node.out)
    if told is None:
        return None
    numbers = float(told["first"]), float(told["last"])
    return World(int(told["ranks"]), *numbers, told["same"], told["digest"])

"""Public measurements of collectives on clusters, as people published them (book/data/clusters)."""

import csv
from dataclasses import dataclass

from helpers.ledger.claims import ROOT

FOLDER = ROOT / "book" / "data" / "clusters"
WIRE_FACTOR = {  # bytes a rank sends in a ring, in units of the message: nccl-tests, PERFORMANCE.md
    "all_reduce": lambda K: 2 * (K - 1) / K,
    "reduce_scatter": lambda K: (K - 1) / K,
    "all_gather": lambda K: (K - 1) / K,
}


@dataclass(frozen=True)
class Measured:
    """One table of nccl-tests. seconds: {bytes of the message: seconds}, out of place."""

    name: str
    collective: str
    ranks: int
    nodes: int
    url: str
    seconds: dict[int, float]

    @property
    def gpus(self) -> int:
        """Ranks a node."""
        return self.ranks // self.nodes

    def bus_bandwidth(self, size: int) -> float:
        """busbw in bytes a second: what every rank sends, over the time, if ranks send point to point and
        each has one link (nccl-tests, PERFORMANCE.md)."""
        return WIRE_FACTOR[self.collective](self.ranks) * size / self.seconds[size]


def measured(name: str) -> Measured:
    """The table `name`; raises ValueError naming the tables there are."""
    with (FOLDER / "INDEX.csv").open(encoding="utf-8", newline="") as file:
        index = {row["slug"]: row for row in csv.DictReader(file)}
    if name not in index:
        raise ValueError(f"name={name!r}: expected one of {', '.join(sorted(index))}")
    about = index[name]
    with (FOLDER / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    seconds = {int(row["size_bytes"]): float(row["time_us_out_of_place"]) / 1e6 for row in rows}
    ranks, nodes = int(about["gpus_total"]), int(about["nodes"])
    return Measured(name, about["collective"], ranks, nodes, about["url"], seconds)

"""The data structure that every algorithm writes and every reader reads.

A Schedule is a list of steps. All transfers of a step happen at once: what is sent in a step was held
before it. A transfer moves one chunk of the vector from a source to a destination, which adds it to its
own or overwrites its own. Left out: time and bytes; those are the readers'.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

ADD, COPY = True, False


class Transfer(NamedTuple):
    """One chunk on its way. `add` says whether the destination adds (ADD) or overwrites (COPY)."""

    source: int
    destination: int
    chunk: int
    add: bool


@dataclass(frozen=True)
class Step:
    """Transfers that happen at once, as equally long int arrays, and the phase they belong to."""

    source: np.ndarray
    destination: np.ndarray
    chunk: np.ndarray
    add: np.ndarray
    phase: str

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[Transfer]:
        columns = (self.source, self.destination, self.chunk, self.add)
        return map(Transfer._make, zip(*(column.tolist() for column in columns), strict=True))


@dataclass(frozen=True)
class Schedule:
    """An algorithm written out.

    name: as in the list of algorithms. ranks: how many contribute. nodes: how many take part, servers
    included. chunks: into how many parts the vector is cut.
    starts: bool (nodes, chunks), who holds a contribution of its own at the start; ends: bool (nodes,
    chunks), who has to hold the full sum at the end.
    """

    name: str
    ranks: int
    nodes: int
    chunks: int
    steps: tuple[Step, ...]
    starts: np.ndarray
    ends: np.ndarray

    @property
    def transfers(self) -> int:
        """Number of transfers in all steps."""
        return sum(map(len, self.steps))

    @property
    def phases(self) -> list[str]:
        """Names of the phases, in order of appearance."""
        return list(dict.fromkeys(step.phase for step in self.steps))


@dataclass
class Builder:
    """What a writer fills: `step(transfers, phase)` once a step, then `finish()`.

    Raises ValueError naming the algorithm and the value for K < 1, a rank or chunk out of range, and a
    chunk that is sent before anything of it is held.
    """

    name: str
    ranks: int
    chunks: int
    nodes: int = 0
    starts: np.ndarray | None = None
    ends: np.ndarray | None = None
    steps: list[Step] = field(default_factory=list)

    def __post_init__(self):
        for name in ("ranks", "chunks"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{self.name}: {name}={value!r}: expected a whole number of at least 1")
        self.nodes = self.nodes or self.ranks
        shape = (self.nodes, self.chunks)
        if self.starts is None:
            self.starts = np.zeros(shape, bool)
            self.starts[: self.ranks] = True
        if self.ends is None:
            self.ends = np.zeros(shape, bool)
            self.ends[: self.ranks] = True
        self._held = self.starts.copy()

    def step(self, transfers: Iterable[tuple[int, int, int, bool]], phase: str) -> None:
        """Append one step; an empty one is dropped."""
        rows = np.array(list(transfers), dtype=np.int64).reshape(-1, 4)
        if not len(rows):
            return
        source, destination, chunk, add = rows.T
        number = len(self.steps) + 1
        for name, values, limit in (
            ("source", source, self.nodes),
            ("destination", destination, self.nodes),
            ("chunk", chunk, self.chunks),
        ):
            wrong = (values < 0) | (values >= limit)
            if wrong.any():
                raise ValueError(
                    f"{self.name}, step {number}: {name} {values[wrong][0]} is out of range 0 to {limit - 1}"
                )
        if (source == destination).any():
            rank = source[source == destination][0]
            raise ValueError(f"{self.name}, step {number}: rank {rank} sends to itself")
        empty = ~self._held[source, chunk]
        if empty.any():
            raise ValueError(
                f"{self.name}, step {number}: rank {source[empty][0]} sends chunk {chunk[empty][0]} "
                "before it holds anything of it"
            )
        self._held[destination, chunk] = True
        self.steps.append(Step(source, destination, chunk, add.astype(bool), phase))

    def finish(self) -> Schedule:
        """The finished schedule."""
        return Schedule(
            self.name, self.ranks, self.nodes, self.chunks, tuple(self.steps), self.starts, self.ends
        )


def chunk_sizes(length: int, chunks: int) -> np.ndarray:
    """Elements of each chunk when `length` elements are cut as evenly as possible, longer chunks first.

    >>> chunk_sizes(10, 4).tolist()
    [3, 3, 2, 2]
    """
    if length < 0:
        raise ValueError(f"length={length}: expected 0 or more elements")
    sizes = np.full(chunks, length // chunks)
    sizes[: length % chunks] += 1
    return sizes

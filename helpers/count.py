"""Count the bytes of a schedule: per rank, per link, per phase. No formula, only what the steps say."""

from dataclasses import dataclass

import numpy as np

from helpers.schedule import Schedule, chunk_sizes


@dataclass(frozen=True)
class Bytes:
    """sent, received: bytes by node. by_link: {(source, destination): bytes}. by_phase: {phase: bytes}."""

    sent: np.ndarray
    received: np.ndarray
    by_link: dict[tuple[int, int], int]
    by_phase: dict[str, int]
    messages: np.ndarray

    @property
    def total(self) -> int:
        """Bytes on all links together."""
        return int(self.sent.sum())


def count(schedule: Schedule, length: int, itemsize: int = 4) -> Bytes:
    """Bytes that `schedule` moves for vectors of `length` elements of `itemsize` bytes."""
    sizes = chunk_sizes(length, schedule.chunks) * itemsize
    sent, received, messages = (np.zeros(schedule.nodes, np.int64) for _ in range(3))
    links, phases = np.zeros(schedule.nodes**2, np.int64), dict.fromkeys(schedule.phases, 0)
    for step in schedule.steps:
        moved = sizes[step.chunk]
        np.add.at(sent, step.source, moved)
        np.add.at(received, step.destination, moved)
        np.add.at(messages, step.source, 1)
        np.add.at(links, step.source * schedule.nodes + step.destination, moved)
        phases[step.phase] += int(moved.sum())
    used = {divmod(int(i), schedule.nodes): int(links[i]) for i in np.flatnonzero(links)}
    return Bytes(sent, received, used, phases, messages)

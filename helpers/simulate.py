"""Run a schedule on numpy arrays, and keep account of whose contributions are in every chunk.

A contribution is one bit: bit r of a mask says that rank r's numbers are in. With data of all ones a
chunk from which somebody is missing can look right; its mask cannot. A mask does not count, so an addition
of what is already in is refused, unless `strict` is off.
"""

from dataclasses import dataclass, field

import numpy as np

from helpers.schedule import Schedule, chunk_sizes


class DoubleCount(ValueError):
    """A transfer would add a contribution that is already in."""


@dataclass
class Run:
    """What a simulation leaves: arrays by node, masks [node][chunk], and, traced, all masks by step."""

    arrays: list[np.ndarray]
    masks: list[list[int]]
    trace: list[list[list[int]]] = field(default_factory=list)


def simulate(schedule: Schedule, arrays: list[np.ndarray], trace: bool = False, strict: bool = True) -> Run:
    """Run every step on copies of `arrays`, one 1-d array a rank, all of one length and type.

    trace: keep the masks before the first step and after each one. strict: refuse double counting;
    False lets it happen, so that a broken algorithm can be shown.
    Raises ValueError for arrays that do not fit, DoubleCount naming step, rank and chunk.
    """
    if len(arrays) != schedule.ranks or len({(a.shape, a.dtype) for a in arrays}) > 1 or arrays[0].ndim != 1:
        raise ValueError(f"arrays: expected {schedule.ranks} one-dimensional arrays of one length and type")
    held = [a.copy() for a in arrays]
    held += [np.zeros_like(arrays[0]) for _ in range(schedule.nodes - schedule.ranks)]
    edges = np.concatenate([[0], np.cumsum(chunk_sizes(len(arrays[0]), schedule.chunks))]).tolist()
    slices = [slice(a, b) for a, b in zip(edges, edges[1:], strict=False)]
    masks = [[1 << n if there else 0 for there in row] for n, row in enumerate(schedule.starts.tolist())]
    run = Run(held, masks, [[list(row) for row in masks]] if trace else [])
    # Numbers are moved through a view a chunk: slicing once is cheaper than slicing at each transfer.
    views = [[a[s] for s in slices] for a in held]
    for number, step in enumerate(schedule.steps, 1):
        # What is sent in a step was held before it: take all payloads first.
        moves = list(step)
        sent = [(views[m.source][m.chunk].copy(), masks[m.source][m.chunk]) for m in moves]
        for (_, to, chunk, add), (payload, mask) in zip(moves, sent, strict=True):
            if not add:
                views[to][chunk][:] = payload
                masks[to][chunk] = mask
                continue
            if strict and masks[to][chunk] & mask:
                raise DoubleCount(f"step {number}: rank {to} would count chunk {chunk} twice")
            views[to][chunk] += payload
            masks[to][chunk] |= mask
        if trace:
            run.trace.append([list(row) for row in masks])
    return run


def check_complete(schedule: Schedule, masks: list[list[int]]) -> None:
    """Assert that every chunk that has to end somewhere holds every contribution to it."""
    for chunk in range(schedule.chunks):
        full = sum(1 << n for n in range(schedule.nodes) if schedule.starts[n, chunk])
        for node in range(schedule.nodes):
            if schedule.ends[node, chunk]:
                missing = [n for n in range(schedule.nodes) if (full & ~masks[node][chunk]) >> n & 1]
                assert not missing, (
                    f"rank {node}, chunk {chunk}: contributions of ranks {missing} are missing"
                )

"""The player: a collective step by step, to be stopped, stepped and scrubbed.

The module draws, Python computes: player.js replays what `trace_of` recorded and knows no algorithm.
Left out: time and bytes. Every step takes as long as the last, whatever it moves.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from helpers.count import count
from helpers.drawn import Drawn
from helpers.schedule import Schedule
from helpers.simulate import simulate

LARGEST = 8  # ranks whose cards fit on a phone with numbers that can be read


def play(write: Callable[[int], Schedule], sizes: Iterable[int] = range(2, 9), start: int = 4) -> Drawn:
    """A player of what `write` writes, for each number of ranks in `sizes`; it opens with `start` ranks.

    Raises ValueError for no sizes, a size that is not 2 to 8, and a start that is none of the sizes.

    >>> from helpers.algorithms import ring_allreduce
    >>> play(ring_allreduce)
    ring-allreduce on 2 to 8 ranks, step by step: the player runs in JupyterLab and on the book's site.
    """
    sizes = sorted(set(sizes))
    if not sizes or sizes[0] < 2 or sizes[-1] > LARGEST:
        raise ValueError(f"sizes={sizes}: expected one or more numbers of ranks from 2 to {LARGEST}")
    if start not in sizes:
        raise ValueError(f"start={start!r}: expected one of the sizes {sizes}")
    traces = {str(ranks): compact(trace_of(write(ranks))) for ranks in sizes}
    span = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"{sizes[0]}"
    words = f"{traces[str(start)]['name']} on {span} ranks, step by step: "
    words += "the player runs in JupyterLab and on the book's site."
    return Drawn("player", {"start": start, "traces": traces}, words)


def trace_of(schedule: Schedule) -> dict:
    """What the player replays, ready for JSON; a schedule that counts twice is recorded as it runs.

    steps: a phase's place in `phases`, and moves [source, destination, chunk, 1 to add or 0 to overwrite].
    states: masks [state][node][chunk], before the first step and after each; nodes beyond the ranks are
    servers. sent: after each state, what the node that sent most has sent, in vectors of equal chunks.
    even: whether all nodes have always sent the same.

    >>> from helpers.algorithms import ring_allreduce
    >>> trace = trace_of(ring_allreduce(2))
    >>> trace["steps"][0], trace["states"][1], trace["sent"]
    ({'phase': 0, 'moves': [[0, 1, 0, 1], [1, 0, 1, 1]]}, [[1, 3], [3, 2]], ['0', '1/2', '1'])
    """
    ones = [np.ones(schedule.chunks, int)] * schedule.ranks
    steps = schedule.steps
    prefixes = [replace(schedule, steps=steps[:done]) for done in range(len(steps) + 1)]
    sent = [count(prefix, schedule.chunks, itemsize=1).sent for prefix in prefixes]
    return {
        "name": schedule.name,
        "ranks": schedule.ranks,
        "chunks": schedule.chunks,
        "phases": schedule.phases,
        "steps": [
            {
                "phase": schedule.phases.index(step.phase),
                "moves": [[move.source, move.destination, move.chunk, int(move.add)] for move in step],
            }
            for step in steps
        ],
        "states": simulate(schedule, ones, trace=True, strict=False).trace,
        "sent": [str(Fraction(int(most.max()), schedule.chunks)) for most in sent],
        "even": all(bool((each == each[0]).all()) for each in sent),
    }


def compact(trace: dict) -> dict:
    """The trace as a page carries it: the first state, and with each move what its cell then holds.

    >>> from helpers.algorithms import ring_allreduce
    >>> small = compact(trace_of(ring_allreduce(2)))
    >>> small["start"], small["steps"][0]["moves"]
    ([[1, 1], [2, 2]], [[0, 1, 0, 1, 3], [1, 0, 1, 1, 3]])
    """
    first, *after = trace["states"]
    steps = [
        {**step, "moves": [[*move, state[move[1]][move[2]]] for move in step["moves"]]}
        for step, state in zip(trace["steps"], after, strict=True)
    ]
    rest = {key: value for key, value in trace.items() if key != "states"}
    return {**rest, "steps": steps, "start": first}

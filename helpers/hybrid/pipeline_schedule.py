"""Pipeline schedules as data: what each stage does, in order. Real ranks run them, here they are timed.

"F" is a forward pass of one micro-batch through one stage, "B" its backward pass. Left out: the time of
messages.
"""

from dataclasses import dataclass

from helpers.arguments import whole_numbers

Schedule = list[list[tuple]]  # a row a rank, of ("F" or "B", micro-batch) or ("F" or "B", micro-batch, chunk)


def gpipe(stages: int, micro_batches: int) -> Schedule:
    """All forward passes, then all backward passes (Huang et al. 2019).

    >>> gpipe(1, 2)
    [[('F', 0), ('F', 1), ('B', 0), ('B', 1)]]
    """
    _check(stages, micro_batches)
    row = [(op, i) for op in "FB" for i in range(micro_batches)]
    return [list(row) for _ in range(stages)]


def one_f_one_b(stages: int, micro_batches: int) -> Schedule:
    """As many forward passes as the way to the last stage needs, then one of each in turn.

    PipeDream-Flush, the default of Megatron-LM (Narayanan et al. 2021, section 2.2.1).
    """
    _check(stages, micro_batches)
    rows = []
    for stage in range(stages):
        ahead = min(stages - 1 - stage, micro_batches)
        row = [("F", i) for i in range(ahead)]
        for i in range(micro_batches - ahead):
            row += [("F", ahead + i), ("B", i)]
        row += [("B", i) for i in range(micro_batches - ahead, micro_batches)]
        rows.append(row)
    return rows


def one_at_a_time(stages: int, micro_batches: int) -> Schedule:
    """Each micro-batch there and back before the next one starts: layers cut, and nothing overlapped."""
    _check(stages, micro_batches)
    return [[(op, i) for i in range(micro_batches) for op in "FB"] for _ in range(stages)]


def interleaved(stages: int, micro_batches: int, chunks: int) -> Schedule:
    """1F1B over `chunks` pieces of the model a rank: layers go round all ranks, and round again.

    Narayanan et al. 2021, section 2.2.2, in groups of `stages` micro-batches, as Megatron-LM does unless told
    otherwise. Raises ValueError where they do not divide the micro-batches.
    """
    _check(stages, micro_batches)
    whole_numbers(chunks=chunks)
    if micro_batches % stages:
        raise ValueError(f"micro_batches={micro_batches}: expected a multiple of {stages} stages")
    total, turn, rows = micro_batches * chunks, stages * chunks, []
    forward = [("F", k // turn * stages + k % stages, k % turn // stages) for k in range(total)]
    backward = [("B", i, chunks - 1 - chunk) for _, i, chunk in forward]
    for stage in range(stages):
        ahead = min(total, 2 * (stages - 1 - stage) + (chunks - 1) * stages)
        row = forward[:ahead]
        for k in range(total - ahead):
            row += [forward[ahead + k], backward[k]]
        rows.append(row + backward[total - ahead :])
    return rows


def _check(stages: int, micro_batches: int) -> None:
    whole_numbers(stages=stages, micro_batches=micro_batches)


@dataclass(frozen=True)
class Span:
    """One pass of a micro-batch through a stage of rank `stage`, from `start` to `end`."""

    stage: int
    op: str
    micro_batch: int
    start: float
    end: float


def play(schedule: Schedule, forward: float | list = 1, backward: float | list = 2) -> list[Span]:
    """When everything happens: each rank does its work in order, as soon as its input is there.

    forward, backward: time of one pass through a stage, one number for all ranks or one a rank; whole numbers
    stay exact. Of chunks each takes as long. Raises ValueError for a schedule in which ranks wait for each
    other, and for as many times as there are not ranks.

    >>> max(span.end for span in play(gpipe(2, 2)))
    9
    """
    ranks = len(schedule)
    cost = {"F": _by_rank(forward, ranks, "forward"), "B": _by_rank(backward, ranks, "backward")}
    last = max((rank + ranks * _chunk(work) for rank in range(ranks) for work in schedule[rank]), default=0)
    done, free, at, spans = {None: 0}, [0] * ranks, [0] * ranks, []
    while waiting := [r for r in range(ranks) if at[r] < len(schedule[r])]:
        moved = False
        for r in waiting:
            work = schedule[r][at[r]]
            op, i, stage = work[0], work[1], r + ranks * _chunk(work)
            if (needed := _needs(op, i, stage, last)) not in done:
                continue
            start = max(free[r], done[needed])
            free[r] = done[op, i, stage] = start + cost[op][r]
            spans.append(Span(r, op, i, start, free[r]))
            at[r], moved = at[r] + 1, True
        if not moved:
            raise ValueError("schedule: every stage waits for another one")
    return spans


def _chunk(work: tuple) -> int:
    return work[2] if len(work) > 2 else 0


def _by_rank(value, ranks: int, name: str) -> list:
    times = list(value) if isinstance(value, list | tuple) else [value] * ranks
    if len(times) != ranks:
        raise ValueError(f"{name}={value!r}: expected one number, or {ranks}")
    return times


def _needs(op: str, i: int, stage: int, last: int):
    """What has to be done before: the pass of the neighbour, or the stage's own forward pass at the end."""
    if op == "F":
        return ("F", i, stage - 1) if stage else None
    return ("B", i, stage + 1) if stage < last else ("F", i, stage)


def idle(spans: list[Span]) -> list[float]:
    """How long each stage has nothing to do between the first start and the last end of all."""
    length = max(span.end for span in spans)
    busy = [0] * (1 + max(span.stage for span in spans))
    for span in spans:
        busy[span.stage] += span.end - span.start
    return [length - b for b in busy]


def in_flight(schedule: Schedule) -> list[int]:
    """The most passes forward of which each rank keeps the activations at once, of whatever chunk.

    >>> in_flight(gpipe(4, 8)), in_flight(one_f_one_b(4, 8))
    ([8, 8, 8, 8], [4, 3, 2, 1])
    """
    peaks = []
    for row in schedule:
        kept = peak = 0
        for op, *_ in row:
            kept += 1 if op == "F" else -1
            peak = max(peak, kept)
        peaks.append(peak)
    return peaks

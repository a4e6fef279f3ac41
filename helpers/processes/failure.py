"""What went wrong in a run, and which rank to look at first.

`judge` is a pure function of how every rank ended. It tells causes from consequences: when one
rank dies, its neighbours raise "Connection closed by peer" a moment later, and the process that
is noticed first is seldom the one that failed.
"""

from dataclasses import dataclass

RETURNED, RAISED, KILLED, ABORTED = "returned", "raised", "killed", "aborted"
TIMED_OUT, SILENT, SKIPPED = "timed out", "exited without a result", "skipped a collective"


@dataclass(frozen=True)
class End:
    """How one rank ended: one of the words above, its error, where it stood, in order of time.

    waiting: it was late inside a collective. consequence: its error says that another rank had gone.
    """

    kind: str
    error: str = ""
    traceback: str = ""
    where: str = ""
    waiting: bool = False
    consequence: bool = False
    order: float = 0.0

    @property
    def is_consequence(self) -> bool:
        """True for a rank that only noticed that another one had gone or never came."""
        return self.consequence or (self.kind == TIMED_OUT and self.waiting)


class RankFailure(RuntimeError):
    """A run that did not return a result on every rank.

    rank: the rank to look at first, or None where no single one can be named.
    kind: "raised", "killed", "aborted", "timed out", "exited without a result", "skipped a collective".
    results: {rank: result} of the ranks that finished.
    output: what every rank wrote to stdout and stderr, in rank order.
    ends: how every rank ended, in rank order.
    """

    def __init__(self, message: str, rank: int | None, kind: str, results: dict, output: list, ends: list):
        super().__init__(message)
        self.rank, self.kind = rank, kind
        self.results, self.output, self.ends = results, output, ends

    def __reduce__(self):
        """So that it can be copied and sent to another process."""
        return type(self), (str(self), self.rank, self.kind, self.results, self.output, self.ends)


class RemoteTraceback(Exception):
    """Carries a rank's own traceback, so that it is printed above the RankFailure."""

    def __str__(self) -> str:
        return "\n" + self.args[0]


def judge(ends: list[End], timeout: float) -> tuple[int | None, str, str]:
    """Name the rank that failed first, the kind of failure and a sentence that says both.

    ends: one a rank, in rank order; at least one did not return.
    timeout: seconds that the run was given, for the sentence only.
    """
    by = {kind: [r for r, end in enumerate(ends) if end.kind == kind] for kind in {e.kind for e in ends}}
    causes = [r for r, end in enumerate(ends) if end.kind != RETURNED and not end.is_consequence]
    died = [r for r in causes if ends[r].kind != TIMED_OUT]
    if died:
        first = min(died, key=lambda r: ends[r].order)
        # The same words on several ranks are one failure, told the same way whichever rank was quickest.
        same = [r for r in died if _died(ends[r]) == _died(ends[first])]
        text = f"{_name(same)} {_died(ends[first])}{_also(ends, [r for r in died if r not in same])}"
        return same[0], ends[first].kind, text

    stuck = [r for r in causes if ends[r].kind == TIMED_OUT]
    if stuck:
        rank = stuck[0] if len(stuck) == 1 else None
        where = f" at {ends[rank].where}" if rank is not None and ends[rank].where else ""
        text = f"{_name(stuck)} did not finish within {timeout:g} s{where}"
        waiting = [r for r in by.get(TIMED_OUT, []) if r not in stuck]
        return rank, TIMED_OUT, text + (f"; {_name(waiting)} waited for it" if waiting else "")

    returned, waited = by.get(RETURNED, []), [r for r, end in enumerate(ends) if end.is_consequence]
    if returned:
        # The odd one out is the smaller group: it left early, or it asked for a collective of its own.
        odd = min(returned, waited, key=len)
        rank = odd[0] if len(odd) == 1 else None
        text = f"{_name(returned)} returned while {_name(waited)} still waited in a collective"
        return rank, SKIPPED, text
    raised = [r for r in waited if ends[r].kind == RAISED]
    if raised:
        # Everybody lost somebody: the first to say so is the best lead there is.
        first = min(raised, key=lambda r: ends[r].order)
        return first, RAISED, f"rank {first} {_died(ends[first])}"
    text = f"{_name(waited)} waited for each other for {timeout:g} s: they did not enter the same collectives"
    return None, TIMED_OUT, text


def _name(ranks: list[int]) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}"


def _died(end: End, length: int = 300) -> str:
    error = next((line for line in end.error.splitlines() if line.strip()), "")
    error = "".join(c for c in error if c.isprintable())
    error = error if len(error) <= length else error[:length] + " ..."
    return {
        RAISED: f"raised {error}",
        KILLED: f"was killed by {error}",
        ABORTED: f"aborted: {error}",
        SILENT: f"exited without a result ({error})",
    }[end.kind]


def _also(ends: list[End], others: list[int]) -> str:
    return f" (also: {'; '.join(f'rank {r} {_died(ends[r], 100)}' for r in others)})" if others else ""

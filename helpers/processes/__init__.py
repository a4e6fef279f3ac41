"""Run one function as several real processes: `run(f, ranks=4)`.

f(rank, world_size, **arguments) is a plain function of an importable module. Each rank is a process
with an initialised `torch.distributed` group; results come back in rank order. The same functions
run under torchrun. Left out: more than one host, and elastic restarts; those are torchrun's.
"""

import multiprocessing
import multiprocessing.spawn
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from helpers.processes.arguments import check_call, pickled
from helpers.processes.backend import Choice, choose, found
from helpers.processes.failure import RankFailure, RemoteTraceback, judge
from helpers.processes.loopback import loopback
from helpers.processes.rank import Job, device, main
from helpers.processes.report import how_it_ended, results_and_output
from helpers.processes.watch import ask_where, end_all, watch

__all__ = ["RankFailure", "Results", "choose", "device", "found", "run"]

_context = multiprocessing.get_context("spawn" if sys.platform == "win32" else "forkserver")
if sys.platform != "win32":
    # Only torch, never helpers: a change in helpers is seen by the next run.
    _context.set_forkserver_preload(["torch", "torch.distributed", "torch.nn.parallel", "torch._dynamo"])

NAME = "data-parallelism-proven rank "
_preparation_data = multiprocessing.spawn.get_preparation_data


def _without_main(name: str) -> dict:
    """Keep multiprocessing from running the caller's script again in every rank (and only there).

    Ranks import their function from a module, so they never need it; a script read from standard input or
    without the `__name__` guard would fail.
    """
    data = _preparation_data(name)
    return {k: v for k, v in data.items() if not (name.startswith(NAME) and k.startswith("init_main"))}


multiprocessing.spawn.get_preparation_data = _without_main


class Results(list):
    """What the ranks returned, in rank order, with what they printed and where they ran."""

    def __init__(self, results, output: list[str], choice: Choice):
        super().__init__(results)
        self.output, self.backend, self.reason = output, choice.backend, choice.reason


def run(
    f: Callable, ranks: int | None = None, *, timeout: float = 30.0, backend: str | None = None, **arguments
) -> Results:
    """Run f(rank, world_size, **arguments) on every rank and return its results in rank order.

    ranks: world size; None takes one rank a GPU where there are two or more (NCCL), else 4 on the CPU.
    timeout: seconds for f itself, start-up not counted; then the run is ended and the late rank named.
    backend: "gloo" (CPU) or "nccl" to insist, None to let the machine decide.
    arguments: passed on to f by name. Results pass through files: return clones of small views.

    What a rank prints is kept in `.output`, not shown. Raises TypeError or ValueError for arguments that
    cannot work, and RankFailure when a rank raises, dies, hangs or skips: no process is left behind.

    >>> from helpers.ranks.greet import greet
    >>> run(greet, ranks=2, backend="gloo")
    ['rank 0 of 2', 'rank 1 of 2']
    """
    choice = choose(ranks, found(), backend)
    check_call(f, choice.ranks, timeout, arguments)
    if choice.backend == "gloo" and backend is None and ranks is not None and found().gpus:
        warnings.warn(choice.reason, stacklevel=2)
    sent = pickled(arguments)
    folder = Path(tempfile.mkdtemp(prefix="ranks-"))
    job = Job(
        folder=str(folder),
        function=(f.__module__, f.__qualname__),
        arguments=sent,
        backend=choice.backend,
        ranks=choice.ranks,
        timeout=float(timeout),
        environment=_environment(),
    )
    processes, lifeline = [], None
    try:
        reader, lifeline = _context.Pipe(duplex=False)
        statuses = []
        for rank in range(choice.ranks):
            receive, send = _context.Pipe(duplex=False)
            process = _context.Process(target=main, args=(rank, job, reader, send), name=f"{NAME}{rank}")
            process.start()
            processes.append(process)
            send.close()
            statuses.append(receive)
        reader.close()
        late = watch(processes, statuses, job)
        if late:
            ask_where(processes, late)
        lifeline.close()
        end_all(processes)
        return _collect(processes, late, folder, choice, timeout)
    finally:
        if lifeline is not None:
            lifeline.close()  # ends every rank, also one that an interrupt kept out of the list
        end_all(processes)
        shutil.rmtree(folder, ignore_errors=True)


def _collect(processes: list, late: list[int], folder: Path, choice: Choice, timeout: float) -> Results:
    results, output = results_and_output(folder, choice.ranks)
    if len(results) == choice.ranks:
        return Results([results[rank] for rank in range(choice.ranks)], output, choice)
    ends = [
        how_it_ended(rank, process.exitcode, rank in late, folder) for rank, process in enumerate(processes)
    ]
    rank, kind, text = judge(ends, timeout)
    failure = RankFailure(text, rank, kind, results, output, ends)
    cause = ends[rank].traceback if rank is not None else ""
    raise failure from (RemoteTraceback(cause) if cause else None)


def _environment() -> dict[str, str]:
    """The caller's environment as it is now, plus what keeps ranks on one host out of trouble."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    if sys.platform != "win32":
        if name := loopback():
            environment.setdefault("GLOO_SOCKET_IFNAME", name)
    return environment

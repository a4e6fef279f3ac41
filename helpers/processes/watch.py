"""How the parent watches its ranks, asks the late ones where they are, and ends them all."""

import contextlib
import multiprocessing.connection
import os
import signal
import time

import psutil

from helpers.processes.rank import DONE, READY, Job

START_UP = 120.0  # seconds for all ranks to import torch and meet
AFTER_FAILURE = 5.0  # for survivors that cannot notice a death: under NCCL, or before all have met
DYING = 10.0  # for what ranks started to be gone after SIGKILL, which reaches a process when it next runs


def watch(processes: list, statuses: list, job: Job) -> list[int]:
    """Wait until every rank is done or gone; return the ranks that were late."""
    running, ready, done, failed = set(range(job.ranks)), set(), set(), False
    end = time.monotonic() + START_UP
    while running - done and time.monotonic() < end:
        watched = {statuses[r]: r for r in running} | {processes[r].sentinel: r for r in running}
        events = multiprocessing.connection.wait(list(watched), max(0.0, end - time.monotonic()))
        for rank in sorted({watched[event] for event in events}):
            messages = _messages(statuses[rank])
            if READY in messages:
                ready.add(rank)
                if len(ready) == job.ranks:
                    end = time.monotonic() + job.timeout
            if DONE in messages:
                done.add(rank)
            if processes[rank].is_alive():
                continue
            running.discard(rank)
            if rank not in done and not failed:
                failed = True
                # The others may still finish; but who has not met yet never will, and NCCL never tells.
                if len(ready) < job.ranks or job.backend == "nccl":
                    end = min(end, time.monotonic() + AFTER_FAILURE)
    return sorted(running - done)


def _messages(status) -> list[bytes]:
    messages = []
    try:
        while status.poll():
            messages.append(status.recv_bytes())
    except (EOFError, OSError):
        pass  # the rank is gone; its sentinel says so
    return messages


def ask_where(processes: list, late: list[int]) -> None:
    """Have every late rank write its stack, so that who waits can be told from who is waited for."""
    if hasattr(signal, "SIGUSR1"):
        for rank in late:
            if processes[rank].is_alive():
                os.kill(processes[rank].pid, signal.SIGUSR1)
        time.sleep(0.2)


def end_all(processes: list) -> None:
    """End every rank and whatever it started; returns when they are gone."""
    for process in processes:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        if process.is_alive():
            process.kill()
    for process in processes:
        process.join()
    end = time.monotonic() + DYING
    while time.monotonic() < end and any(still_runs(process.pid) for process in processes):
        time.sleep(0.01)


def still_runs(group: int) -> bool:
    """Is anybody of this process group alive? Zombies that nobody has reaped yet are not."""
    try:
        os.killpg(group, 0)
    except (AttributeError, ProcessLookupError, PermissionError):  # no groups on Windows
        return False
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                return True
    return False

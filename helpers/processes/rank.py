"""What happens inside one rank: the process that `helpers.processes.run` starts.

Everything a rank leaves behind stands in files of the run's folder, because files survive the
death of the process that wrote them: `N.out` and `N.err` (also what C++ prints), `N.result`,
`N.error`, `N.stack`. A status pipe only says when a rank is ready and when it is done.
"""

import faulthandler
import importlib
import json
import multiprocessing
import multiprocessing.connection
import os
import pickle
import shutil
import signal
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

READY, DONE = b"ready", b"done"
LINGER = 1.0


@dataclass(frozen=True)
class Job:
    """What a rank is told. `function` is (module, qualified name); `arguments` is a pickled dict."""

    folder: str
    function: tuple[str, str]
    arguments: bytes
    backend: str
    ranks: int
    timeout: float
    environment: dict[str, str]


def main(rank: int, job: Job, lifeline, status) -> None:
    """Run one rank from first to last; never returns."""
    own_pid = os.getpid()
    # A process group of its own: the parent ends the rank with all that it started (data loader workers),
    # and Ctrl-C reaches the parent only.
    if hasattr(os, "setsid"):
        os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A rank starts processes as under torchrun; the fork server it comes from would import torch for each.
    multiprocessing.set_start_method(None, force=True)
    done = threading.Event()
    threading.Thread(target=_end_with_parent, args=(lifeline, done, job.folder), daemon=True).start()
    folder = Path(job.folder)
    os.environ.clear()
    os.environ.update(job.environment, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(job.ranks))
    _write_to_files(folder, rank)
    try:
        _work(rank, job, folder, status)
    except BaseException as error:  # SystemExit too: a rank that exits has no result
        if os.getpid() == own_pid:
            _report(error, folder / f"{rank}.error")
        _leave(1)
    done.set()
    status.send_bytes(DONE)
    # A rank that leaves at once resets connections on which its last bytes are still under way. It stays
    # until the parent lets go of the lifeline, or so long that the slowest reader has them.
    multiprocessing.connection.wait([lifeline], LINGER)
    _leave(0)


def _work(rank: int, job: Job, folder: Path, status) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.set_debug_level_from_env()  # torch read it when the fork server imported it, not now
    module, name = job.function
    function = importlib.import_module(module)
    for part in name.split("."):
        function = getattr(function, part)
    arguments = pickle.loads(job.arguments)
    device = None
    if job.backend == "nccl":
        device = torch.device("cuda", rank)
        torch.cuda.set_device(device)
    # The parent watches the clock and can say who is late; the group's own limit only backs it up.
    store = dist.FileStore(str(folder / "store"), job.ranks)
    dist.init_process_group(
        job.backend,
        store=store,
        rank=rank,
        world_size=job.ranks,
        timeout=timedelta(seconds=job.timeout + 60),
        device_id=device,
    )
    _wait_for_all(store, rank, job.ranks)
    status.send_bytes(READY)
    own_pid = os.getpid()
    result = function(rank, job.ranks, **arguments)
    if os.getpid() != own_pid:
        _leave(0)  # a fork of the rank came back from f: only the rank itself answers
    try:
        torch.save(result, folder / f"{rank}.partial")
    except Exception as error:
        raise TypeError(
            f"{name} returned a {type(result).__name__} that can't be saved ({error}): return tensors, "
            "numbers, strings, or lists and dicts of them"
        ) from None
    os.replace(folder / f"{rank}.partial", folder / f"{rank}.result")
    if job.backend == "nccl":
        dist.destroy_process_group()


def _wait_for_all(store, rank: int, ranks: int) -> None:
    """Until every rank has joined the group: who fails at once would cut the others off half-way in."""
    store.set(f"met/{rank}", "")
    store.wait([f"met/{other}" for other in range(ranks)], timedelta(hours=1))  # the parent has the clock


def device():
    """The torch.device of the calling rank: its own GPU under NCCL, else the CPU."""
    import torch
    import torch.distributed as dist

    if dist.is_initialized() and dist.get_backend() == "nccl":
        return torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    return torch.device("cpu")


def _end_with_parent(lifeline, done: threading.Event, folder: str) -> None:
    # The write end of the lifeline lives in the parent only: it closes when the parent says so or dies.
    parent = multiprocessing.parent_process()
    gone = multiprocessing.connection.wait([lifeline, parent.sentinel])
    if parent.sentinel in gone:
        shutil.rmtree(folder, ignore_errors=True)
        if hasattr(os, "killpg"):
            os.killpg(0, signal.SIGKILL)
    os._exit(0 if done.is_set() else 3)


def _write_to_files(folder: Path, rank: int) -> None:
    for number, name in ((1, "out"), (2, "err")):
        handle = os.open(folder / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if handle != number:  # equal where the caller had closed its own streams
            os.dup2(handle, number)
            os.close(handle)
        stream = open(number, "w", buffering=1, encoding="utf-8", errors="replace", closefd=False)
        setattr(sys, "stdout" if number == 1 else "stderr", stream)
    if hasattr(signal, "SIGUSR1"):
        stack = open(folder / f"{rank}.stack", "w")
        faulthandler.register(signal.SIGUSR1, file=stack, all_threads=True)


def _report(error: BaseException, path: Path) -> None:
    report = {
        "error": _in_words(error),
        "consequence": any(is_consequence(link) for link in _chain(error)),
        "traceback": "".join(traceback.format_exception(error)),
        "time": time.time(),
    }
    partial = path.with_suffix(".report")
    partial.write_text(json.dumps(report))
    os.replace(partial, path)


def _in_words(error: BaseException) -> str:
    """Type and message; also of an error that cannot describe itself."""
    try:
        message = str(error).strip()
    except Exception as broken:
        message = f"(its message raised {type(broken).__name__})"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _chain(error: BaseException) -> list[BaseException]:
    """The error and what it was raised from: callers wrap what torch raises in errors of their own."""
    chain: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in chain:
        chain.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return chain


def is_consequence(error: BaseException) -> bool:
    """Does torch.distributed say here that another rank has gone or never came?

    Only its own error types count, and gloo's texts, which name their source file: an error of the
    caller's that speaks of a closed connection is a cause.
    """
    if type(error).__name__.startswith("Dist") and isinstance(error, RuntimeError):
        return True
    return type(error) is RuntimeError and "gloo/transport/" in _in_words(error)


def _leave(code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

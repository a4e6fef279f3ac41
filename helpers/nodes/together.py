"""Commands that run at the same time, as on several computers, and of which nothing is left afterwards.

torchrun starts its workers in sessions of their own, so a worker can outlive its torchrun. Every process
here inherits a mark in its environment, and whoever bears it is ended when the call returns.
Left out: Windows; and a caller that is killed, or ended by SIGTERM: then nobody ends what it started.
"""

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import NamedTuple

import psutil

MARK = "TOGETHER"
NOTICE = 0.05  # seconds between two looks at who still runs


def free_port() -> int:
    """A port of this host that nobody has right now. Somebody may take it before you do."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Ended(NamedTuple):
    """How one command ended: exit status, or None if it had to be ended, and what it wrote."""

    status: int | None
    out: str
    err: str


def together(
    commands: list[list[str]],
    timeout: float = 60.0,
    environments: list[dict[str, str]] | None = None,
    enough: str | None = None,
) -> list[Ended]:
    """Start all commands, wait until all have ended, and return how each did, in the order given.

    timeout: seconds for all of them; whoever still runs then is ended, and has status None.
    environments: what to add to the caller's environment, one a command. enough: end everybody as soon as
    this text stands in what somebody wrote to stderr.
    Nothing is left after it, also not after an error or Ctrl-C; but a caller ended by SIGKILL or SIGTERM ends
    nobody, so what may run for long should look after itself.
    Raises ValueError for a timeout that is not positive or for environments of another number.

    >>> [ended.status for ended in together([["true"], ["false"]])]
    [0, 1]
    """
    if not timeout > 0:
        raise ValueError(f"timeout={timeout}: expected seconds above 0")
    environments = [{}] * len(commands) if environments is None else environments
    if len(environments) != len(commands):
        raise ValueError(f"environments: {len(environments)} given; expected one for each of {len(commands)}")
    mark, end = f"{os.getpid()}-{uuid.uuid4().hex}", time.monotonic() + timeout
    with tempfile.TemporaryDirectory(prefix="together-") as folder:
        files = [[Path(folder, f"{i}.{name}") for name in ("out", "err")] for i in range(len(commands))]
        started = []
        try:
            for command, more, (out, err) in zip(commands, environments, files, strict=True):
                with open(out, "wb") as stdout, open(err, "wb") as stderr:
                    environment = {**os.environ, **more, MARK: mark}
                    quiet = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": stderr}
                    started.append(subprocess.Popen(command, env=environment, **quiet))
            while time.monotonic() < end and any(process.poll() is None for process in started):
                if enough and any(enough in _read(err) for _, err in files):
                    break
                time.sleep(NOTICE)
            statuses = [process.poll() for process in started]
        finally:
            end_all(mark)
            for process in started:
                process.wait()
        return [Ended(s, _read(out), _read(err)) for s, (out, err) in zip(statuses, files, strict=True)]


def bearers(mark: str) -> list[psutil.Process]:
    """The living processes whose mark begins like this; f"{os.getpid()}-" finds all that this one started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.status() != psutil.STATUS_ZOMBIE and process.environ().get(MARK, "").startswith(mark):
                found.append(process)
    return found


def end_all(mark: str, patience: float = 30.0) -> None:
    """End every process that bears the mark; returns when there is none.

    Raises RuntimeError when one is still there after `patience` seconds: it waits for a disk, or breeds.
    """
    end = time.monotonic() + patience
    while left := bearers(mark):
        if time.monotonic() > end:
            raise RuntimeError(f"processes that don't end: {[process.pid for process in left]}")
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=5)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")

"""Several torchruns at once, with torch imported once: each is a fork that runs torchrun's own main().

What a launcher starts are new processes, as always. Left out: Windows, which cannot fork.
"""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from helpers.nodes.together import Ended, together


def launch(jobs: list[list[str]], timeout: float, environment: dict[str, str] | None = None) -> list[Ended]:
    """What `torchrun ...` with the arguments of each job did, all at once, in the order given.

    timeout: seconds for all; whoever still runs then is ended, and has status None. environment: what to add
    to the caller's. Raises ValueError for a timeout that is not positive, RuntimeError when torch is missing.
    """
    with tempfile.TemporaryDirectory(prefix="launchers-") as name:
        folder = Path(name)
        command = [sys.executable, "-m", "helpers.nodes.launchers", name, json.dumps(jobs)]
        done = together([command], timeout, [environment or {}])[0]
        if done.status:
            raise RuntimeError(f"the launchers did not start: {done.err.strip()[-500:]}")
        return [read(folder, str(number)) for number in range(len(jobs))]


def read(folder: Path, name: str) -> Ended:
    """How the job of this name ended; status None when it had to be ended."""
    status = folder / f"{name}.status"
    files = [folder / f"{name}.{kind}" for kind in ("out", "err")]
    told = [file.read_text(encoding="utf-8", errors="replace") if file.exists() else "" for file in files]
    return Ended(int(status.read_text()) if status.exists() else None, *told)


def fork(folder: Path, name: str, program: Callable, *arguments, first: Callable = lambda: None) -> int:
    """The number of a new process that calls the program, and writes NAME.out and NAME.err in the folder.

    first: what it does before. Its exit status is that of a command: 1 after an error, with a traceback.
    """
    if pid := os.fork():
        return pid
    status = 1
    try:
        first()
        for number, kind in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / f"{name}.{kind}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
        program(*arguments)
        status = 0
    except SystemExit as left:
        status = 0 if left.code is None else left.code if isinstance(left.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def note(folder: Path, name: str, status: int) -> None:
    """Write down how a fork ended; status: as os.waitpid gives it."""
    (folder / f"{name}.status").write_text(str(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    from torch.distributed.run import main

    own = Path(sys.argv[1])
    pids = {fork(own, str(i), main, job): str(i) for i, job in enumerate(json.loads(sys.argv[2]))}
    for pid, name in pids.items():
        note(own, name, os.waitpid(pid, 0)[1])

"""Many torchruns on one node, with torch imported once: each is a fork that runs torchrun's own main().

Called with a folder; a folder in which nodes wait until all have imported torch; their number; seconds after
which everybody here ends; and a JSON list of jobs: {"name", "arguments", "seen"}. Writes NAME.out, NAME.err
and, when it has ended, NAME.status. A job with "environment" is no torchrun: arguments[0] is a Python script,
run with that environment, too. A job with "seen" is one that hangs: it is ended without a status when all
others have ended and its .err has these words, or where it has "anywhere", its .err on any node.
Who started this may be killed: then Linux ends everybody here, too.
"""

import ctypes
import json
import os
import runpy
import signal
import sys
import time
from pathlib import Path

import torch.distributed.run

from helpers.nodes.launchers import fork, note


def end_with_the_parent(parent: int, seconds: int) -> None:
    """End this process when its parent has ended, or after so many seconds."""
    signal.alarm(seconds)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if parent and os.getppid() != parent:  # it was quicker
            os._exit(1)


def script(path: str, environment: dict[str, str]) -> None:
    """As `python PATH` with this environment, too."""
    os.environ |= environment
    runpy.run_path(path, run_name="__main__")


def has_seen(folder: Path, job: dict) -> bool:
    """Whether a job that hangs has said so."""
    name = f"{job['name']}.err"
    errs = folder.parent.glob(f"*/{name}") if job.get("anywhere") else [folder / name]
    return bool(job["seen"]) and any(job["seen"] in err.read_text() for err in errs if err.exists())


def main(folder: Path, seconds: int, jobs: list[dict]) -> None:
    """Start all jobs at once, and wait for them."""
    own, running = os.getpid(), {}
    for job in jobs:
        call = (torch.distributed.run.main, job["arguments"])
        if "environment" in job:
            call = (script, *job["arguments"], job["environment"])
        pid = fork(folder, job["name"], *call, first=lambda: end_with_the_parent(own, seconds))
        running[pid] = job
    while running:
        for pid, job in list(running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del running[pid]
                note(folder, job["name"], status)
        if all(has_seen(folder, job) for job in running.values()):
            for pid in running:
                os.kill(pid, signal.SIGKILL)
            return
        time.sleep(0.05)


if __name__ == "__main__":
    own, everybody, nodes, seconds = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    end_with_the_parent(0, seconds)
    (everybody / own.name).touch()
    while len(list(everybody.iterdir())) < nodes:
        time.sleep(0.01)
    main(own, seconds, json.loads(sys.argv[5]))

"""Rank functions that fail, one way each; every other rank behaves.

Each does `before` AllReduces on all ranks, then rank `culprit` fails while the others go on.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.distributed as dist


def _meet(times: int) -> None:
    for _ in range(times):
        dist.all_reduce(torch.ones(4))


def raises(rank: int, world_size: int, culprit: int, before: int = 3) -> str:
    """Rank `culprit` raises ValueError between two AllReduces."""
    _meet(before)
    if rank == culprit:
        raise ValueError("this batch is empty")
    _meet(1)
    return "finished"


def is_killed(rank: int, world_size: int, culprit: int, before: int = 3) -> str:
    """Rank `culprit` is killed with SIGKILL while an AllReduce of 64 MiB is under way."""
    _meet(before)
    if rank == culprit:
        threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGKILL)).start()
    payload = torch.ones(2**24)
    for _ in range(100):
        dist.all_reduce(payload)
    return "finished"


def skips(rank: int, world_size: int, culprit: int, before: int = 3) -> str:
    """Rank `culprit` takes part in one AllReduce fewer than the others."""
    _meet(before)
    if rank != culprit:
        _meet(1)
    return "finished"


def sleeps(
    rank: int, world_size: int, culprit: int, seconds: float, before: int = 3
) -> str:
    """Rank `culprit` sleeps between two AllReduces."""
    _meet(before)
    if rank == culprit:
        time.sleep(seconds)
    _meet(1)
    return "finished"


def sends_another_shape(
    rank: int, world_size: int, culprit: int, size: int = 2**18, before: int = 3
) -> str:
    """Rank `culprit` brings `size` elements to an AllReduce to which the others bring 4096."""
    _meet(before)
    dist.all_reduce(torch.ones(size if rank == culprit else 4096))
    return "finished"


def exits_silently(rank: int, world_size: int, culprit: int, before: int = 3) -> str:
    """Rank `culprit` ends its process with status 0 and no result."""
    _meet(before)
    if rank == culprit:
        os._exit(0)
    _meet(1)
    return "finished"


def calls_sys_exit(rank: int, world_size: int, culprit: int, before: int = 3) -> str:
    """Rank `culprit` calls sys.exit(0), as a script would."""
    _meet(before)
    if rank == culprit:
        sys.exit(0)
    _meet(1)
    return "finished"


def one_raises_alone(rank: int, world_size: int, culprit: int) -> str:
    """Rank `culprit` raises at once; the others never communicate and finish a little later."""
    if rank == culprit:
        raise ValueError("no need to meet")
    time.sleep(0.5)
    return "finished"


def waits_alone(rank: int, world_size: int, culprit: int) -> str:
    """Rank `culprit` enters a collective that nobody else enters."""
    if rank == culprit:
        _meet(1)
    return "finished"


def returns_a_generator(rank: int, world_size: int) -> object:
    """A result that no process can send to another."""
    return (n for n in range(3))


def prints(rank: int, world_size: int) -> None:
    """Two lines on stdout, so that their order can be checked."""
    print(f"rank {rank}: first")
    os.write(1, f"rank {rank}: second, past Python\n".encode())


def reads_environment(rank: int, world_size: int, name: str) -> str | None:
    """The value of one environment variable as the rank sees it."""
    return os.environ.get(name)


def tells_pid_and_sleeps(
    rank: int, world_size: int, folder: str, seconds: float
) -> None:
    """Write this rank's process id into `folder`, then sleep: for tests that end the parent."""
    with open(os.path.join(folder, f"{rank}.pid"), "w") as out:
        out.write(str(os.getpid()))
    dist.barrier()
    time.sleep(seconds)


def threads(rank: int, world_size: int) -> int:
    """How many threads torch takes on this rank."""
    return torch.get_num_threads()


def loses_a_download(rank: int, world_size: int, culprit: int) -> str:
    """Rank `culprit` raises an error of its own that speaks of a connection; the others meet."""
    if rank == culprit:
        raise OSError("Connection reset by peer while downloading data.zip")
    _meet(1)
    return "finished"


def wraps_the_loss_of_another(rank: int, world_size: int, culprit: int) -> str:
    """Rank `culprit` raises; the others wrap what torch tells them in an error of their own."""
    if rank == culprit:
        raise ValueError("this batch is empty")
    try:
        _meet(2)
    except RuntimeError as error:
        raise KeyError("training step") from error
    return "finished"


class Mute(Exception):
    """An error whose message cannot be had."""

    def __str__(self) -> str:
        raise ZeroDivisionError


def raises_without_words(rank: int, world_size: int, culprit: int) -> str:
    """Rank `culprit` raises an error that cannot describe itself."""
    if rank == culprit:
        raise Mute
    return "finished"


def starts_helpers_and_sleeps(rank: int, world_size: int, folder: str) -> None:
    """Every rank starts a process of its own, as a data loader does, tells its id, and sleeps."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open(os.path.join(folder, f"{rank}.pid"), "w") as out:
        out.write(str(child.pid))
    time.sleep(600)


def forks_and_returns(rank: int, world_size: int) -> str:
    """The rank forks, and both processes come back from the function."""
    return "rank" if os.fork() else "fork"


def start_method(rank: int, world_size: int) -> str | None:
    """How a process that this rank starts would be started."""
    return multiprocessing.get_start_method()


def wants_a_timeout(rank: int, world_size: int, timeout: float) -> float:
    """A parameter that run() keeps for itself."""
    return timeout

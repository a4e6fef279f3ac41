"""Which backend a run takes: a pure function of what was asked for and what the machine has.

Left out: CUDA itself. `found()` is the only place that looks at the machine, so the whole
table of choices is tested without a GPU.
"""

from numbers import Integral
from typing import NamedTuple

DEFAULT_RANKS = 4
BACKENDS = ("gloo", "nccl")


class Choice(NamedTuple):
    """A backend ("gloo" on the CPU or "nccl", one GPU a rank), the number of ranks, and the reason."""

    backend: str
    ranks: int
    reason: str


class Machine(NamedTuple):
    """What matters of a machine: how many GPUs are visible and whether torch was built with NCCL."""

    gpus: int
    nccl: bool


def found() -> Machine:
    """Look at this machine. Counts devices without creating a CUDA context in the caller."""
    import torch
    import torch.distributed as dist

    return Machine(torch.cuda.device_count(), dist.is_nccl_available())


def choose(ranks: int | None, machine: Machine, backend: str | None = None) -> Choice:
    """Choose backend and world size.

    ranks: a whole number of at least 1, or None for "what the machine offers": as many ranks as GPUs
    where there are two or more and NCCL, else 4 on the CPU.
    backend: "gloo" or "nccl" to insist on one, None to let the machine decide.

    Raises TypeError or ValueError naming the argument, its value and what was expected.
    """
    if ranks is not None and (isinstance(ranks, bool) or not isinstance(ranks, Integral)):
        raise TypeError(f"ranks={ranks!r}: expected a whole number of at least 1, or None")
    ranks = None if ranks is None else int(ranks)
    if ranks is not None and ranks < 1:
        raise ValueError(f"ranks={ranks}: expected a whole number of at least 1, or None")
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend={backend!r}: expected 'gloo', 'nccl' or None")

    gpus, nccl = machine
    if backend == "gloo":
        return Choice("gloo", ranks or DEFAULT_RANKS, "gloo was asked for: ranks run on the CPU")
    if backend == "nccl":
        wanted = ranks or gpus
        if not nccl:
            raise ValueError(
                "backend='nccl': this torch was built without NCCL; leave backend out to use gloo"
            )
        if wanted < 1 or wanted > gpus:
            raise ValueError(
                f"backend='nccl' with ranks={ranks}: needs one GPU a rank, found {gpus}; "
                "leave backend out to use gloo on the CPU"
            )
        return Choice("nccl", wanted, f"NCCL was asked for: {wanted} of {gpus} GPUs, one a rank")

    if ranks is None:
        if gpus >= 2 and nccl:
            return Choice("nccl", gpus, f"{gpus} GPUs and NCCL: one rank a GPU")
        why = "no GPU" if gpus == 0 else "one GPU" if gpus == 1 else "torch without NCCL"
        return Choice("gloo", DEFAULT_RANKS, f"{why}: {DEFAULT_RANKS} ranks on the CPU with gloo")
    if gpus == 0:
        return Choice("gloo", ranks, f"no GPU: {ranks} on the CPU with gloo")
    if not nccl:
        return Choice("gloo", ranks, f"torch without NCCL: {ranks} on the CPU with gloo")
    if ranks > gpus:
        return Choice("gloo", ranks, f"{ranks} ranks but {gpus} GPUs: all ranks on the CPU with gloo")
    return Choice("nccl", ranks, f"{ranks} of {gpus} GPUs with NCCL, one a rank")

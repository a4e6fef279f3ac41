"""Rank functions that train the small language model, and that die while they do."""

import os
import signal
import stat
import threading

from torch.nn.parallel import DistributedDataParallel

import helpers.ddp.training
from helpers.ddp.options import options_of
from helpers.processes.rank import device


def train(rank: int, world_size: int, **options) -> dict:
    """Train as `python -m helpers.ddp` does, with its options by name; see helpers.ddp.options.Options.

    Returns what helpers.ddp.training.train returns. Raises SettingError for options that can't work.
    """
    return helpers.ddp.training.train(rank, world_size, device(), options_of(options))


def train_unsettled(rank: int, world_size: int, **options) -> dict:
    """The same, but DDP rearranges its buckets after the first step, as it does when left alone."""
    helpers.ddp.training.settle_buckets = lambda ddp, device: None
    return train(rank, world_size, **options)


def train_unsynchronised(rank: int, world_size: int, **options) -> dict:
    """The same, but with every step inside no_sync(): nothing is averaged."""

    class Alone(DistributedDataParallel):
        def forward(self, *inputs):
            with self.no_sync():
                return super().forward(*inputs)

    helpers.ddp.training.DistributedDataParallel = Alone
    return train(rank, world_size, **options)


def train_and_die(
    rank: int,
    world_size: int,
    culprit: int,
    last_step: int | None = None,
    after: float | None = None,
    **options,
) -> dict:
    """The same, but rank `culprit` is killed with SIGKILL when step `last_step` is done, or `after` seconds."""

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def after_step(step: int) -> None:
        if (rank, step) == (culprit, last_step):
            die()

    if after is not None and rank == culprit:
        threading.Timer(after, die).start()
    return helpers.ddp.training.train(
        rank, world_size, device(), options_of(options), after_step
    )


def train_and_die_writing(
    rank: int, world_size: int, moment: str, number: int, **options
) -> dict:
    """The same, but rank 0 is killed with SIGKILL while it writes its checkpoint number `number`, from 1.

    moment: "half written" (the file is cut in two first), "not yet replaced" or "just replaced".
    """
    written, fsync, replace = 0, os.fsync, os.replace

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def fsync_or_die(file: int) -> None:
        size = os.fstat(file).st_size if stat.S_ISREG(os.fstat(file).st_mode) else 0
        if size and written == number - 1 and moment == "half written":
            os.ftruncate(file, size // 2)
            fsync(file)
            die()
        fsync(file)

    def replace_or_die(old, new) -> None:
        nonlocal written
        written += 1
        if written == number and moment == "not yet replaced":
            die()
        replace(old, new)
        if written == number and moment == "just replaced":
            die()

    if rank == 0:
        os.fsync, os.replace = fsync_or_die, replace_or_die
    return train(rank, world_size, **options)

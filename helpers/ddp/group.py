"""Which processes train together, and on which device each of them computes.

Under torchrun the environment says who is who; without it, this process is the only rank. Inside `run()` the
group is there already, and this file isn't used. Left out: agreeing on a backend between unlike nodes; there,
say which.
"""

import contextlib
import gc
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import NamedTuple

import torch
import torch.distributed as dist

from helpers.ddp.options import Options, SettingError
from helpers.processes.backend import Machine, choose, found
from helpers.processes.loopback import loopback

BACKENDS = ("auto", "gloo", "nccl")
NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
NEEDED = (*NUMBERS, "MASTER_ADDR", "MASTER_PORT")


class Place(NamedTuple):
    """Where a process stands: its rank of all, and its rank among those of its node."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int


def place(environment: dict[str, str]) -> Place | None:
    """What torchrun wrote into the environment; None where it wrote nothing.

    Raises SettingError when only a part is there: then a launcher forgot the rest.
    """
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return None
    missing = [name for name in NEEDED if not environment.get(name)]
    if missing:
        raise SettingError(
            f"environment: {', '.join(missing)} not set, others are; start with torchrun, or set all of "
            f"{', '.join(NEEDED)}"
        )
    for name in NUMBERS:
        if not environment[name].isdecimal():
            raise SettingError(
                f"environment: {name} is {environment[name]}; expected a whole number"
            )
    return Place(*(int(environment[name]) for name in NUMBERS))


def backend_of(wanted: str, here: Place, machine: Machine) -> tuple[str, str]:
    """The backend for the ranks of this node, and why; a pure function.

    wanted: "auto", "gloo" or "nccl". Raises SettingError when this machine can't do what is wanted.
    """
    if wanted not in BACKENDS:
        raise SettingError(f"backend {wanted}: expected one of {', '.join(BACKENDS)}")
    if wanted == "nccl":
        if not machine.gpus:
            raise SettingError("backend nccl: no GPU here; expected gloo or auto")
        if not machine.nccl:
            raise SettingError(
                "backend nccl: this torch has no NCCL; expected gloo or auto"
            )
        if here.local_world_size > machine.gpus:
            raise SettingError(
                f"backend nccl: {here.local_world_size} ranks but {machine.gpus} GPUs here; "
                "expected one GPU a rank, gloo or auto"
            )
    choice = choose(
        here.local_world_size, machine, None if wanted == "auto" else wanted
    )
    return choice.backend, choice.reason


@contextlib.contextmanager
def group(
    wanted: str, timeout: float, expected: int | None = None
) -> Iterator[tuple[Place, torch.device, str]]:
    """Be in the process group: gives the place, the device and the reason for the backend.

    timeout: seconds that a collective waits for the other ranks before it raises. expected: the number of
    ranks, where it is known beforehand.
    Raises SettingError for an impossible backend or timeout, a broken environment, or another number of ranks.
    """
    if not timeout > 0 or timeout > 1e6:
        raise SettingError(
            f"timeout {timeout:g}: expected seconds above 0, at most 1e6"
        )
    told = place(dict(os.environ))
    here = told or Place(0, 1, 0, 1)
    if expected not in (None, here.world_size):
        raise SettingError(
            f"expect ranks {expected}: this world has {here.world_size}; see what every node "
            "was told of nodes, ranks a node, and where to meet"
        )
    backend, reason = backend_of(wanted, here, found())
    device = torch.device("cpu")
    if backend == "nccl":
        device = torch.device("cuda", here.local_rank)
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)  # how many add in parallel decides on the last bits
        if here.local_world_size == here.world_size:
            _stay_on_this_host()
    patience = timedelta(seconds=timeout)
    dist.init_process_group(
        backend,
        store=_meeting_point(here, patience) if told else dist.HashStore(),
        rank=here.rank,
        world_size=here.world_size,
        timeout=patience,
        device_id=device if backend == "nccl" else None,
    )
    try:
        yield here, device, reason
    except SettingError:
        dist.destroy_process_group()  # raised by all ranks alike, so that all of them leave
        raise
    # After any other error there is somebody who doesn't answer: leaving in good order would wait for them.
    # DDP holds itself in a circle of references, and the group with it. Freed after the group is destroyed, it
    # would wait for gloo's threads with Python's lock in hand, and they for the lock (pytorch issue 56297).
    gc.collect()
    dist.destroy_process_group()


def require_equal_options(options: Options, world_size: int) -> None:
    """Raise SettingError, on all ranks alike, when a rank was started with other options. A collective.

    Paths of the checkpoint may differ: only rank 0 uses its own. Nobody else would notice another seed: DDP
    copies rank 0's parameters, replicas agree, and the windows are dealt from two different orders.
    """
    own = asdict(options) | {"checkpoint": options.checkpoint is not None}
    everyone = [None] * world_size
    dist.all_gather_object(everyone, own)
    for name, first in everyone[0].items():
        others = {rank: told[name] for rank, told in enumerate(everyone)}
        others = {rank: value for rank, value in others.items() if value != first}
        if others:
            words = ", ".join(
                f"{value} on rank {rank}" for rank, value in others.items()
            )
            raise SettingError(
                f"{name.replace('_', ' ')} {first} on rank 0, {words}: expected the same on all ranks"
            )


def _meeting_point(here: Place, patience: timedelta) -> dist.Store:
    """Where the ranks tell each other their addresses: env://, as init_process_group does it.

    torchrun 2.13 hands restarted ranks the store of the attempt before, with the addresses of the dead in it,
    and in two of five tries they waited for those. On one node the number of the attempt keeps them apart.
    Nodes count for themselves: on several, restarts with c10d need TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1. With
    --master-addr it changes nothing: leave --max-restarts at 0, and let the scheduler restart the job.
    Source: pytorch/pytorch issue 135712.
    """
    store, _, _ = next(dist.rendezvous("env://", timeout=patience))
    if here.local_world_size < here.world_size:
        return store
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"attempt {attempt}", store)


def _stay_on_this_host() -> None:
    if name := loopback():
        os.environ.setdefault("GLOO_SOCKET_IFNAME", name)

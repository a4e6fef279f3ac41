"""A checkpoint that a kill at any moment leaves whole: written beside the old one, then put in its place.

Rank 0 writes it and rank 0 reads it; the others get its bytes from rank 0, so that only one machine needs the
file. Left out: shards (a model larger than one rank needs torch.distributed.checkpoint), and keeping several.
"""

import io
import os
from pathlib import Path

import torch
import torch.distributed as dist

from helpers.ddp.options import SettingError

PARTS = {"settings", "step", "model", "optimizer", "data", "random"}


def save(path: str | Path, state: dict) -> None:
    """Write `state` to `path` so that at every moment the old file or the new one is there, complete.

    os.replace swaps names at once (POSIX rename); fsync first, or after a power cut the new name could lead
    to bytes that never reached the disk.
    """
    path = Path(path)
    buffer = io.BytesIO()
    torch.save(state, buffer)
    partial = path.with_name(path.name + ".partial")
    with open(partial, "wb") as file:
        file.write(buffer.getbuffer())
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    if hasattr(os, "O_DIRECTORY"):
        folder = os.open(path.parent, os.O_DIRECTORY)
        os.fsync(folder)  # the folder holds the name
        os.close(folder)


def load(data: bytes, path: str | Path, settings: dict) -> dict:
    """The state in `data`, the bytes of the file `path`, for a run with these settings.

    Only tensors and plain values are read (weights_only), so a file from a stranger runs no code.
    Raises SettingError when it can't be read, is no checkpoint of this program, or belongs to other settings.
    """
    try:
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises half a dozen types, with pages of advice
        raise SettingError(
            f"checkpoint {path}: can't be read ({type(error).__name__}); it is cut short or no checkpoint"
        ) from None
    whole = isinstance(state, dict) and set(state) == PARTS
    if not whole or not isinstance(state["settings"], dict):
        raise SettingError(f"checkpoint {path}: not written by this program")
    theirs = state["settings"]
    differ = [
        f"{name.replace('_', ' ')} {theirs.get(name)}, here {settings.get(name)}"
        for name in sorted(theirs | settings)
        if theirs.get(name) != settings.get(name)
    ]
    if differ:
        raise SettingError(
            f"checkpoint {path}: belongs to other settings: {'; '.join(differ)}"
        )
    return state


def read(rank: int, path: str, resume: bool, settings: dict) -> dict | None:
    """The state to go on from, the same on every rank, or None to start from the beginning. A collective.

    Raises SettingError on all ranks alike, also for a path at which nothing can be written later.
    """
    answer = [None, None]
    if rank == 0:
        try:
            answer[0] = _bytes_of(Path(path), resume)
            if answer[0] is not None:
                load(answer[0], path, settings)
        except SettingError as error:
            answer[1] = str(error)
    dist.broadcast_object_list(answer, src=0)
    data, mistake = answer
    if mistake:
        raise SettingError(mistake)
    return None if data is None else load(data, path, settings)


def _bytes_of(path: Path, resume: bool) -> bytes | None:
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or path.is_dir():
        raise SettingError(
            f"checkpoint {path}: expected a file in a folder that exists and can be written to"
        )
    if not path.exists():
        return None
    if not resume:
        raise SettingError(
            f"checkpoint {path}: is there already; resume from it, or name another path"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingError(
            f"checkpoint {path}: can't be read ({error.strerror})"
        ) from None


def random_states(device: torch.device, world_size: int) -> list[torch.Tensor]:
    """The state of every rank's random numbers, uint8 (bytes,) each. A collective.

    A list, because torch 2.13 crashes when it is to go on from a row of a larger tensor.
    """
    on_gpu = device.type == "cuda"
    own = torch.cuda.get_rng_state(device) if on_gpu else torch.get_rng_state()
    everyone = [torch.empty_like(own, device=device) for _ in range(world_size)]
    dist.all_gather(everyone, own.to(device))
    return [state.cpu() for state in everyone]


def set_random_state(device: torch.device, own: torch.Tensor) -> None:
    """Go on with the random numbers of this rank, uint8 (bytes,)."""
    if device.type == "cuda":
        torch.cuda.set_rng_state(own, device)
    else:
        torch.set_rng_state(own)

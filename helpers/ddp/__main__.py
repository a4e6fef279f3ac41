"""Train from the command line, alone or under torchrun.

torchrun --standalone --nproc_per_node=4 -m helpers.ddp --steps 200 --checkpoint /tmp/small.pt
"""

import sys

import torch.distributed as dist

from helpers.ddp.command import parser
from helpers.ddp.group import group
from helpers.ddp.options import SettingError, options_of
from helpers.ddp.training import train


def main(arguments: list[str] | None = None) -> int:
    """Train as told; returns the exit status."""
    command = parser()
    told = vars(command.parse_args(arguments))
    backend, timeout = told.pop("backend"), told.pop("timeout")
    try:
        options = options_of(told)
        with group(backend, timeout) as (here, device, reason):
            ranks = "1 rank" if here.world_size == 1 else f"{here.world_size} ranks"
            opening = f"{ranks}, {options.precision}; {reason}"
            result = train(here.rank, here.world_size, device, options, opening=opening)
            digests = [None] * here.world_size
            dist.all_gather_object(digests, result["digest"])
    except SettingError as mistake:
        command.error(str(mistake))
    same = sum(digest == digests[0] for digest in digests)
    if here.rank == 0:
        print(f"{result['samples_per_second']:.0f} windows/s, all ranks together")
        print(f"replicas with the bits of rank 0: {same} of {here.world_size}")
        print(f"sha256 {digests[0]}")
    return 0 if same == here.world_size else 1


if __name__ == "__main__":
    sys.exit(main())

"""Train from the command line, alone or under torchrun.

torchrun --standalone --nproc_per_node=4 -m helpers.ddp --steps 200 --checkpoint /tmp/small.pt
"""

import math
import sys

import torch.distributed as dist

from helpers.ddp.command import parser
from helpers.ddp.group import group, require_equal_options
from helpers.ddp.options import SettingError, options_of
from helpers.ddp.training import train


def main(arguments: list[str] | None = None) -> int:
    """Train as told; returns the exit status."""
    command = parser()
    told = vars(command.parse_args(arguments))
    how = [told.pop(name) for name in ("backend", "timeout", "expect_ranks")]
    try:
        options = options_of(told)
        with group(*how) as (here, device, reason):
            require_equal_options(options, here.world_size)
            ranks = "1 rank" if here.world_size == 1 else f"{here.world_size} ranks"
            node = "" if here.local_world_size == here.world_size else "on this node, "
            opening = f"{ranks}, {options.precision}; {node}{reason}"
            result = train(here.rank, here.world_size, device, options, opening=opening)
            digests = [None] * here.world_size
            dist.all_gather_object(digests, result["digest"])
    except SettingError as mistake:
        command.error(str(mistake))
    same = sum(digest == digests[0] for digest in digests)
    if here.rank == 0:
        if math.isfinite(rate := result["samples_per_second"]):
            print(f"{rate:.0f} windows/s, all ranks together")
        print(f"replicas with the bits of rank 0: {same} of {here.world_size}")
        print(f"sha256 {digests[0]}")
    return 0 if same == here.world_size else 1


if __name__ == "__main__":
    sys.exit(main())

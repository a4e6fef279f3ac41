"""How much a layer computes for what it reads: FLOPs and bytes counted, and a time in which one limits.

The larger of computing and reading is the roofline (Williams, Waterman and Patterson 2009). Left out: that
small matrices fill a chip badly, and caches.
"""

from functools import cache

import torch
from torch.utils.flop_counter import FlopCounterMode

from helpers.scaling.step_time import FLOPS

MEMORY = 3e12  # bytes a second that the example's card reads and writes


@cache
def counted(rows: int, width: int = 4096) -> tuple[int, int]:
    """FLOPs, as torch counts them, and bytes of (rows, width) @ (width, width) in BF16: in, weights, out.

    Raises ValueError for less than one row.
    """
    if rows < 1:
        raise ValueError(f"rows={rows}: expected at least 1")
    made = [torch.empty(n, width, dtype=torch.bfloat16, device="meta") for n in (rows, width)]
    with FlopCounterMode(display=False) as counter:
        made.append(made[0] @ made[1])
    return counter.get_total_flops(), sum(t.numel() * t.element_size() for t in made)


def seconds(rows: int) -> float:
    """Of that product: computing at FLOPS or moving its bytes at MEMORY, whichever takes longer."""
    flops, moved = counted(rows)
    return max(flops / FLOPS, moved / MEMORY)


def utilisation(rows: int) -> float:
    """FLOPs that a card does with `rows` rows, over what it could do in the same time."""
    return counted(rows)[0] / (FLOPS * seconds(rows))

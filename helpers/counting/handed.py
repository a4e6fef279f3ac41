"""Count the bytes that a program hands to torch's collectives, and what a ring makes of them on the wire."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from helpers.algorithms import ring_all_gather, ring_allreduce
from helpers.count import count

# What this rank brings to each collective: which argument it is, by place and by name.
COUNTED = {
    "all_reduce": (0, "tensor"),
    "all_gather": (1, "tensor"),
    "all_gather_into_tensor": (1, "input_tensor"),
    "all_to_all_single": (1, "input"),
    "reduce_scatter_tensor": (1, "input"),
}
REFUSED = ("all_reduce_coalesced", "all_gather_coalesced", "all_to_all", "broadcast", "gather", "reduce")
REFUSED += ("reduce_scatter", "scatter", "send", "recv", "isend", "irecv", "batch_isend_irecv")


@contextmanager
def handed() -> Iterator[dict[str, int]]:
    """Bytes of this rank's own tensor in each kind of collective that Python code calls inside the block.

    They are counted when handed over, whatever thread does it. DDP's built-in AllReduce is no Python and is
    not seen, nor is a name that was imported from torch.distributed before. Other collectives raise
    RuntimeError inside the block: there is no rule for them.
    """
    counted = dict.fromkeys(COUNTED, 0)
    originals = {name: getattr(dist, name) for name in (*COUNTED, *REFUSED)}

    def counting(name: str):
        place, keyword = COUNTED[name]

        def call(*arguments, **options):
            tensor: torch.Tensor = options[keyword] if keyword in options else arguments[place]
            counted[name] += tensor.numel() * tensor.element_size()
            return originals[name](*arguments, **options)

        return call

    def refusing(name: str):
        def call(*arguments, **options):
            raise RuntimeError(f"{name}: not counted, expected one of {', '.join(COUNTED)}")

        return call

    for name in originals:
        setattr(dist, name, counting(name) if name in COUNTED else refusing(name))
    try:
        yield counted
    finally:
        for name, original in originals.items():
            setattr(dist, name, original)


def sent_by_a_ring(counted: dict[str, int], ranks: int) -> float:
    """Bytes that the busiest rank sends for what was handed over, where rings and direct messages carry it.

    Counted on a vector of `ranks` chunks of one byte, so divisible lengths are exact. Raises ValueError for a
    collective without a rule.
    """
    if unknown := set(counted) - set(COUNTED):
        raise ValueError(f"counted={unknown}: expected some of {tuple(COUNTED)}")
    allreduce = int(count(ring_allreduce(ranks), ranks, itemsize=1).sent.max())
    gather, share = int(count(ring_all_gather(ranks), ranks, itemsize=1).sent.max()), (ranks - 1) / ranks
    each = {"all_reduce": allreduce / ranks, "all_gather": gather, "all_gather_into_tensor": gather}
    each |= {"all_to_all_single": share, "reduce_scatter_tensor": share}
    return sum(each[name] * size for name, size in counted.items())

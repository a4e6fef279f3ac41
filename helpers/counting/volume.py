"""Count what a training step hands to collectives: each call, its size, and the part of the model it is for.

A collective of a vector of n numbers is counted in passes. One pass is one trip of the vector round a ring:
every rank sends (K-1)/K n numbers. An AllReduce is two passes, the others one; a broadcast makes the same sum
over all ranks, though not the same on each. What a library then really sends is another question, which only
the wire answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

PASSES = {"AllReduce": 2, "reduce-scatter": 1, "all-gather": 1, "broadcast": 1, "all-to-all": 1}
# torch's name of each operation: ours, and which argument holds the whole vector.
OPERATIONS = {
    "c10d::allreduce_": ("AllReduce", 0),
    "c10d::reduce_scatter_": ("reduce-scatter", 1),
    "c10d::_reduce_scatter_base_": ("reduce-scatter", 1),
    "c10d::allgather_": ("all-gather", 0),
    "c10d::_allgather_base_": ("all-gather", 0),
    "c10d::broadcast_": ("broadcast", 0),
    "c10d::alltoall_base_": ("all-to-all", 1),
}
MOVES_NOTHING = {"c10d::barrier", "c10d::monitored_barrier_", "_c10d_functional::wait_tensor"}
# Whose operations move something; of all but the first this counter knows none, and refuses them.
MOVERS = ("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "symm_mem")


@dataclass(frozen=True)
class Call:
    """One collective: its name, numbers in the whole vector, and the phase and module it was called in.

    seen: what the counter's `look` returned just before. bytes: of the whole vector.
    """

    name: str
    numbers: int
    phase: str = ""
    module: str = ""
    seen: int = 0
    bytes: int = 0


class Volume(TorchDispatchMode):
    """A context in which every collective of this process is noted in `calls`.

    phase: what the caller says it is doing; set it as you go. The module of a call is the one that FSDP2
    names in its labels for the profiler; outside FSDP2 it is "". look: a function called before each of them.
    Raises RuntimeError for a collective that it does not know, rather than leave it out: among them all
    functional ones, which a DTensor's full_tensor() and clip_grad_norm_ call.

    >>> with Volume() as volume:
    ...     _ = torch.ones(2) + 1
    >>> volume.calls
    []
    """

    def __init__(self, look: Callable[[], int] = int):
        super().__init__()
        self.calls: list[Call] = []
        self.look = look
        self.phase, self._module = "", ""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if any(issubclass(each, DTensor) for each in types):
            return NotImplemented  # let it come back in terms of plain tensors and their collectives
        name = function._schema.name
        if name.startswith("profiler::_record_function_enter") and str(args[0]).startswith("FSDP::"):
            label = str(args[0])
            self._module = label[label.index("(") + 1 : -1] if label.endswith(")") else "root"
        elif name in OPERATIONS:
            known, place = OPERATIONS[name]
            vector = _tensors(args[place])
            numbers, size = sum(t.numel() for t in vector), sum(t.nbytes for t in vector)
            self.calls.append(Call(known, numbers, self.phase, self._module, self.look(), size))
        elif name.partition("::")[0] in MOVERS and name not in MOVES_NOTHING:
            raise RuntimeError(f"{name}: no rule for how much it moves")
        return function(*args, **(kwargs or {}))


def _tensors(nested) -> list[torch.Tensor]:
    return [nested] if isinstance(nested, torch.Tensor) else [t for part in nested for t in _tensors(part)]


def passes(calls: list[Call], numbers: int) -> dict[str, Fraction]:
    """Passes of a vector of `numbers` by the name of the collective, exact; add them up for the volume.

    Times (K-1)/K times `numbers` this is what a rank sends, if each collective is as good as a ring.
    Raises ValueError for numbers below 1.

    >>> passes([Call("AllReduce", 6), Call("broadcast", 3)], numbers=6)
    {'AllReduce': Fraction(2, 1), 'broadcast': Fraction(1, 2)}
    """
    return _by_name(calls, numbers, "numbers")


def bytes_a_parameter(calls: list[Call], numbers: int) -> dict[str, Fraction]:
    """The same in bytes for each of the `numbers`: a pass of FP32 is 4, one of BF16 is 2.

    >>> bytes_a_parameter([Call("AllReduce", 6, bytes=24)], numbers=6)
    {'AllReduce': Fraction(8, 1)}
    """
    return _by_name(calls, numbers, "bytes")


def _by_name(calls: list[Call], numbers: int, what: str) -> dict[str, Fraction]:
    if numbers < 1:
        raise ValueError(f"numbers={numbers}: expected the length of the vector, 1 or more")
    total: dict[str, Fraction] = {}
    for call in calls:
        moved = Fraction(PASSES[call.name] * getattr(call, what), numbers)
        total[call.name] = total.get(call.name, Fraction(0)) + moved
    return total

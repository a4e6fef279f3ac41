"""Which grid fits, and what each axis moves: a planner that says no, with a reason.

It knows the memory of a GPU, the shapes of a Llama 3, and two classes of links. Left out: overlap, latency,
buffers, the allocator, so what it accepts may fail; ranks that share a key/value head, as Megatron's may.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from math import prod

from helpers.arguments import whole_numbers
from helpers.hybrid import traffic
from helpers.hybrid.rank_grid import LLAMA3, RankGrid, derived_dp, grid
from helpers.llama.shards import HEAD, chunk_layers, layer_activations, stage_parameters
from helpers.memory.needed import MIXED, Recipe, state_bytes
from helpers.models import Llama3


@dataclass(frozen=True)
class Job:
    """What is trained. sequence: tokens. batch: sequences of a step, on all GPUs together.

    micro_batch: sequences. stage: of ZeRO, over the dp and cp axes. keep: of helpers.llama.shards.
    interleaved: chunks of layers that a rank holds in the interleaved schedule, 1 for plain 1F1B.
    Raises ValueError for counts below 1.
    """

    model: Llama3
    sequence: int
    batch: int
    micro_batch: int = 1
    recipe: Recipe = MIXED
    stage: int = 0
    keep: str = "fused"
    interleaved: int = 1

    def __post_init__(self):
        counts = ("sequence", "batch", "micro_batch", "interleaved")
        whole_numbers(**{name: getattr(self, name) for name in counts})


@dataclass(frozen=True)
class Machine:
    """What it is trained on. memory: bytes a GPU; inside, across: bytes a second, one way; flops: reached.

    across: of one GPU's own port. Raises ValueError for counts below 1.
    """

    gpus: int
    memory: float = 80e9
    node: int = 8
    inside: float = 450e9
    across: float = 50e9
    flops: float = 400e12

    def __post_init__(self):
        whole_numbers(gpus=self.gpus, node=self.node)


@dataclass(frozen=True)
class Plan:
    """The answer. reasons: why not, empty where it fits. memory: bytes of the fullest rank by what they hold.

    sent, seconds: by axis, of the busiest rank in a step; a link for itself, nothing overlapped. bubble: idle
    time over working time. compute: seconds of working time, six operations a parameter and token.
    """

    sizes: dict[str, int]
    reasons: list[str]
    memory: dict[str, int] = field(default_factory=dict)
    sent: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    micro_batches: int = 0
    bubble: Fraction = Fraction(0)
    compute: float = 0.0

    @property
    def fits(self) -> bool:
        """Nothing speaks against it."""
        return not self.reasons


def micro_batches(batch: int, micro_batch: int, dp: int) -> int:
    """Megatron's rule: the global batch over micro-batch times data-parallel size; the pipeline has no say.

    Raises ValueError for counts below 1, and where it does not come out even, as Megatron's
    num_microbatches_calculator.py does.

    >>> micro_batches(256, micro_batch=1, dp=8)
    32
    """
    whole_numbers(batch=batch, micro_batch=micro_batch, dp=dp)
    if batch % (micro_batch * dp):
        raise ValueError(f"batch={batch}: expected a multiple of micro_batch {micro_batch} times dp {dp}")
    return batch // (micro_batch * dp)


def plan(
    job: Job, machine: Machine, *, tp: int = 1, cp: int = 1, pp: int = 1, dp: int | None = None, order=LLAMA3
) -> Plan:
    """Does this grid fit, and what does each axis move? dp=None takes what the others leave, as Megatron."""
    try:
        dp = derived_dp(machine.gpus, tp, pp, cp) if dp is None else dp
        sizes = {"tp": tp, "cp": cp, "pp": pp, "dp": dp}
        places = grid(order, **sizes)
    except ValueError as error:
        return Plan({"tp": tp, "cp": cp, "pp": pp, "dp": dp or 0}, [str(error)])
    reasons = _shape_reasons(job, machine, sizes)
    if reasons:
        return Plan(sizes, reasons)
    m = micro_batches(job.batch, job.micro_batch, dp)
    if job.interleaved > 1 and m % pp:
        text = f"interleaved schedule: {m} micro-batches are no multiple of {pp} stages"
        return Plan(sizes, [text])
    memory = fullest(job, m, tp, cp, pp, dp)
    total = sum(memory.values())
    if memory["states"] > machine.memory:
        reasons.append(f"memory: states alone are {_gb(memory['states'])} of {_gb(machine.memory)}")
    elif total > machine.memory:
        reasons.append(f"memory: states and activations are {_gb(total)} of {_gb(machine.memory)}")
    tokens = job.micro_batch * job.sequence
    options = dict(stage=job.stage, keep=job.keep, chunks=job.interleaved)
    sent = traffic.of_step(job.model, tokens, m, job.recipe, **sizes, **options)
    seconds = {axis: sent[axis] / speed(axis, places, machine) for axis in sizes}
    work = (6 if job.keep == "fused" else 8) * job.model.parameters * job.batch * job.sequence
    bubble = Fraction(pp - 1, m * job.interleaved)
    return Plan(sizes, reasons, memory, sent, seconds, m, bubble, work / machine.gpus / machine.flops)


def speed(axis: str, places: RankGrid, machine: Machine) -> float:
    """Bytes a second of one rank's link for what `axis` sends; gradients are averaged over dp and cp.

    Ranks of a group that are on one node share its collective's way out, each with its own port, as rings on
    rails do. A pipeline's message has one port.

    >>> places = grid(LLAMA3, tp=2, dp=32)
    >>> [speed(axis, places, Machine(64)) / 1e9 for axis in ("tp", "dp")]
    [450.0, 200.0]
    """
    own = dict(places.axes)
    axes = [a for a in (("dp", "cp") if axis == "dp" else (axis,)) if own.get(a, 1) > 1]
    if not any(places.crosses(a, machine.node) for a in axes):
        return machine.inside
    ports = 1 if axis == "pp" else prod(places.per_node(a, machine.node) for a in axes)
    return min(machine.inside, ports * machine.across)


def in_flight(m: int, pp: int, rank: int, chunks: int = 1) -> int:
    """Chunks forward of which a rank keeps the activations at most, before the first one comes back.

    1F1B: pp - rank. Interleaved: those of Megatron-LM's warm-up, and one (pipeline_parallel/schedules.py).
    """
    ahead = pp - 1 - rank if chunks == 1 else 2 * (pp - 1 - rank) + (chunks - 1) * pp
    return min(m * chunks, ahead + 1)


def fullest(job: Job, m: int, tp: int, cp: int, pp: int, dp: int) -> dict[str, int]:
    """Bytes of states and of activations on the fullest rank; of chunks that differ, as of its largest."""
    one = layer_activations(job.model, job.micro_batch * job.sequence // cp, tp, job.keep)
    held = stage_parameters(job.model, pp, tp, job.interleaved)
    found = []
    for rank, chunks in enumerate(chunk_layers(job.model, pp, job.interleaved)):
        states = state_bytes(held[rank], job.recipe, ranks=dp * cp, stage=job.stage)
        layers = in_flight(m, pp, rank, job.interleaved) * max(chunks)
        found.append({"states": states, "activations": layers * one})
    return max(found, key=lambda parts: sum(parts.values()))


def _shape_reasons(job: Job, machine: Machine, sizes: dict[str, int]) -> list[str]:
    model, product = job.model, prod(sizes.values())
    if product != machine.gpus:
        by = " x ".join(f"{name} {size}" for name, size in sizes.items())
        return [f"world size: {by} = {product:,}, not {machine.gpus:,} GPUs"]
    cut = {
        "heads": model.width // HEAD,
        "key/value heads": model.kv_width // HEAD,
        "hidden width": model.hidden,
        "rows of the embedding": model.vocabulary,
    }
    tp, cp, pp, dp = sizes.values()
    found = [f"tp: {size:,} {name} can't be cut in {tp}" for name, size in cut.items() if size % tp]
    if job.sequence * job.micro_batch // cp % tp:
        found.append(f"tp: {job.sequence * job.micro_batch // cp:,} tokens can't be cut in {tp}")
    if job.sequence % (2 * cp):
        found.append(f"cp: {job.sequence:,} tokens can't be cut in {2 * cp} pieces")
    if pp > model.layers:
        found.append(f"pp: {model.layers} layers for {pp} stages")
    else:
        try:
            chunk_layers(model, pp, job.interleaved)
        except ValueError as error:
            found.append(str(error))
    if job.batch % (job.micro_batch * dp):
        text = f"batch: {job.batch} is no multiple of micro-batch {job.micro_batch} x dp {dp}"
        found.append(text)
    return found


def _gb(size: float) -> str:
    return f"{size / 1e9:,.1f} GB"

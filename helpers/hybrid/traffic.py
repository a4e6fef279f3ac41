"""What each parallel axis makes one rank send in a training step, in bytes, by ring collectives.

Elements are BF16 where nothing else is said. What a layer does not keep (helpers.llama.shards.KEEP), and had
from other ranks, it gathers again. Left out: latency, what overlaps, embedding and loss, gradients of norms.
"""

from helpers.arguments import whole_numbers
from helpers.llama.shards import chunk_layers, stage_parameters
from helpers.memory.needed import Recipe
from helpers.models import Llama3

BF16 = 2  # bytes


# Trips of a whole activation round the ring, a layer: an all-gather or reduce-scatter is one, AllReduce two.
PASSES = {"everything": 8, "fused": 10, "inputs": 12}


def tensor(
    model: Llama3, tokens: int, micro_batches: int, tp: int, layers: int, keep: str = "everything"
) -> int:
    """Two AllReduces forward and two backward in every layer (Shoeybi et al. 2019, section 3), eight passes.

    tokens: of one micro-batch on one rank. A reduce-scatter and an all-gather in the place of each AllReduce
    (sequence parallelism) send as much, if both matrices' inputs are kept whole; "fused" keeps a rank's own
    rows and gathers the others again in the backward pass (Megatron-LM's tensor_parallel/layers.py), "inputs"
    repeats the whole forward pass. Raises ValueError for another keep, and counts below 1.

    >>> from helpers.models import LLAMA3_8B
    >>> [tensor(LLAMA3_8B, 32_768, 1, tp=8, layers=1, keep=k) // 10**6 for k in PASSES]
    [1879, 2348, 2818]
    """
    whole_numbers(tokens=tokens, micro_batches=micro_batches, tp=tp, layers=layers)
    if keep not in PASSES:
        raise ValueError(f"keep={keep!r}: expected one of {', '.join(PASSES)}")
    return layers * micro_batches * PASSES[keep] * (tp - 1) * tokens * model.width * BF16 // tp


def context(model: Llama3, sequence: int, micro_batches: int, tp: int, cp: int, layers: int) -> int:
    """Keys and values: gathered forward, again backward, since a rank keeps its own; gradients scattered.

    sequence: tokens of one micro-batch on all `cp` ranks together (Dubey et al. 2024, section 3.3.2).
    """
    whole_numbers(sequence=sequence, micro_batches=micro_batches, tp=tp, cp=cp, layers=layers)
    whole = sequence * 2 * model.kv_width * BF16 // tp
    return layers * micro_batches * 3 * (cp - 1) * whole // cp


def pipeline(model: Llama3, tokens: int, micro_batches: int, pp: int, parts: int = 1, chunks: int = 1) -> int:
    """What a stage in the middle sends: an activation on, a gradient back, for each of its chunks.

    Of two stages each is an end: one way less. parts: ranks that cut the activation among them; with sequence
    parallelism all tensor ranks do, without it each sends the whole. Raises ValueError for counts below 1.
    """
    whole_numbers(tokens=tokens, micro_batches=micro_batches, pp=pp, parts=parts, chunks=chunks)
    ways = 2 * chunks - (pp == 2) if pp > 1 else 0
    return ways * micro_batches * tokens * model.width * BF16 // parts


def data(parameters: int, micro_batches: int, ranks: int, recipe: Recipe, stage: int = 0) -> int:
    """Gradients reduced, and weights gathered or, without ZeRO, the other half of the AllReduce.

    parameters: of one rank before ZeRO cuts them. ranks: that share the model, dp * cp. Stage 0 and 1 of ZeRO
    reduce once a step; stage 2 keeps only its piece and so scatters after every micro-batch; stage 3 gathers
    weights for every forward and backward pass, too. Raises ValueError for another stage.
    """
    whole_numbers(parameters=parameters, micro_batches=micro_batches, ranks=ranks)
    scattered = {1: (1, 1), 2: (micro_batches, 1), 3: (micro_batches, 2 * micro_batches)}
    if stage == 0:
        sent = 2 * recipe.gradients  # an AllReduce of gradients
    elif stage in scattered:
        sent = scattered[stage][0] * recipe.gradients + scattered[stage][1] * recipe.weights
    else:
        raise ValueError(f"stage={stage!r}: expected 0, 1, 2 or 3")
    return (ranks - 1) * parameters * sent // ranks


def of_step(
    model: Llama3,
    sequence: int,
    micro_batches: int,
    recipe: Recipe,
    *,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    dp: int = 1,
    stage: int = 0,
    keep: str = "fused",
    chunks: int = 1,
) -> dict[str, int]:
    """Bytes that the busiest rank sends in a step, by axis, with sequence parallelism along tp.

    sequence: tokens of one whole micro-batch. chunks: of the interleaved schedule, each with its boundaries.
    """
    layers = max(map(sum, chunk_layers(model, pp, chunks)))
    held = max(stage_parameters(model, pp, tp, chunks))
    tokens = sequence // cp
    return {
        "tp": tensor(model, tokens, micro_batches, tp, layers, keep),
        "cp": context(model, sequence, micro_batches, tp, cp, layers),
        "pp": pipeline(model, tokens, micro_batches, pp, parts=tp, chunks=chunks),
        "dp": data(held, micro_batches, dp * cp, recipe, stage),
    }

"""How many bytes training keeps: of states for each parameter, and of activations for each layer.

Arithmetic only; the chapter and the tests hold it to bytes counted from tensors of real training steps.
Left out: logits, gathered layers, buffers of the collectives, the allocator's waste, the CUDA context.
"""

from dataclasses import dataclass

from helpers.arguments import whole_numbers
from helpers.llama.shards import HEAD, layer_activations
from helpers.models import Llama3

MIB = 2**20
CARDS = {"80 GB": 80 * 10**9, "141 GB": 141 * 10**9}  # as the names say, in decimal bytes
REPORTED = {"80 GB": 81_559 * MIB, "141 GB": 143_771 * MIB}  # as nvidia-smi says, of an H100 and an H200


@dataclass(frozen=True)
class Recipe:
    """Bytes that one parameter costs, by what they hold; 0 for what the recipe does not keep.

    main_gradients: a copy of the gradients in FP32 that only the optimizer reads.
    buckets: a second copy of the gradients in which DDP sends them.
    """

    name: str
    weights: int
    gradients: int
    master: int = 0
    first_moment: int = 0
    second_moment: int = 0
    main_gradients: int = 0
    buckets: int = 0

    def parts(self) -> dict[str, int]:
        """What is kept, and its bytes a parameter; nothing that is 0."""
        names = {
            "weights": self.weights,
            "gradients": self.gradients,
            "master weights": self.master,
            "first moment": self.first_moment,
            "second moment": self.second_moment,
            "main gradients": self.main_gradients,
            "buckets": self.buckets,
        }
        return {name: size for name, size in names.items() if size}

    @property
    def bytes_a_parameter(self) -> int:
        """Their sum.

        >>> MIXED.bytes_a_parameter, PURE_BF16.bytes_a_parameter
        (16, 8)
        """
        return sum(self.parts().values())


MIXED = Recipe("mixed-precision Adam", 2, 2, 4, 4, 4)
MIXED_DDP = Recipe("mixed-precision Adam, DDP's buckets", 2, 2, 4, 4, 4, buckets=2)
FP32_GRADIENTS = Recipe("mixed-precision Adam, FP32 gradients", 2, 4, 4, 4, 4)
MEGATRON_16 = Recipe("Megatron, 16-bit gradients", 2, 2, 4, 4, 4, main_gradients=4)
PURE_BF16 = Recipe("pure BF16 AdamW", 2, 2, 0, 2, 2)
FP32 = Recipe("FP32 AdamW", 4, 4, 0, 4, 4)
FP32_DDP = Recipe("FP32 AdamW, DDP's buckets", 4, 4, 0, 4, 4, buckets=4)
# Over FP32 master weights; without the scales, 4 bytes a block and moment.
ADAM_8BIT = Recipe("8-bit Adam, master weights", 2, 2, 4, 1, 1)
RECIPES = (MIXED, MIXED_DDP, FP32_GRADIENTS, MEGATRON_16, PURE_BF16, FP32, FP32_DDP, ADAM_8BIT)

# From which stage of ZeRO on a part is cut in K; the optimizer's parts first, the weights last. Buckets are
# DDP's, and never cut: stages 2 and 3 do without DDP.
CUT_FROM = {
    "master weights": 1,
    "first moment": 1,
    "second moment": 1,
    "main gradients": 1,
    "gradients": 2,
    "weights": 3,
}
LAST_WITH_DDP = 1


def states_by_part(parameters: int, recipe: Recipe, ranks: int = 1, stage: int = 0) -> dict[str, int]:
    """Bytes of each part of the model states on the fullest rank; arguments and errors of `state_bytes`."""
    whole_numbers(parameters=parameters, ranks=ranks)
    if not isinstance(recipe, Recipe):
        raise ValueError(f"recipe={recipe!r}: expected a Recipe")
    if isinstance(stage, bool) or stage not in (0, 1, 2, 3):
        raise ValueError(f"stage={stage!r}: expected 0, 1, 2 or 3")
    parts = recipe.parts()
    if stage > LAST_WITH_DDP:
        parts.pop("buckets", None)
    piece = -(-parameters // ranks)
    cut = {name for name, first in CUT_FROM.items() if stage >= first}
    return {name: size * (piece if name in cut else parameters) for name, size in parts.items()}


def state_bytes(parameters: int, recipe: Recipe, ranks: int = 1, stage: int = 0) -> int:
    """Bytes of model states on the fullest rank; between steps, so without gathered layers.

    stage: of ZeRO (Rajbhandari et al. 2020, section 5); 0 replicates all, 1 cuts the optimizer's states in
    `ranks` pieces, 2 the gradients too, 3 the weights too. A piece is ceil(parameters / ranks) long, so
    the count is exact for the fullest rank, and pieces may add up to a little more than the whole.
    Stages 2 and 3 have no DDP and so no buckets. Raises ValueError for counts below 1, other stages, and what
    is no Recipe.

    >>> state_bytes(7, MIXED), state_bytes(7, MIXED, ranks=4, stage=1), state_bytes(7, MIXED, 4, stage=3)
    (112, 52, 32)
    """
    return sum(states_by_part(parameters, recipe, ranks, stage).values())


def activation_bytes(sequence: int, batch: int, width: int, heads: int, keep: str = "scores") -> int:
    """Bytes that the forward pass of one layer of a GPT keeps for the backward pass.

    The usual formula, s b h (34 + 5 a s / h) (Korthikanti et al. 2022, section 4): 16-bit activations,
    one-byte dropout masks, a feed-forward width of 4 h, GELU; without the statistics of the norms.
    sequence s, batch b (of one micro-batch), width h, heads a. keep: "scores" for all of it; "no scores"
    drops the 5 a s / h, as flash attention or selective recomputation does (flash keeps four bytes a row
    instead, which are not counted); "inputs" is full recomputation and keeps the layer's input only, 2 s b h.
    Raises ValueError for bad sizes and another keep.

    >>> activation_bytes(2048, 1, 4096, 32), activation_bytes(2048, 1, 4096, 32, "no scores")
    (956301312, 285212672)
    """
    whole_numbers(sequence=sequence, batch=batch, width=width, heads=heads)
    if width % heads:
        raise ValueError(f"heads={heads}: expected a divisor of width={width}")
    numbers = sequence * batch * width  # in one activation of the layer
    sizes = {"scores": 34 * numbers + 5 * heads * sequence**2 * batch, "no scores": 34 * numbers}
    sizes["inputs"] = 2 * numbers
    if keep not in sizes:
        raise ValueError(f"keep={keep!r}: expected one of {', '.join(sizes)}")
    return sizes[keep]


def llama_activations(model: Llama3, tokens: int, keep: str = "no scores") -> int:
    """Bytes of activations that all layers of a Llama 3 hold at most, for one sequence of `tokens` tokens.

    BF16, no dropout, norms and SwiGLU's product computed again (helpers.llama.shards). keep: "no scores" as
    with flash attention; "scores" adds the softmax's output, two bytes for each head and pair of tokens;
    "inputs" keeps each layer's input, and beside them one layer without scores, the one that runs again.
    Raises ValueError for bad sizes and another keep.

    >>> from helpers.models import LLAMA3_8B
    >>> [llama_activations(LLAMA3_8B, 8192, keep) // 10**6 for keep in ("scores", "no scores", "inputs")]
    [162135, 24696, 2852]
    """
    whole_numbers(tokens=tokens)
    layer, own_input = (layer_activations(model, tokens, keep=kept) for kept in ("fused", "inputs"))
    heads = model.width // HEAD
    sizes = {
        "scores": model.layers * (layer + 2 * heads * tokens**2),
        "no scores": model.layers * layer,
        "inputs": model.layers * own_input + layer - own_input,
    }
    if keep not in sizes:
        raise ValueError(f"keep={keep!r}: expected one of {', '.join(sizes)}")
    return sizes[keep]

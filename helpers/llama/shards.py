"""What one rank holds of a Llama 3 that is cut by tensor and pipeline parallelism: arithmetic only.

Chapter and tests hold it to bytes of tensors that torch really cut (helpers.ranks.cut_model). Left out: the
logits, what collectives and the allocator need, padding.
"""

from helpers.arguments import whole_numbers
from helpers.models import Llama3
from helpers.schedule import chunk_sizes

HEAD = 128  # width of one attention head, in all Llama 3 models
KEEP = ("fused", "inputs")
# How Megatron-LM and torch cut what is not a norm: by rows of the weight, or by its columns.
ROWS = ("wq", "wk", "wv", "w1", "w3", "tok_embeddings", "output")
COLUMNS = ("wo", "w2")


def stage_layers(model: Llama3, pp: int) -> list[int]:
    """Transformer layers of each of `pp` stages; embedding and output take the place of a layer each.

    So Llama 3 405B has one layer less in its first and last stage (Dubey et al. 2024, section 3.3.2).
    Raises ValueError for more stages than places.

    >>> from helpers.models import LLAMA3_405B
    >>> stage_layers(LLAMA3_405B, 16)
    [7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 7]
    """
    places = model.layers + 2
    if not 1 <= pp <= places:
        raise ValueError(f"pp={pp}: expected 1 to {places} stages for {model.layers} layers")
    layers = chunk_sizes(places, pp).tolist()
    layers[0] -= 1
    layers[-1] -= 1
    return layers


def chunk_layers(model: Llama3, pp: int, chunks: int = 1) -> list[list[int]]:
    """Layers of each chunk of each pipeline rank; chunks above 1 as in the interleaved schedule.

    One chunk a rank is stage_layers. More have to come out even, with embedding and output in the place of a
    layer each, or without them, as Megatron-LM does. Raises ValueError where they do not.

    >>> from helpers.models import LLAMA3_8B
    >>> chunk_layers(LLAMA3_8B, pp=2, chunks=2)
    [[8, 8], [8, 8]]
    """
    whole_numbers(pp=pp, chunks=chunks)
    stages = pp * chunks
    if chunks == 1 or (model.layers + 2) % stages == 0:
        layers = stage_layers(model, stages)
    elif model.layers % stages == 0:
        layers = [model.layers // stages] * stages
    else:
        raise ValueError(
            f"chunks={chunks}: {model.layers} layers can't be cut in {pp} x {chunks} equal chunks"
        )
    return [layers[rank::pp] for rank in range(pp)]


def stage_parameters(model: Llama3, pp: int, tp: int, chunks: int = 1) -> list[int]:
    """Parameters that a rank of each stage holds; norms are whole on every rank, all else is cut in `tp`.

    Raises ValueError where `tp` does not divide what it cuts, and as chunk_layers.
    """
    _divides(tp, model.kv_width, model.hidden, model.vocabulary)
    d, table = model.width, model.vocabulary * model.width // tp
    matrices = 2 * d * d + 2 * model.kv_width * d + 3 * d * model.hidden
    found = [sum(layers) * (matrices // tp + 2 * d) for layers in chunk_layers(model, pp, chunks)]
    found[0] += table
    found[-1] += table + d
    return found


def layer_activations(model: Llama3, tokens: int, tp: int = 1, keep: str = "fused") -> int:
    """Bytes that one layer keeps for the backward pass of one micro-batch of `tokens` tokens, on one rank.

    BF16, flash attention, no dropout; between the cut matrices the sequence is cut in `tp` (Korthikanti et
    al. 2022). keep: "fused" computes norms and the product in SwiGLU once more, as fused kernels do; "inputs"
    keeps the layer's input and computes all else once more. What other ranks sent for it is then sent again
    (helpers.hybrid.traffic). The row sums of the softmax, four bytes a token and head, are not counted.
    Raises ValueError for another keep, and where `tp` does not divide the tokens.

    >>> from helpers.models import LLAMA3_8B
    >>> [layer_activations(LLAMA3_8B, 8192, tp=8, keep=k) // 2**20 for k in KEEP]
    [92, 8]
    """
    h, kv, f = model.width, model.kv_width, model.hidden
    widths = {"fused": 4 * h + 2 * kv + 2 * f, "inputs": h}
    if keep not in widths:
        raise ValueError(f"keep={keep!r}: expected one of {', '.join(KEEP)}")
    _divides(tp, tokens)
    return 2 * widths[keep] * tokens // tp


def _divides(tp: int, *sizes: int) -> None:
    whole_numbers(tp=tp)
    if odd := [size for size in sizes if size % tp]:
        raise ValueError(f"tp={tp}: expected a divisor of {odd[0]:,}")

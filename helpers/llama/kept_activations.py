"""What autograd keeps of one real Llama 3 layer for the backward pass, counted on tensors without data."""

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from helpers.llama.shards import COLUMNS, HEAD, KEEP, ROWS
from helpers.models import Llama3


class Gather(torch.autograd.Function):
    """The shape of an all-gather of rows, and of a reduce-scatter backward; both are noted in `passes`."""

    @staticmethod
    def forward(context, rows, parts, passes):
        context.rows, context.passes = rows.shape[0], passes
        passes.append("all-gather")
        return rows.new_empty(rows.shape[0] * parts, rows.shape[1])

    @staticmethod
    def backward(context, gradient):
        context.passes.append("reduce-scatter")
        return gradient[: context.rows], None, None


class Scatter(torch.autograd.Function):
    """The shape of a reduce-scatter of rows, and of an all-gather backward; both are noted in `passes`."""

    @staticmethod
    def forward(context, rows, parts, passes):
        context.parts, context.passes = parts, passes
        passes.append("reduce-scatter")
        return rows.new_empty(rows.shape[0] // parts, rows.shape[1])

    @staticmethod
    def backward(context, gradient):
        context.passes.append("all-gather")
        return gradient.repeat(context.parts, 1), None, None


def kept(model: Llama3, tokens: int, tp: int, keep: str) -> int:
    """Bytes that autograd saves in a forward pass of one real Llama 3 layer on one of `tp` ranks.

    Arguments and errors of `followed`.
    """
    return followed(model, tokens, tp, keep)["kept"]


def followed(model: Llama3, tokens: int, tp: int, keep: str) -> dict[str, int]:
    """One real Llama 3 layer forward and backward on one of `tp` ranks, of which each has its rows.

    The layer has the shapes of that rank's slices. keep: "fused" or "inputs" as in
    helpers.llama.shards.layer_activations, or "everything" that autograd keeps when nothing is recomputed.
    Returns bytes "kept" by autograd, parameters not counted; "gathered", those of them that are other ranks'
    rows; "passes", all-gathers and reduce-scatters of a whole activation; "out", bytes of the layer's output.
    Raises ValueError for another keep.
    """
    if keep not in ("everything", *KEEP):
        raise ValueError(f"keep={keep!r}: expected everything, {' or '.join(KEEP)}")
    with FakeTensorMode():
        w = {}
        for name, shape in model.shapes()[1:10]:
            last = name.split(".")[-1]
            rows, columns = (*shape, 1)[:2]
            rows //= tp if last in ROWS else 1
            columns //= tp if last in COLUMNS else 1
            size = (rows, columns) if len(shape) == 2 else (rows,)
            w[last] = torch.empty(size, dtype=torch.bfloat16, requires_grad=True)
        x = torch.empty(tokens // tp, model.width, dtype=torch.bfloat16, requires_grad=True)
        own = {parameter.untyped_storage()._cdata for parameter in w.values()}
        saved, passes = {}, []

        def note(tensor):
            storage = tensor.untyped_storage()
            if storage._cdata not in own:
                saved[storage._cdata] = storage, tensor.shape == (tokens, model.width)
            return tensor

        run = _again if keep == "fused" else _now
        whole = _again if keep == "inputs" else _now
        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            y = whole(lambda rows: _layer(rows, w, tp, run, passes), x)
        size = {
            "kept": sum(storage.nbytes() for storage, _ in saved.values()),
            "gathered": sum(s.nbytes() * (tp - 1) // tp for s, is_whole in saved.values() if is_whole),
        }
        y.backward(torch.empty_like(y))
    return size | {"passes": len(passes), "out": y.untyped_storage().nbytes()}


def _now(f, *inputs):
    return f(*inputs)


def _again(f, *inputs):
    """Keep the inputs of f only, and compute it once more in the backward pass."""
    return checkpoint(f, *inputs, use_reentrant=True, preserve_rng_state=False)


def _layer(x, w, tp: int, run, passes: list):
    def normed(rows, weight):
        return Gather.apply(functional.rms_norm(rows, rows.shape[1:], weight), tp, passes)

    def queries_keys_values(rows):
        full = normed(rows, w["attention_norm"])
        return tuple(full @ w[name].T for name in ("wq", "wk", "wv"))

    def gates(rows):
        full = normed(rows, w["ffn_norm"])
        return full @ w["w1"].T, full @ w["w3"].T

    by_head = [part.unflatten(1, (-1, HEAD)).transpose(0, 1)[None] for part in run(queries_keys_values, x)]
    mixed = functional.scaled_dot_product_attention(*by_head, is_causal=True, enable_gqa=True)
    out = mixed[0].transpose(0, 1).flatten(1) @ w["wo"].T
    x = x + Scatter.apply(out, tp, passes)
    product = run(lambda a, b: (functional.silu(a) * b) @ w["w2"].T, *run(gates, x))
    return x + Scatter.apply(product, tp, passes)

"""Rank functions that cut the sequence: an AllReduce in two halves, and attention over cut rows.

Korthikanti et al. 2022, section 4.2.2, put what stands between two tensor-parallel blocks between a
reduce-scatter and an all-gather. Dubey et al. 2024, section 3.3.2, gather keys and values. Left out: Llama 3's
exchange of early chunks against late ones, which balances the causal mask.
"""

import torch
import torch.distributed as dist
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from helpers.counting.volume import PASSES, Volume
from helpers.processes.rank import device


def norm_between(
    rank: int, world_size: int, parts, weight, kind: str, summed: bool = True
) -> dict:
    """A norm of the sum of all ranks' parts, after an AllReduce, and between its two halves; sum(y^2)/2.

    parts (ranks, rows, width): what rank r brings is parts[r]. weight (width): of the norm, whole on every rank.
    kind: "layer" or "batch". summed: False leaves the weight's gradient as this rank's rows make it.
    Returns for "whole" and "halves" the output (rows, width), the gradient of the weight, and the bytes that
    autograd keeps for the norm.
    """
    if kind not in ("layer", "batch"):
        raise ValueError(f"kind={kind!r}: expected layer or batch")
    mine = parts[rank].to(device())
    whole = mine.clone()
    dist.all_reduce(whole)
    own = torch.empty_like(mine[: len(mine) // world_size])
    dist.reduce_scatter(own, list(mine.chunk(world_size)))
    y, gradient, kept = _normed(whole, weight, kind)
    told = {"whole": (y.cpu(), gradient.cpu(), kept)}
    y, gradient, kept = _normed(own, weight, kind)
    gathered = [torch.empty_like(own) for _ in range(world_size)]
    dist.all_gather(gathered, y)
    if summed:
        dist.all_reduce(gradient)
    return told | {"halves": (torch.cat(gathered).cpu(), gradient.cpu(), kept)}


def _normed(rows, weight, kind: str) -> tuple[torch.Tensor, torch.Tensor, int]:
    weight, kept = weight.to(device()).clone().requires_grad_(), {}

    def note(tensor):
        if tensor.untyped_storage()._cdata != weight.untyped_storage()._cdata:
            kept[tensor.untyped_storage()._cdata] = tensor.untyped_storage().nbytes()
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        if kind == "layer":
            y = functional.layer_norm(rows, rows.shape[1:], weight)
        else:
            y = functional.batch_norm(rows, None, None, weight, training=True)
    (y.pow(2).sum() / 2).backward()
    return y.detach(), weight.grad, sum(kept.values())


class GatherRows(torch.autograd.Function):
    """All-gather along the first dimension; its backward pass is a reduce-scatter."""

    @staticmethod
    def forward(context, rows):
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(context, gradient):
        parts = [part.contiguous() for part in gradient.chunk(dist.get_world_size())]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts)
        return own


def cut_attention(
    rank: int, world_size: int, x, weights, gather: bool = True, summed: bool = True
) -> dict:
    """Causal attention over a sequence of which each rank has a K-th; the loss is sum(y^2)/2.

    x (tokens, width): whole; the rank takes its rows. weights (3, width, width): of queries, keys and values,
    whole on every rank. Other ranks' keys and values are not kept, but gathered again in the backward pass.
    gather: False lets a rank see its own keys only. summed: False leaves the weights' gradient as its rows
    make it. Returns this rank's rows of "y" and of the gradient "x", the gradient "weights", and "passes" times
    numbers of the whole vector, of all all-gathers and reduce-scatters.
    """
    rows = x.chunk(world_size)[rank].to(device()).requires_grad_()
    w = weights.to(device()).requires_grad_()
    places = torch.arange(len(x), device=device())
    seen = places if gather else places.chunk(world_size)[rank]
    mask = places.chunk(world_size)[rank][:, None] >= seen

    def attend(q, *others):
        k, v = (GatherRows.apply(t) if gather else t for t in others)
        scores = q @ k.T / q.shape[1] ** 0.5
        return scores.masked_fill(~mask, -torch.inf).softmax(1) @ v

    with Volume() as volume:
        y = checkpoint(attend, *(rows @ each.T for each in w), use_reentrant=False)
        (y.pow(2).sum() / 2).backward()
    if summed:
        dist.all_reduce(w.grad)
    told = {"y": y.detach(), "x": rows.grad, "weights": w.grad}
    moved = sum(PASSES[call.name] * call.numbers for call in volume.calls)
    return {name: value.cpu() for name, value in told.items()} | {"passes": moved}

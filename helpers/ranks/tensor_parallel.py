"""Rank functions of tensor parallelism as in Megatron-LM: every matrix cut, two conjugate operators.

Shoeybi et al. 2019, section 3: f passes on in the forward pass and sums over ranks in the backward pass,
g the other way round. Left out: dropout, the embedding, a loss over a cut vocabulary.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional

from helpers.processes.rank import device


class F(torch.autograd.Function):
    """Megatron's f: nothing forward, an AllReduce backward. Stands where an activation fans out."""

    @staticmethod
    def forward(context, x, group):
        context.group = group
        return x.view_as(x)

    @staticmethod
    def backward(context, gradient):
        gradient = gradient.contiguous().clone()
        dist.all_reduce(gradient, group=context.group)
        return gradient, None


class G(torch.autograd.Function):
    """Megatron's g: an AllReduce forward, nothing backward. Stands where partial sums come together."""

    @staticmethod
    def forward(context, x, group):
        x = x.clone()
        dist.all_reduce(x, group=group)
        return x

    @staticmethod
    def backward(context, gradient):
        return gradient, None


def mlp(x, up, down, group=None, f=F.apply, g=G.apply):
    """x (..., h) through this rank's rows of up (4h/K, h) and columns of down (h, 4h/K).

    Megatron-LM writes x A, and so says columns, then rows; torch stores a layer's weight transposed.
    """
    hidden = functional.gelu(f(x, group) @ up.T)
    return g(hidden @ down.T, group)


def passed_on(x, group):
    """What stands in place of f or g where somebody forgot it."""
    return x


def own(weight: torch.Tensor, dim: int, rank: int, parts: int) -> torch.Tensor:
    """This rank's slice of `weight` as a leaf of its own."""
    cut = weight.chunk(parts, dim)[rank].clone()
    return cut.to(device()).requires_grad_()


def cut_mlp(rank: int, world_size: int, x, up, down, without_f: bool = False) -> dict:
    """Forward and backward of an MLP whose two matrices are cut in `world_size`; the loss is sum(y^2)/2.

    x (tokens, h), up (4h, h), down (h, 4h). Returns "y", the gradients "x", "up", "down" (the last two of
    this rank's slices), and the AllReduces "forward" and "backward".
    """
    x = x.to(device()).requires_grad_()
    mine = own(up, 0, rank, world_size), own(down, 1, rank, world_size)
    with CommDebugMode() as forward:
        y = mlp(x, *mine, f=passed_on if without_f else F.apply)
    with CommDebugMode() as backward:
        (y.pow(2).sum() / 2).backward()
    told = {"y": y.detach(), "x": x.grad, "up": mine[0].grad, "down": mine[1].grad}
    calls = {
        "forward": forward.get_total_counts(),
        "backward": backward.get_total_counts(),
    }
    return {name: value.cpu() for name, value in told.items()} | calls


def cut_by_torch(rank: int, world_size: int, x, up, down) -> dict:
    """The same by torch's parallelize_module; returns what cut_mlp returns."""
    model = nn.Sequential(
        nn.Linear(*up.T.shape, bias=False, dtype=up.dtype),
        nn.GELU(),
        nn.Linear(*down.T.shape, bias=False, dtype=down.dtype),
    ).to(device())
    model.load_state_dict({"0.weight": up, "2.weight": down})
    mesh = init_device_mesh(device().type, (world_size,))
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    parallelize_module(model, mesh, plan)
    x = x.to(device()).requires_grad_()
    with CommDebugMode() as forward:
        y = model(x)
    with CommDebugMode() as backward:
        (y.pow(2).sum() / 2).backward()
    local = [model[i].weight.grad.to_local() for i in (0, 2)]
    told = {"y": y.detach(), "x": x.grad, "up": local[0], "down": local[1]}
    calls = {
        "forward": forward.get_total_counts(),
        "backward": backward.get_total_counts(),
    }
    return {name: value.cpu() for name, value in told.items()} | calls


def cut_layer(rank: int, world_size: int, x, weights: dict, heads: int) -> dict:
    """Forward and backward of a whole transformer layer, heads and matrices cut in `world_size`.

    x (batch, tokens, h); weights: the state of nn.TransformerEncoderLayer(norm_first=True, bias=False).
    Returns "y", the gradients "x", "out_proj.weight" and "linear1.weight" (of this rank's slices), and the
    number of AllReduces, "forward" and "backward".
    """
    x = x.to(device()).requires_grad_()
    w = {name: value.to(device()) for name, value in weights.items()}
    qkv = [
        own(part, 0, rank, world_size)
        for part in w["self_attn.in_proj_weight"].chunk(3)
    ]
    out = own(w["self_attn.out_proj.weight"], 1, rank, world_size)
    up = own(w["linear1.weight"], 0, rank, world_size)
    down = own(w["linear2.weight"], 1, rank, world_size)
    with CommDebugMode() as forward:
        normed = F.apply(
            functional.layer_norm(x, x.shape[-1:], w["norm1.weight"]), None
        )
        parts = [normed @ part.T for part in qkv]
        by_head = [
            p.unflatten(-1, (heads // world_size, -1)).transpose(1, 2) for p in parts
        ]
        mixed = functional.scaled_dot_product_attention(*by_head)
        attended = x + G.apply(mixed.transpose(1, 2).flatten(2) @ out.T, None)
        normed = functional.layer_norm(attended, x.shape[-1:], w["norm2.weight"])
        y = attended + mlp(normed, up, down)
    with CommDebugMode() as backward:
        (y.pow(2).sum() / 2).backward()
    told = {"y": y.detach(), "x": x.grad}
    told |= {"self_attn.out_proj.weight": out.grad, "linear1.weight": up.grad}
    calls = {
        "forward": forward.get_total_counts(),
        "backward": backward.get_total_counts(),
    }
    return {name: value.cpu() for name, value in told.items()} | calls

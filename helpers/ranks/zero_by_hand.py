"""Stages 1 and 2 of ZeRO as the paper has them, in a few lines on top of torch's collectives.

Left out: buckets, overlap and gradient clipping. What is cut is one vector of all parameters in stage 1, and
every parameter in stage 2; its number of elements has to be a multiple of the world size.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from helpers.counting.volume import Volume
from helpers.processes.rank import device


def reduce_scatter(vector: Tensor) -> Tensor:
    """The sum over all ranks of this rank's piece of a flat vector: rank i has piece i."""
    own = torch.empty_like(own_piece(vector))
    dist.reduce_scatter_tensor(own, vector)
    return own


def true_reduce_scatter(vector: Tensor, group=None) -> Tensor:
    """The same by swapping pieces and adding up one's own; never more than a pass."""
    received = torch.empty_like(vector)
    dist.all_to_all_single(received, vector, group=group)
    return received.view(dist.get_world_size(group), -1).sum(0)


class ZeroByHand:
    """An optimizer over replicated parameters that keeps AdamW's state for this rank's piece only.

    stage: 1 reduces all gradients in step(), as one vector; 2 each as soon as it is there, and lets go of it.
    dtype: of the optimizer's own copy of the parameters and of its state. reduce_in: dtype in which gradients
    are added up. Both are the model's by default. gather: False leaves out the last half, so that nobody hears
    of the others' updates. Stage 1 adds up the gradients of several backward passes; stage 2 takes one.
    Raises ValueError for other stages, and where the ranks do not divide a vector; RuntimeError where gradients
    come to a piece that zero_grad() did not empty.
    """

    def __init__(
        self,
        model: nn.Module,
        stage: int,
        lr: float,
        dtype: torch.dtype | None = None,
        reduce_in: torch.dtype | None = None,
        reduce_scatter: Callable[[Tensor], Tensor] = reduce_scatter,
        gather: bool = True,
    ):
        if stage not in (1, 2):
            raise ValueError(f"stage={stage!r}: expected 1 or 2")
        self.stage, self.reduce_in, self.gather = stage, reduce_in, gather
        self.reduce_scatter, every = reduce_scatter, list(model.parameters())
        self.groups = [[p] for p in every] if stage == 2 else [every]
        self.whole = [as_one_vector(group) for group in self.groups]
        self.mine = [nn.Parameter(own_piece(whole).to(dtype)) for whole in self.whole]
        self.zero_grad()
        self.adam = torch.optim.AdamW(self.mine, lr=lr)
        for i, p in enumerate(every if stage == 2 else []):
            p.register_post_accumulate_grad_hook(lambda _, i=i: self.reduce(i))

    def reduce(self, i: int) -> None:
        if self.reduced[i] is not None:
            raise RuntimeError("gradients twice, and no zero_grad() between")
        gradient = torch.cat([p.grad.flatten() for p in self.groups[i]])
        gradient = gradient.to(self.reduce_in) / dist.get_world_size()
        self.reduced[i] = self.reduce_scatter(gradient)
        for p in self.groups[i]:
            p.grad = None

    def step(self) -> None:
        for i, mine in enumerate(self.mine):
            if self.stage == 1:
                self.reduce(i)
            mine.grad = self.reduced[i].to(mine.dtype)
        self.adam.step()
        for whole, mine in zip(self.whole, self.mine, strict=True):
            mine.grad = None
            if self.gather:
                updated = mine.detach().to(whole.dtype, copy=True)
                dist.all_gather_into_tensor(whole, updated)

    def zero_grad(self) -> None:
        self.reduced: list[Tensor | None] = [None] * len(self.groups)
        for p in (p for group in self.groups for p in group):
            p.grad = None


def as_one_vector(parameters: list[nn.Parameter]) -> Tensor:
    """Their values in one new vector, of which they are views from now on."""
    vector = torch.cat([p.detach().flatten() for p in parameters])
    pieces = vector.split([p.numel() for p in parameters])
    for p, piece in zip(parameters, pieces, strict=True):
        p.data = piece.view_as(p)
    return vector


def own_piece(vector: Tensor) -> Tensor:
    ranks = dist.get_world_size()
    if len(vector) % ranks:
        words = f"a multiple of {ranks} ranks"
        raise ValueError(f"vector of {len(vector)} elements: expected {words}")
    return vector.chunk(ranks)[dist.get_rank()]


def left(rank: int, world_size: int, numbers: int) -> dict[str, tuple[list, list]]:
    """What is left on this rank of a sum, and which collectives that took, in each of three ways.

    Ways: "by swapping" (the true reduce-scatter), "AllReduce", "AllReduce, sliced"; "own" is what it brings.
    """
    draw = torch.Generator().manual_seed(rank)
    own = torch.randint(-99, 100, (numbers,), generator=draw).double().to(device())
    whole = own.clone()
    with Volume() as swapped:
        piece = true_reduce_scatter(own)
    with Volume() as reduced:
        dist.all_reduce(whole)
    return {
        "own": (own.tolist(), []),
        "AllReduce": (whole.tolist(), reduced.calls),
        "AllReduce, sliced": (whole.chunk(world_size)[rank].tolist(), reduced.calls),
        "by swapping": (piece.tolist(), swapped.calls),
    }

"""Three guards for your own training loop: copy them, they need nothing but torch.

Each is a collective, so call it on every rank, now and then: every hundred steps costs nothing to speak of.
Each raises AssertionError on every rank, saying what is wrong.
"""

import torch
import torch.distributed as dist
from torch import nn


def assert_replicas_equal(model: nn.Module) -> None:
    """Every rank holds the same bits in every parameter. Call it after an optimizer step."""
    for name, parameter in model.named_parameters():
        _assert_same(parameter.detach(), f"parameter {name}")


def assert_gradients_synchronised(model: nn.Module) -> None:
    """Every rank holds the same bits in every gradient. Call it between backward and the optimizer step."""
    for name, parameter in model.named_parameters():
        has = torch.tensor(int(parameter.grad is not None), device=parameter.device)
        most, least = has.clone(), has.clone()
        dist.all_reduce(most, dist.ReduceOp.MAX)
        dist.all_reduce(least, dist.ReduceOp.MIN)
        assert int(most) == int(least), f"gradient of {name}: only some ranks have one"
        if parameter.grad is not None:
            _assert_same(parameter.grad, f"gradient of {name}")


def assert_shards_differ(indices: list[int]) -> None:
    """No sample was drawn twice in this step, and some rank drew one.

    indices: the data set's indices that this rank draws in the step. A DistributedSampler that pads
    repeats a few on purpose, in the last step of an epoch.
    """
    everybody: list = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, list(indices))
    drawn = [index for share in everybody for index in share]
    assert drawn, "nobody drew a sample"
    twice = sorted({index for index in drawn if drawn.count(index) > 1})
    assert not twice, f"samples {twice[:5]} were drawn more than once in this step"


def _assert_same(tensor: torch.Tensor, what: str) -> None:
    """All ranks hold rank 0's bits."""
    first = tensor.clone()
    dist.broadcast(first, 0)
    differs = torch.tensor(int(not torch.equal(first, tensor)), device=tensor.device)
    dist.all_reduce(differs)
    assert int(differs) == 0, f"{what}: {int(differs)} rank(s) differ from rank 0"

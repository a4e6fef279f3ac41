"""Three guards for your own training loop: copy them, they need nothing but torch.

They are for replicas, as DDP keeps them: not for FSDP or tensor parallelism, whose parameters are shards.
Each is a collective: call it on every rank or on none, and not inside DDP's join(). Each raises
AssertionError on every rank, saying what is wrong. They compare bits, so NaN equals NaN.
"""

from collections import Counter

import torch
import torch.distributed as dist
from torch import nn


def assert_replicas_equal(model: nn.Module) -> None:
    """Call after an optimizer step: all ranks hold the same parameters (buffers are left out)."""
    for name, parameter in model.named_parameters():
        _assert_same(parameter.detach(), f"parameter {name}")


def assert_gradients_synchronised(model: nn.Module) -> None:
    """Call between backward and the optimizer step: all ranks hold the same gradients."""
    parameters = dict(model.named_parameters())
    device = next(iter(parameters.values())).device
    has = [int(p.grad is not None) for p in parameters.values()]
    ranks = torch.tensor(has, device=device)
    dist.all_reduce(ranks)
    assert int(ranks.sum()), "no parameter has a gradient"
    for count, name in zip(ranks.tolist(), parameters, strict=True):
        words = f"gradient of {name}: only {count} rank(s) have one"
        assert count in (0, dist.get_world_size()), words
        if count:
            _assert_same(parameters[name].grad, f"gradient of {name}")


def assert_shards_differ(indices: list[int] | torch.Tensor) -> None:
    """Call with the indices that this rank draws in a step: no sample is drawn twice.

    It looks at one step: what a DistributedSampler repeats, to fill the last step of an
    epoch, was drawn in the first, and is seen only if you pass the whole epoch.
    Under NCCL, torch.cuda.set_device has to have been called.
    """
    own = [int(index) for index in indices]
    everybody: list = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, own)
    drawn = Counter(index for share in everybody for index in share)
    twice = sorted(index for index, times in drawn.items() if times > 1)
    assert not twice, f"samples {twice[:5]} were drawn more than once in this step"


def _assert_same(tensor: torch.Tensor, what: str) -> None:
    """All ranks hold rank 0's bits."""
    own = tensor.to_dense() if tensor.is_sparse else tensor
    own = own.reshape(-1).contiguous().view(torch.uint8)
    first = own.clone()
    dist.broadcast(first, 0)
    differs = torch.tensor(int(not torch.equal(first, own)), device=own.device)
    dist.all_reduce(differs)
    assert int(differs) == 0, f"{what}: {int(differs)} rank(s) differ from rank 0"

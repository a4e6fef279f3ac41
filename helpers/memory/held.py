"""What training really holds: bytes of tensors that exist, each piece of memory counted once.

A piece is a storage; views, and a bucket with the gradients in it, share one. Tensors without data ("meta")
count as if they had it. What C++ keeps without a Python object is seen only where something hands it out.
"""

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.optim import AdamW

from helpers.llama.like import LlamaLike
from helpers.memory.master_weights import MasterAdamW
from helpers.models import Llama3

MOMENTS = {"first moment": "exp_avg", "second moment": "exp_avg_sq", "step counters": "step"}


def pieces(tensors: Iterable[Tensor]) -> dict[int, int]:
    """Identity and bytes of every storage these tensors lie in; of a sharded tensor, this rank's part."""
    found = {}
    for tensor in tensors:
        local = tensor.to_local() if hasattr(tensor, "to_local") else tensor
        storage = local.untyped_storage()
        found[storage._cdata] = storage.nbytes()  # not its address, which is 0 where there is no data
    return found


def named(model: nn.Module, optimizer: AdamW | MasterAdamW) -> dict[str, list[Tensor]]:
    """The tensors that a training step leaves behind, by what they hold."""
    weights = list(model.parameters())
    master, kept = getattr(optimizer, "master", []), getattr(optimizer, "gradients", None)
    states = [s for adam in getattr(optimizer, "adams", [optimizer]) for s in adam.state.values()]
    own, main = ([t.grad for t in ts if t.grad is not None] for ts in (weights, master))
    return {
        "weights": weights,
        "gradients": own + (main if kept == "accumulated" else []),
        "master weights": master,
        **{name: [state[key] for state in states] for name, key in MOMENTS.items()},
        "main gradients": main if kept != "accumulated" else [],
    }


def bytes_of(parts: dict[str, list[Tensor]]) -> dict[str, int]:
    """Bytes of every part that is not empty; a piece that two parts share counts for the first only."""
    seen, sizes = set(), {}
    for name, tensors in parts.items():
        new = {place: size for place, size in pieces(tensors).items() if place not in seen}
        seen |= set(new)
        sizes[name] = sum(new.values())
    return {name: size for name, size in sizes.items() if size}


@contextlib.contextmanager
def newborn() -> Iterator[dict[int, int]]:
    """Every piece of memory of the tensors that Python can reach at the end and could not at the beginning.

    A gradient counts with its tensor. The garbage collector knows all tensors that are alive; freezing hides
    those that were there before. The dict is filled when the block ends.
    """
    found = {}
    gc.freeze()
    try:
        yield found
        found.update(_reachable())
    finally:
        gc.unfreeze()


def _reachable() -> dict[int, int]:
    tensors = [each for each in gc.get_objects() if issubclass(type(each), Tensor)]
    tensors += [each.grad for each in tensors if each.is_leaf and each.grad is not None]
    return pieces(tensors)


def after_a_step(dtype: torch.dtype, gradients: str | None = None) -> dict:
    """What a training step of a small network leaves behind, counted twice, and what it takes meanwhile.

    dtype: of the network. gradients: None for torch's AdamW, else MasterAdamW with its word for them.
    Returns "parts", bytes by name without the step counters; "counters", their bytes; "parameters";
    "largest", how many of them the largest tensor has; "new", the bytes of all tensors that were not there
    before; and "meanwhile", how many more there are at most when an optimizer has updated its tensors.
    There are two steps, as AdamW makes its moments in the first.
    """
    seen = []
    with newborn() as new:
        model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64)).to(dtype)
        update = AdamW(model.parameters()) if gradients is None else MasterAdamW(model, gradients)
        for adam in getattr(update, "adams", [update]):
            adam.register_step_post_hook(lambda *_: seen.append(sum(_reachable().values())))
        for _ in range(2):
            update.zero_grad()
            model(torch.ones(2, 64, dtype=dtype)).sum().backward()
            update.step()
    parts, numbers = bytes_of(named(model, update)), [weight.numel() for weight in model.parameters()]
    return {
        "counters": parts.pop("step counters"),
        "parts": parts,
        "parameters": sum(numbers),
        "largest": max(numbers),
        "new": sum(new.values()),
        "meanwhile": max(seen) - sum(new.values()),
    }


def whole_model(model: Llama3, gradients: str | None = "passing") -> dict[str, int]:
    """Bytes of each part after a training step of all of `model`, in BF16 and on tensors without data.

    gradients: as for `after_a_step`. Without the step counters.
    """
    module = LlamaLike(model, device="meta")
    update = AdamW(module.parameters()) if gradients is None else MasterAdamW(module, gradients)
    module(torch.zeros(2, dtype=torch.int64, device="meta")).sum().backward()
    update.step()
    parts = bytes_of(named(module, update))
    parts.pop("step counters")
    return parts


@contextlib.contextmanager
def saving(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collects what autograd saves for the backward pass inside the block, but for the model's weights."""
    weights, saved = pieces(model.parameters()), []

    def keep(tensor: Tensor) -> Tensor:
        if not weights.keys() & pieces([tensor]):
            saved.append(tensor)
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        yield saved


def saved_by(forward: Callable[[], Tensor], model: nn.Module) -> list[Tensor]:
    """The tensors that this forward pass of the model saves for the backward pass, without its weights."""
    with saving(model) as saved:
        result = forward()
    del result
    return saved

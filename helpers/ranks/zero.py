"""Rank functions that train one small model with DDP and with every stage of ZeRO, and note what that takes."""

import warnings
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from helpers.counting.volume import Volume
from helpers.llama.blocks import SMALL, LlamaBlocks
from helpers.memory.held import pieces
from helpers.processes.rank import device
from helpers.ranks.zero_by_hand import ZeroByHand, reduce_scatter, true_reduce_scatter

LEARNING_RATE = 0.01
TOKENS = 16  # of a rank, a step
SCALE = 64  # the model's widths are divided by this


class TrueReduceScatter:
    """FSDP2's reduce-scatter, made of one that moves no more than it must.

    Raises ValueError for what it does not do: other operations than SUM and AVG, and not to wait.
    """

    def allocate(self, size, *, dtype, device):
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG) or async_op:
            wrong = f"op={op}, async_op={async_op}"
            raise ValueError(f"{wrong}: expected SUM or AVG, and False")
        output_tensor.copy_(true_reduce_scatter(input_tensor, group))
        if op == dist.ReduceOp.AVG:
            output_tensor /= dist.get_world_size(group)


def adamw(model: nn.Module) -> torch.optim.AdamW:
    return torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)


def replicated(model: nn.Module) -> DistributedDataParallel:
    return DistributedDataParallel(model, gradient_as_bucket_view=True)


def ddp(model: nn.Module, own_reduce_scatter: bool):
    return replicated(model), adamw(model)


def ddp_zero1(model: nn.Module, own_reduce_scatter: bool):
    update = ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.AdamW, lr=LEARNING_RATE
    )
    return replicated(model), update


def by_hand(model: nn.Module, own_reduce_scatter: bool, stage: int, **options):
    scatter = true_reduce_scatter if own_reduce_scatter else reduce_scatter
    options |= dict(reduce_scatter=scatter)
    return model, ZeroByHand(model, stage, LEARNING_RATE, **options)


def sharded(model: nn.Module, own_reduce_scatter, blocks=True, reshard=None, **options):
    mesh = init_device_mesh(device().type, (dist.get_world_size(),))
    options |= dict(mesh=mesh, reshard_after_forward=reshard)
    for part in [*model.layers, model] if blocks else [model]:
        fully_shard(part, **options)
        if own_reduce_scatter:
            part.set_custom_reduce_scatter(TrueReduceScatter())
    return model, adamw(model)


def optimizer_first(model: nn.Module, own_reduce_scatter: bool):
    update = adamw(model)
    return sharded(model, own_reduce_scatter)[0], update


def in_widths(parameters: torch.dtype, gradients: torch.dtype, reshard: bool):
    """FSDP2 on a model in FP32, whose parameters and gradients travel in these."""
    policy = MixedPrecisionPolicy(param_dtype=parameters, reduce_dtype=gradients)
    return lambda model, own: sharded(
        model.float(), own, reshard=reshard, mp_policy=policy
    )


FP32, BF16 = torch.float32, torch.bfloat16
WAYS = {
    "DDP": ddp,
    "torch's ZeRO-1": ddp_zero1,
    "ZeRO-1 by hand": partial(by_hand, stage=1),
    "ZeRO-2 by hand": partial(by_hand, stage=2),
    "FSDP2, kept": partial(sharded, reshard=False),
    "FSDP2, resharded": partial(sharded, reshard=True),
    "FSDP2 by default": sharded,
    "FSDP2, one group": partial(sharded, blocks=False),
    "without the gather": partial(by_hand, stage=1, gather=False),
    "optimizer first": optimizer_first,
}
WIDTHS = {  # of parameters / of gradients, on their way
    "DDP, FP32": lambda model, own: ddp(model.float(), own),
    "DDP, BF16": lambda model, own: ddp(model.bfloat16(), own),
    "ZeRO-1, BF16/FP32": lambda model, own: by_hand(
        model.bfloat16(), own, stage=1, dtype=FP32, reduce_in=FP32
    ),
    "kept, BF16/FP32": in_widths(BF16, FP32, reshard=False),
    "resharded, BF16/FP32": in_widths(BF16, FP32, reshard=True),
    "resharded, BF16/BF16": in_widths(BF16, BF16, reshard=True),
}


def train(
    rank: int, world_size: int, ways: list[str], steps: int = 2
) -> dict[str, dict]:
    """Train the same float64 model from the same start in each of the ways, and say what the last step took.

    ways: names of WAYS or of WIDTHS, which change the model's type. Of each: "parameters", all of them, flat,
    after the last step; "calls", the collectives of the last step; "held", bytes that this rank keeps:
    parameters between steps, gradients after the backward pass, optimizer state; "gathered at the loss",
    bytes; "norm" of the gradients that this rank has; and in FSDP2's ways "norm by torch". DDP arranges its
    buckets after a backward pass and then tells all ranks, so it has one more, before the first step.
    """
    warnings.filterwarnings("ignore", category=UserWarning)  # FSDP2 on its own hooks
    return {way: _train(rank, way, steps) for way in ways}


def _train(rank: int, way: str, steps: int) -> dict:
    model = LlamaBlocks(SMALL, scale=SCALE).to(device())
    called, update = {**WAYS, **WIDTHS}[way](model, False)
    if isinstance(called, DistributedDataParallel):  # for its buckets; no update
        called(tokens(rank, step=0)[:-1]).sum().backward()
    for step in range(steps):
        found = train_step(called, model, update, tokens(rank, step))
    whole = [_whole(p).flatten() for p in model.parameters()]
    found["held"]["optimizer"] = storage_bytes(state_of(update))
    if _is_sharded(model):
        norm = nn.utils.get_total_norm([p.grad for p in model.parameters()])
        found["norm by torch"] = float(norm.full_tensor())
    return {"parameters": torch.cat(whole).cpu(), **found}


def tokens(rank: int, step: int) -> torch.Tensor:
    """The tokens of a rank in a step, and the one after them."""
    draw = torch.Generator().manual_seed(1000 * step + rank)
    vocabulary = SMALL.vocabulary // SCALE
    return torch.randint(vocabulary, (TOKENS + 1,), generator=draw).to(device())


def train_step(called, model: nn.Module, update, tokens: torch.Tensor) -> dict:
    """One step, and what it took; `called` is the model or its wrapper."""
    held = {"parameters": storage_bytes(model.parameters())}
    gathered = 0
    update.zero_grad()
    with Volume() as volume:
        volume.phase = "forward"
        loss = nn.functional.cross_entropy(called(tokens[:-1]), tokens[1:])
        if _is_sharded(called):
            whole = (p for p in model.parameters() if not isinstance(p, DTensor))
            gathered = storage_bytes(whole)
        volume.phase = "backward"
        loss.backward()
        gradients = [p.grad for p in model.parameters()]
        gradients += getattr(update, "reduced", [])
        held["gradients"], norm = storage_bytes(gradients), _norm(gradients)
        volume.phase = "update"
        update.step()
    found = {"calls": volume.calls, "held": held, "norm": norm}
    return {**found, "gathered at the loss": gathered}


def state_of(update) -> list[torch.Tensor]:
    """AdamW's moments; its counters of steps are left out."""
    inner = getattr(update, "optim", getattr(update, "adam", update))
    return [t for state in inner.state.values() for t in state.values() if t.dim()]


def storage_bytes(tensors) -> int:
    """Bytes of memory behind these tensors (or Nones), each piece of memory once; a DTensor is its local part."""
    return sum(pieces(tensor for tensor in tensors if tensor is not None).values())


def _is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDPModule)


def _whole(p: torch.Tensor) -> torch.Tensor:
    return p.detach().full_tensor() if isinstance(p, DTensor) else p.detach()


def _norm(tensors) -> float:
    local = [t.to_local() if isinstance(t, DTensor) else t for t in tensors]
    return float(sum(t.square().sum() for t in local if t is not None) ** 0.5)

"""A rank function that has torch cut a real Llama 3 without data, and counts the bytes that one rank keeps.

Tensors are on the device "meta": they have shapes and no data. The process group pretends.
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

from helpers.llama.shards import COLUMNS, ROWS, stage_layers
from helpers.models import Llama3


def pretend(ranks: int) -> None:
    """Leave the real process group for one that pretends to have `ranks` ranks, of which this is rank 0."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


class Part(nn.Module):
    """Some parameters of a model, as they are given."""

    def __init__(self, parameters: dict):
        super().__init__()
        for name, parameter in parameters.items():
            self.register_parameter(name.replace(".", "_"), nn.Parameter(parameter))

    def forward(self):
        raise NotImplementedError("only its parameters are looked at")


def of_stage(model: Llama3, pp: int, stage: int) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the parameters of one pipeline stage."""
    layers = stage_layers(model, pp)
    first = sum(layers[:stage])
    mine = {f"layers.{i}" for i in range(first, first + layers[stage])}
    found = [s for s in model.shapes() if ".".join(s[0].split(".")[:2]) in mine]
    if stage == 0:
        found.insert(0, model.shapes()[0])
    return found + (model.shapes()[-2:] if stage == pp - 1 else [])


def states(
    rank: int,
    world_size: int,
    model: Llama3,
    tp: int,
    pp: int,
    dp: int,
    zero: int,
    gradients: torch.dtype = torch.bfloat16,
) -> list[int]:
    """Bytes of model states on rank 0 of every pipeline stage: BF16 weights, FP32 Adam, gradients of this type.

    DTensor cuts along the tensor axis, FSDP2 along the data axis what stage `zero` of ZeRO cuts (1: the
    optimizer's states, 3: all), and torch's own AdamW makes its two moments beside an FP32 copy.
    """
    pretend(dp * tp)
    mesh = init_device_mesh("cpu", (dp, tp), mesh_dim_names=("dp", "tp"))
    found = []
    for stage in range(pp):
        cut = {}
        for name, shape in of_stage(model, pp, stage):
            last = name.split(".")[-1]
            way = (
                Shard(0)
                if last in ROWS
                else Shard(1)
                if last in COLUMNS
                else Replicate()
            )
            empty = torch.empty(shape, dtype=torch.bfloat16, device="meta")
            cut[name] = distribute_tensor(empty, mesh["tp"], [way])
        whole = [parameter.to_local() for parameter in cut.values()]
        part = Part(cut)
        if zero:
            fully_shard(part, mesh=mesh["dp"])
            shards = [p.to_local() for p in part.parameters()]
        else:
            shards = whole
        master = [nn.Parameter(s.detach().float()) for s in shards]
        for parameter in master:
            parameter.grad = torch.zeros_like(parameter)
        adam = torch.optim.AdamW(master, foreach=False)
        adam.step()
        moments = [
            s[key] for s in adam.state.values() for key in ("exp_avg", "exp_avg_sq")
        ]
        weights = shards if zero == 3 else whole
        grads = [torch.empty_like(w, dtype=gradients) for w in weights]
        kept = [*weights, *grads, *master, *moments]
        found.append(sum(tensor.numel() * tensor.element_size() for tensor in kept))
    return found

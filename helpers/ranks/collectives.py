"""Which collectives a training step calls, counted where torch dispatches them."""

from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from helpers.counting.volume import Volume
from helpers.processes.rank import device


def settled(
    model: nn.Module, numbers: torch.Tensor, sharded: bool, cap_mb: float | None
):
    """The model under DDP (bucket_cap_mb=cap_mb), or sharded (FSDP2, one piece), after two steps on numbers.

    DDP arranges its buckets anew in the second step, which takes two broadcasts.
    """
    if sharded:
        mesh = init_device_mesh(device().type, (dist.get_world_size(),))
        model = fully_shard(model, mesh=mesh)
    else:
        model = DistributedDataParallel(model, bucket_cap_mb=cap_mb)
    for _ in range(2):
        model(numbers).sum().backward()
    return model


def of_a_step(
    rank: int, world_size: int, sharded: bool = False, cap_mb: float | None = None
) -> dict[str, int]:
    """Calls by name in forward and backward of the third step of a small model, as `settled` wraps it.

    It has four parameters and no buffers.
    """
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to(device())
    numbers = torch.ones(2, 8, device=device())
    model = settled(model, numbers, sharded, cap_mb)
    with Volume() as volume:
        model(numbers).sum().backward()
    return dict(Counter(call.name for call in volume.calls))

"""Which collectives a training step calls, counted where torch dispatches them."""

from collections import Counter

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from helpers.rank_process import device
from helpers.volume import Volume


def of_a_step(
    rank: int, world_size: int, sharded: bool = False, cap_mb: float | None = None
) -> dict[str, int]:
    """Calls by name in forward and backward of the third step of a small model.

    It has four parameters and no buffers, and is under DDP with bucket_cap_mb=cap_mb, or sharded (FSDP2).
    The third step: DDP arranges its buckets anew in the second, which takes two broadcasts.
    """
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).to(device())
    if sharded:
        mesh = init_device_mesh(device().type, (world_size,))
        model = fully_shard(model, mesh=mesh)
    else:
        model = DistributedDataParallel(model, bucket_cap_mb=cap_mb)
    numbers = torch.ones(2, 8, device=device())
    for _ in range(2):
        model(numbers).sum().backward()
    with Volume() as volume:
        model(numbers).sum().backward()
    return dict(Counter(call.name for call in volume.calls))

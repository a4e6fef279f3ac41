"""Which collectives a training step calls, as torch's own profiler counts them."""

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile

from helpers.rank_process import device


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
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        model(numbers).sum().backward()
    prefix = "c10d::"
    return {
        event.key.removeprefix(prefix).strip("_"): event.count
        for event in profiler.key_averages()
        if event.key.startswith(prefix)
    }

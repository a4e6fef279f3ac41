"""Rank functions that show which of torch's wrappers divides a gradient by K, and when."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device


def who_divides(rank: int, world_size: int, means: list[float], wrapper: str) -> float:
    """What is left of each rank's gradient means[rank] after torch's wrappers: DDP, DDP with a hook, FSDP2.

    wrapper: "DDP", "DDP, summing hook", "fully_shard", "fully_shard, factor 1".
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Linear(1, world_size, bias=False, device=device())
    if wrapper.startswith("fully_shard"):
        wrapped = fully_shard(
            model, mesh=init_device_mesh(device().type, (world_size,))
        )
        if wrapper.endswith("factor 1"):
            wrapped.set_gradient_divide_factor(1.0)
            wrapped.set_force_sum_reduction_for_comms(
                True
            )  # gloo cannot scale while it sums
    else:
        wrapped = DistributedDataParallel(model)
        if wrapper.endswith("hook"):
            wrapped.register_comm_hook(None, _summing_hook)
    wrapped(torch.full((1, 1), means[rank], device=device())).sum().backward()
    gradient = model.weight.grad
    return float(getattr(gradient, "full_tensor", lambda: gradient)()[0, 0])


def _summing_hook(state, bucket):
    total = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
    return total.then(lambda future: future.value()[0])


def halved_where(rank: int, world_size: int, value: float) -> tuple[float, float]:
    """An fp16 gradient of `value` on every rank: as DDP averages it, and as sum-then-divide would."""
    model = torch.nn.Linear(1, 1, bias=False, dtype=torch.float16, device=device())
    ddp = DistributedDataParallel(model)
    ddp(
        torch.full((1, 1), value, dtype=torch.float16, device=device())
    ).sum().backward()
    after = torch.full((1,), value, dtype=torch.float16, device=device())
    dist.all_reduce(after)
    return model.weight.grad.item(), (after / world_size).item()

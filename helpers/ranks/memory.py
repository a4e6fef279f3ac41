"""Rank functions that weigh what data parallelism holds on each rank, and compare it between ranks."""

from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from helpers.memory.held import bytes_of, named, pieces
from helpers.memory.master_weights import MasterAdamW
from helpers.processes.rank import device

LAYERS, WIDTH, EACH = 16, 32, 4  # matrices, their width, matrices a bucket


def _network() -> nn.Sequential:
    layers = [nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)]
    return nn.Sequential(*layers).to(device())


def states(
    rank: int,
    world_size: int,
    view: bool = False,
    shard: bool = False,
    dtype: torch.dtype = torch.bfloat16,
) -> tuple[dict[str, int], int, int]:
    """What a rank holds after two steps: bytes of each part by name, pieces of memory, parameters.

    16 matrices, four to a bucket, in BF16 with mixed-precision Adam or in FP32 with torch's AdamW. view:
    gradient_as_bucket_view. shard: fully_shard instead of DDP. "buckets" are pieces of memory that DDP sends
    and no gradient lies in. The pieces are those of gradients and buckets; parameters are the whole model's.
    """
    model = _network().to(dtype)
    parameters = sum(weight.numel() for weight in model.parameters())
    sent = {}

    def hook(
        state: None, bucket: dist.GradBucket
    ) -> torch.futures.Future[torch.Tensor]:
        sent.update(pieces([bucket.buffer()]))
        future = dist.all_reduce(bucket.buffer(), async_op=True).get_future()
        return future.then(lambda done: done.value()[0])

    if shard:
        wrapped = fully_shard(model)
    else:
        cap_mb = EACH * dtype.itemsize * WIDTH**2 / 2**20
        wrapped = DistributedDataParallel(
            model, gradient_as_bucket_view=view, bucket_cap_mb=cap_mb
        )
        wrapped.register_comm_hook(None, hook)
    master = dtype == torch.bfloat16
    update = MasterAdamW(model) if master else torch.optim.AdamW(model.parameters())
    for _ in range(2):
        sent.clear()
        update.zero_grad()
        wrapped(torch.ones(1, WIDTH, device=device(), dtype=dtype)).sum().backward()
        update.step()
    parts = named(model, update)
    gradients = pieces(parts["gradients"])
    buckets = {place: size for place, size in sent.items() if place not in gradients}
    found = bytes_of(parts) | {"buckets": sum(buckets.values())}
    found.pop("step counters")
    found = {name: size for name, size in found.items() if size}
    return found, len(gradients) + len(buckets), parameters


def replicas(
    rank: int, world_size: int, init_sync: bool = True, sync: bool = True
) -> dict[str, torch.Tensor]:
    """What a rank holds after three steps of DDP with AdamW, flat: all that source A calls identical, and more.

    Each rank starts from a seed and sees data of its own. init_sync: False keeps DDP's constructor from
    sending rank 0's parameters to all. sync: False takes the three steps inside no_sync. "gradients in
    no_sync" come from one more backward pass.
    """
    torch.manual_seed(rank)
    norm = nn.BatchNorm1d(16)
    model = nn.Sequential(nn.Linear(8, 16), norm, nn.ReLU(), nn.Linear(16, 1))
    model.to(device())
    ddp = DistributedDataParallel(model, init_sync=init_sync)
    update = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        update.zero_grad()
        with nullcontext() if sync else ddp.no_sync():
            ddp(torch.randn(4, 8).to(device())).pow(2).mean().backward()
        update.step()
    states = update.state.values()
    found = {
        "parameters": _flat(model.parameters()),
        "moments": _flat(s[k] for s in states for k in ("exp_avg", "exp_avg_sq")),
        "gradients": _flat(weight.grad for weight in model.parameters()),
        "BatchNorm's mean": _flat([norm.running_mean]),
        "random state": torch.get_rng_state().double(),
    }
    update.zero_grad()
    with ddp.no_sync():
        ddp(torch.randn(4, 8).to(device())).pow(2).mean().backward()
    alone = _flat(weight.grad for weight in model.parameters())
    return found | {"gradients in no_sync": alone}


def _flat(tensors) -> torch.Tensor:
    return torch.cat([t.detach().flatten() for t in tensors]).cpu().clone()

"""Rank functions that put axes together, and that count what each of them calls and costs."""

import contextlib
from collections import Counter

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.flop_counter import FlopCounterMode

from helpers.counting.volume import Volume
from helpers.ddp.data import Batches
from helpers.ddp.model import ByteTransformer
from helpers.hybrid.rank_grid import grid
from helpers.processes.rank import device
from helpers.ranks.collectives import settled
from helpers.ranks.pipeline_parallel import run_stage
from helpers.ranks.tensor_parallel import mlp, own


def three_axes(
    rank: int,
    world_size: int,
    order: str,
    sizes: dict[str, int],
    schedule,
    weights,
    inputs,
    targets,
    average_over: str = "dp",
) -> dict:
    """One batch through a pipeline of MLPs whose matrices are cut, on several replicas: tp, pp and dp at once.

    order, sizes: of helpers.hybrid.rank_grid. schedule: a row a stage. weights: per stage (up, down) as for an MLP;
    inputs, targets (micro-batches, rows, h) of all replicas, of which replica d takes every dp-th from d on;
    the loss is the mean of (y - target)^2 / 2 over all rows. average_over: the axis whose group averages.
    Returns "at", this rank's coordinates, the gradients "up" and "down" of its slices, "sent", numbers that it
    sent to its neighbours, and "mesh", the ranks of its tp, dp and pp groups as torch's DeviceMesh makes them.
    """
    places = grid(order, **sizes)
    at = places.coordinates(rank)
    names = [name for name, size in reversed(places.axes) if size > 1]
    mesh = init_device_mesh(
        device().type, tuple(sizes[n] for n in names), mesh_dim_names=tuple(names)
    )
    tensor_group = mesh.get_group("tp")
    line = places.group(rank, "pp")
    before, after = (
        line[stage] if 0 <= stage < len(line) else None
        for stage in (at["pp"] - 1, at["pp"] + 1)
    )
    up, down = (
        own(weight, dim, at["tp"], sizes["tp"])
        for dim, weight in enumerate(weights[at["pp"]])
    )
    x, t = (each[at["dp"] :: sizes["dp"]].to(device()) for each in (inputs, targets))
    rows = t.shape[0] * t.shape[1]
    ran = run_stage(
        schedule[at["pp"]],
        stage=lambda activation: mlp(activation, up, down, tensor_group),
        inputs=list(x),
        loss_of=lambda y, i: (y - t[i]).pow(2).sum() / 2 / rows,
        shape=x[0].shape,
        before=before,
        after=after,
    )
    for gradient in (up.grad, down.grad):
        dist.all_reduce(gradient, group=mesh.get_group(average_over))
        gradient /= sizes[average_over]
    told = {"at": at, "up": up.grad.cpu(), "down": down.grad.cpu()}
    groups = {n: dist.get_process_group_ranks(mesh.get_group(n)) for n in names}
    return told | {"mesh": groups, "sent": ran["sent"]}


def _layers(width: int = 64, number: int = 4) -> nn.Sequential:
    torch.manual_seed(0)
    layers = (nn.Linear(width, width, bias=False) for _ in range(number))
    return nn.Sequential(*layers).to(device())


def called(
    rank: int,
    world_size: int,
    micro_batches: list[int],
    how: str,
    cap_mb: float = 1e-3,
) -> tuple[list[dict[str, int]], int]:
    """Which collectives a step calls, and how often, for each number of micro-batches; and DDP's buckets.

    how: "no_sync" (DDP, all but the last micro-batch inside no_sync), "every" (DDP, none inside), "sharded"
    (FSDP2 as it comes, one piece). cap_mb: DDP's bucket_cap_mb; the model has four matrices of 16 KiB.
    Counted after two steps, in which DDP arranges its buckets. The second number is 1 for "sharded".
    """
    if how not in ("no_sync", "every", "sharded"):
        raise ValueError(f"how={how!r}: expected no_sync, every or sharded")
    numbers = torch.ones(2, 64, device=device())
    ddp = settled(_layers(), numbers, how == "sharded", cap_mb)
    counted = []
    for number in micro_batches:
        with Volume() as volume:
            for i in range(number):
                quiet = how == "no_sync" and i < number - 1
                with ddp.no_sync() if quiet else contextlib.nullcontext():
                    ddp(numbers).sum().backward()
        counted.append(dict(Counter(call.name for call in volume.calls)))
    if how == "sharded":
        return counted, 1
    return counted, len(ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"].split(","))


def cost(rank: int, world_size: int, how: str, rows: int = 64) -> tuple[int, int]:
    """What one rank keeps and computes for a batch of `rows` through an MLP of width 64.

    how: "one" (everything), "tp" (both matrices cut, all rows), "ddp" (the whole, its share of the rows), "zero3"
    (FSDP2, its share of the rows). Returns bytes of parameters held between steps, and FLOPs of the forward
    and backward pass, as torch counts them.
    """
    if how not in ("one", "tp", "ddp", "zero3"):
        raise ValueError(f"how={how!r}: expected one, tp, ddp or zero3")
    up, down = torch.ones(256, 64), torch.ones(64, 256)
    share = rows if how in ("one", "tp") else rows // world_size
    x = torch.ones(share, 64, device=device(), requires_grad=True)
    if how == "tp":
        held = [own(up, 0, rank, world_size), own(down, 1, rank, world_size)]
        with FlopCounterMode(display=False) as counter:
            mlp(x, *held).sum().backward()
    else:
        model = nn.Sequential(
            nn.Linear(64, 256, bias=False), nn.GELU(), nn.Linear(256, 64, bias=False)
        ).to(device())
        if how == "zero3":
            fully_shard(model, mesh=init_device_mesh(device().type, (world_size,)))
        wrapped = DistributedDataParallel(model) if how == "ddp" else model
        local = [p.to_local() if how == "zero3" else p for p in model.parameters()]
        held = [tensor.detach() for tensor in local]
        with FlopCounterMode(display=False) as counter:
            wrapped(x).sum().backward()
    return sum(t.numel() * t.element_size() for t in held), counter.get_total_flops()


def train_gpt(rank: int, world_size: int, axis: str, steps: int) -> dict:
    """A small GPT trained along one axis. axis: "data" (DDP, other windows on every rank) or "model" (torch cuts
    the MLPs of all blocks, every rank sees the same windows).

    Returns "first" and "last" loss of this rank, "held", its parameters, and "windows" of its first step.
    """
    if axis not in ("data", "model"):
        raise ValueError(f"axis={axis!r}: expected data or model")
    torch.manual_seed(0)
    model = trained = ByteTransformer().to(device())
    if axis == "data":
        trained = DistributedDataParallel(model)
        batches = Batches(rank, world_size, 8, 1, 0)
    else:
        mesh = init_device_mesh(device().type, (world_size,))
        plan = {"expand": ColwiseParallel(), "contract": RowwiseParallel()}
        for block in model.blocks:
            parallelize_module(block, mesh, plan)
        batches = Batches(0, 1, 8 * world_size, 1, 0)
    update, losses, seen = (
        torch.optim.AdamW(model.parameters(), 3e-3, foreach=False),
        [],
        [],
    )
    for _ in range(steps):
        inputs, labels = (each[0].to(device()) for each in batches.next())
        loss = functional.cross_entropy(trained(inputs).flatten(0, 1), labels.flatten())
        update.zero_grad()
        loss.backward()
        update.step()
        losses.append(loss.item())
        seen.append(inputs.cpu())
    local = [p.to_local() if isinstance(p, DTensor) else p for p in model.parameters()]
    held = sum(tensor.numel() for tensor in local)
    return {"first": losses[0], "last": losses[-1], "held": held, "windows": seen[0]}

"""Rank functions of the chapter on averaging gradients: one batch, K ranks, and what couples its samples."""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from helpers.average.sync_batch_norm import SyncedBatchNorm
from helpers.processes.rank import device

SAMPLES, WIDTH = 16, 32
LAYERS = {
    "nothing": lambda: torch.nn.Identity(),
    "LayerNorm": lambda: torch.nn.LayerNorm(WIDTH),
    "RMSNorm": lambda: torch.nn.RMSNorm(WIDTH),
    "dropout": lambda: torch.nn.Dropout(0.3),
    "BatchNorm": lambda: torch.nn.BatchNorm1d(WIDTH),
    "synced BatchNorm": lambda: SyncedBatchNorm(WIDTH),
}


def _model_and_batch(layer: str, dtype: torch.dtype):
    torch.manual_seed(0)
    layers = (
        torch.nn.Linear(8, WIDTH),
        LAYERS[layer](),
        torch.nn.GELU(),
        torch.nn.Linear(WIDTH, 4),
    )
    model = torch.nn.Sequential(*layers).double()
    inputs, labels = (
        torch.randn(SAMPLES, 8, dtype=torch.float64),
        torch.randint(4, (SAMPLES,)),
    )
    return model.to(device(), dtype), inputs.to(device(), dtype), labels.to(device())


def _flat_gradient(model) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()]).double().cpu()


def gradient(
    rank: int,
    world_size: int,
    layer: str = "nothing",
    dtype: str = "float64",
    cuts: list[int] | None = None,
) -> torch.Tensor:
    """DDP's gradient of a small network with `layer` in the middle, on this rank's share of 16 samples.

    layer: a name in LAYERS. dtype: "float64" or "float32". cuts: samples of each rank, else equal shares.
    Every rank builds the same model and batch from seed 0; dropout then draws from seed 0 + rank.
    Returns float64 (parameters,). With one rank this is the reference.
    """
    model, inputs, labels = _model_and_batch(layer, getattr(torch, dtype))
    sizes = cuts or [SAMPLES // world_size] * world_size
    start = sum(sizes[:rank])
    share = slice(start, start + sizes[rank])
    torch.manual_seed(rank)
    ddp = DistributedDataParallel(model)
    torch.nn.functional.cross_entropy(ddp(inputs[share]), labels[share]).backward()
    return _flat_gradient(model)


def mean_gradient_over_draws(
    rank: int, world_size: int, draws: int, p: float = 0.3
) -> torch.Tensor:
    """The dropout network's DDP gradient, averaged over `draws` sets of masks; float64 (parameters,).

    The share is repeated `draws` times in one batch: every copy gets masks of its own. p: of rank 0; the
    others drop with probability 0.3.
    """
    model, inputs, labels = _model_and_batch("dropout", torch.float64)
    model[1].p = p if rank == 0 else 0.3
    torch.manual_seed(1000 * world_size + rank)
    ddp = DistributedDataParallel(model)
    out = ddp(inputs[rank::world_size].repeat(draws, 1))
    torch.nn.functional.cross_entropy(
        out, labels[rank::world_size].repeat(draws)
    ).backward()
    return _flat_gradient(model)


def masks(rank: int, world_size: int, seed_by_rank: bool) -> list[bool]:
    """Which of 32 units dropout keeps on this rank, seeded with 0 or with 0 + rank."""
    torch.manual_seed(rank if seed_by_rank else 0)
    return (torch.nn.functional.dropout(torch.ones(32), 0.5) > 0).tolist()


def ring_and_rank_order(
    rank: int, world_size: int, elements: int, offset: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """float32 noise of all ranks, added up twice: by gloo's AllReduce, and left to right by rank.

    offset: how many other numbers stand before these in the buffer that AllReduce is given.
    """
    noise = torch.randn(elements, generator=torch.Generator().manual_seed(rank))
    gathered = [torch.empty_like(noise) for _ in range(world_size)]
    dist.all_gather(gathered, noise)
    buffer = torch.cat([torch.zeros(offset), noise])
    dist.all_reduce(buffer)
    total = gathered[0].clone()
    for other in gathered[1:]:
        total += other
    return buffer[offset:].clone(), total


def clipped(
    rank: int, world_size: int, gradients: list[list[float]], limit: float, after: bool
) -> list[float]:
    """Given gradients, clipped to norm `limit` after DDP's average, or each rank's own before it."""
    own = torch.tensor(gradients[rank], dtype=torch.float64, device=device())
    if not after:
        own *= min(1.0, limit / float(own.norm()))
    model = torch.nn.Linear(
        len(own), 1, bias=False, dtype=torch.float64, device=device()
    )
    ddp = DistributedDataParallel(
        model
    )  # kept until after backward: without the object nothing is averaged
    ddp(own.unsqueeze(0)).sum().backward()
    if after:
        torch.nn.utils.clip_grad_norm_(model.parameters(), limit)
    return model.weight.grad.flatten().tolist()


def accumulated_gradient(
    rank: int, world_size: int, micro_batches: int, divide: bool = True
) -> torch.Tensor:
    """The gradient of the same 16 samples over `world_size` ranks times `micro_batches` each.

    divide: False forgets to divide the loss by the number of micro-batches.
    """
    model, inputs, labels = _model_and_batch("nothing", torch.float64)
    ddp, parts = DistributedDataParallel(model), world_size * micro_batches
    for i in range(micro_batches):
        share = slice(rank * micro_batches + i, None, parts)
        with contextlib.nullcontext() if i == micro_batches - 1 else ddp.no_sync():
            loss = torch.nn.functional.cross_entropy(ddp(inputs[share]), labels[share])
            (loss / micro_batches if divide else loss).backward()
    return _flat_gradient(model)


def torchs_sync_batch_norm(rank: int, world_size: int) -> str:
    """What torch.nn.SyncBatchNorm answers on this backend: its error, or "works"."""
    layer = torch.nn.SyncBatchNorm(4).to(device())
    try:
        layer(torch.ones(2, 4, device=device()))
    except ValueError as error:
        return f"{type(error).__name__}: {error}"
    return "works"


def drift(
    rank: int, world_size: int, steps: int, average_every: int | None
) -> list[float]:
    """SGD on data of one's own without gradient sync: the weights (4,) of every rank after `steps` steps.

    Rank r's data are best fitted by weights of r. average_every: average the *weights* over ranks after so
    many steps (local SGD), but not after the last one; None: never.
    """
    draw = torch.Generator().manual_seed(rank)
    w = torch.zeros(4, dtype=torch.float64)
    for step in range(1, steps + 1):
        x = torch.randint(-2, 3, (4, 4), generator=draw).double()
        w -= 0.05 * x.T @ (x @ w - x.sum(1) * rank) / 4
        if average_every and step % average_every == 0 and step < steps:
            dist.all_reduce(w)
            w /= world_size
    return w.tolist()

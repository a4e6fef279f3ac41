"""Rank functions that watch DDP fill and send its buckets."""

import resource

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from helpers.llama_like import LlamaLike
from helpers.models import LLAMA3_8B
from helpers.rank_process import device


def watched(
    rank: int, world_size: int, scale: int = 16, cap_mb: float = 25 / 256, **options
) -> list[list[int]]:
    """Bytes of every bucket that DDP sends, step by step, over three steps of a small Llama 3 8B.

    All widths are divided by `scale`, so bytes by its square. options: of DDP, such as static_graph.
    """
    model = LlamaLike(LLAMA3_8B, scale, device=device())
    ddp = DistributedDataParallel(model, bucket_cap_mb=cap_mb, **options)
    steps = []

    def hook(state, bucket):
        steps[-1].append(bucket.buffer().numel() * bucket.buffer().element_size())
        return averaged(bucket)

    ddp.register_comm_hook(None, hook)
    tokens = torch.arange(2, device=device())
    for _ in range(3):
        steps.append([])
        ddp(tokens).sum().backward()
    return steps


class ManySums(nn.Module):
    """Sixty parameters of half a MiB each; the result is the sum of all."""

    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(torch.ones(2**17) for _ in range(60))

    def forward(self):
        return sum(weight.sum() for weight in self.weights)


class TwoLayers(nn.Module):
    """Two layers, registered as first and second, and used in that order or the other way round."""

    def __init__(self, backwards: bool = False):
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)
        self.backwards = backwards

    def forward(self, x):
        if self.backwards:
            return self.first(self.second(x))
        return self.second(self.first(x))


def ready_and_sent(
    rank: int,
    world_size: int,
    backwards: bool = False,
    find_unused: bool = False,
    freeze: bool = False,
) -> dict:
    """In which order two layers' gradients become ready, and in which their buckets are sent.

    Looks at the second step; each layer has a bucket of its own. find_unused: of DDP; with it buckets keep
    the order of registration, without it they are arranged anew after the first step. freeze: the first
    layer is not trained. Also returns "parameters": how many gradients were in the buckets.
    """
    model = TwoLayers(backwards).to(device())
    model.first.requires_grad_(not freeze)
    ddp = DistributedDataParallel(
        model,
        bucket_cap_mb=64 * 64 * 4 / 2**20,
        find_unused_parameters=find_unused,
    )
    weights = {"first": model.first.weight, "second": model.second.weight}
    names = {id(weight): name for name, weight in weights.items()}
    ready, sent, parameters = [], [], []

    def hook(state, bucket):
        parameters.extend(bucket.parameters())
        sent.extend(names[id(p)] for p in bucket.parameters() if id(p) in names)
        return averaged(bucket)

    ddp.register_comm_hook(None, hook)
    for name, weight in weights.items():
        if weight.requires_grad:
            weight.register_post_accumulate_grad_hook(
                lambda _, name=name: ready.append(name)
            )
    for _ in range(2):
        for seen in (ready, sent, parameters):
            seen.clear()
        ddp(torch.ones(2, 64, device=device())).sum().backward()
    return {"ready": ready, "sent": sent, "parameters": len(parameters)}


def first_buckets(
    rank: int, world_size: int, cap_mb: float | None = None
) -> list[float]:
    """MiB of the first step's buckets of 60 parameters of half a MiB each, cap given or left out."""
    model = ManySums().to(device())
    options = {} if cap_mb is None else {"bucket_cap_mb": cap_mb}
    ddp = DistributedDataParallel(model, find_unused_parameters=True, **options)
    sizes = []

    def hook(state, bucket):
        sizes.append(bucket.buffer().numel() * 4 / 2**20)
        return averaged(bucket)

    ddp.register_comm_hook(None, hook)
    ddp().backward()
    return sizes


def flops(recompute: bool) -> tuple[int, int]:
    """FLOPs of a forward and a backward pass of Llama 3 8B's matrices, as torch counts them.

    recompute: keep nothing of the forward pass, and do it again in the backward pass.
    """
    model = LlamaLike(LLAMA3_8B, device="meta")
    tokens = torch.zeros(4, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as forward:
        logits = (
            checkpoint(model, tokens, use_reentrant=False)
            if recompute
            else model(tokens)
        )
    with FlopCounterMode(display=False) as backward:
        logits.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


def averaged(bucket: dist.GradBucket) -> torch.futures.Future:
    """What DDP does with a bucket when nobody hooks in: average it, without waiting."""
    buffer = bucket.buffer().div_(dist.get_world_size())
    future = dist.all_reduce(buffer, async_op=True).get_future()
    return future.then(lambda done: done.value()[0])


def one_of_many(rank: int, world_size: int, pretend: int = 512) -> dict[str, int]:
    """One real rank's view of a job of `pretend` ranks on the real Llama 3 8B.

    The model has no data (device "meta") and the process group sends nothing ("fake"): what DDP
    decides is real, values and times are not. Returns "buckets" and "bytes" of one step, the "world" that
    DDP sees, and "peak", the most memory this process has used, in bytes.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=pretend, store=FakeStore())
    model = LlamaLike(LLAMA3_8B, device="meta")
    # find_unused_parameters: the buckets of the second step, which without data cannot be arranged anew.
    ddp = DistributedDataParallel(model, init_sync=False, find_unused_parameters=True)
    sizes = []

    def hook(state, bucket):
        sizes.append(bucket.buffer().numel() * bucket.buffer().element_size())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    ddp.register_comm_hook(None, hook)
    ddp(torch.zeros(2, dtype=torch.int64, device="meta")).sum().backward()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "buckets": len(sizes),
        "bytes": sum(sizes),
        "world": dist.get_world_size(),
        "peak": peak,
    }

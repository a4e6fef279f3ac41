"""Rank functions that watch DDP fill and send its buckets."""

import resource
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from helpers.llama.like import LlamaLike
from helpers.models import LLAMA3_8B
from helpers.processes.rank import device


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


def small_model(
    rank: int, world_size: int, cap_mb: float | None = None, **options
) -> list[list[float]]:
    """MiB of the buckets of ManySums in two steps, in the order in which they are sent."""
    if cap_mb is not None:
        options["bucket_cap_mb"] = cap_mb
    ddp = DistributedDataParallel(ManySums().to(device()), **options)
    steps = []

    def hook(state, bucket):
        steps[-1].append(bucket.buffer().numel() * 4 / 2**20)
        return averaged(bucket)

    ddp.register_comm_hook(None, hook)
    for _ in range(2):
        steps.append([])
        ddp().backward()
    return steps


class TwoLayers(nn.Module):
    """Two layers, registered as first and second, and used in that order or the other way round."""

    def __init__(self, backwards: bool = False):
        super().__init__()
        self.first = nn.Linear(64, 64, bias=False)
        self.second = nn.Linear(64, 64, bias=False)
        self.backwards = backwards

    def forward(self, x):
        if self.backwards:
            return self.first(self.second(x))
        return self.second(self.first(x))


def events(
    rank: int,
    world_size: int,
    backwards: bool = False,
    cap_mb: float = 64 * 64 * 4 / 2**20,
    freeze: bool = False,
    **options,
) -> list[str]:
    """What happens in the second backward pass of two layers: gradients get ready, buckets are sent.

    The cap given closes a bucket with each layer's weight. backwards: the layers are used against the order
    of their registration. freeze: the first layer is not trained. options: of DDP.
    """
    model = TwoLayers(backwards).to(device())
    model.first.requires_grad_(not freeze)
    ddp = DistributedDataParallel(model, bucket_cap_mb=cap_mb, **options)
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    names = {id(p): name.split(".")[0] for name, p in trained.items()}
    seen = []

    def hook(state, bucket):
        sent = [names[id(p)] for p in bucket.parameters()]
        seen.append(f"sent {' + '.join(sent)}")
        return averaged(bucket)

    ddp.register_comm_hook(None, hook)
    for parameter in trained.values():
        parameter.register_post_accumulate_grad_hook(
            lambda p: seen.append(f"ready {names[id(p)]}")
        )
    for _ in range(2):
        seen.clear()
        ddp(torch.ones(2, 64, device=device())).sum().backward()
    return seen


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


def one_of_many(
    rank: int, world_size: int, pretend: int = 512, cap_mb: float | None = None
) -> tuple[list[int], int]:
    """One real rank's view of a job of `pretend` ranks on the parameters of Llama 3 8B, in its first step.

    The model has no data (device "meta") and the process group sends nothing ("fake"; the hook does not
    even try): what DDP decides is real, values and times are not. DDP looks for unused parameters, which
    gives it its buckets from the first step, in the order of registration: buckets without data cannot be
    arranged anew. cap_mb: in MiB, None for DDP's default. Returns the bytes of every bucket in the order in
    which they are sent, and the most memory that this process has used, in bytes.
    """
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.destroy_process_group()
    dist.init_process_group("fake", rank=0, world_size=pretend, store=FakeStore())
    options = dict(bucket_cap_mb=cap_mb, find_unused_parameters=True)
    model = LlamaLike(LLAMA3_8B, device="meta")
    ddp = DistributedDataParallel(model, init_sync=False, **options)
    sizes = []

    def hook(state, bucket):
        sizes.append(bucket.buffer().numel() * bucket.buffer().element_size())
        done = torch.futures.Future()
        done.set_result(bucket.buffer())
        return done

    ddp.register_comm_hook(None, hook)
    ddp(torch.zeros(2, dtype=torch.int64, device="meta")).sum().backward()
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    return sizes, peak

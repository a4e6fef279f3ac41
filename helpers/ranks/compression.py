"""Rank functions that train with compressed gradients, count what they send and remember what they left out."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from helpers.byte_model import ByteModel, loss_sum
from helpers.compression.compressors import Feedback, OneBit, TopK
from helpers.counting.handed import handed, sent_by_a_ring
from helpers.ddp.training import settle_buckets
from helpers.text import batch

COMPRESSORS = {
    "1 bit": OneBit(),
    "top 1 %": TopK(0.01),
    "top 0.1 %": TopK(0.001),
}
LEARNING_RATE = 1.0


def exchange(feedback: Feedback, gradient: torch.Tensor) -> torch.Tensor:
    """The mean of what all ranks send: each gets all packages, unpacks them and adds."""
    parts = feedback.pack(gradient)
    gathered = []
    for part in parts:
        from_all = [torch.empty_like(part) for _ in range(dist.get_world_size())]
        dist.all_gather(from_all, part)
        gathered.append(from_all)
    unpack, length = feedback.compressor.unpack, len(gradient)
    packages = zip(*gathered, strict=True)
    return sum(unpack(list(package), length) for package in packages) / len(gathered[0])


def hook(
    feedback: Feedback, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """The exchange as a communication hook of DDP. Raises ValueError for a second bucket."""
    _the_only(bucket)
    bucket.buffer().copy_(exchange(feedback, bucket.buffer()))
    return _done(bucket.buffer())


def cast_hook(
    dtype: torch.dtype, bucket: dist.GradBucket
) -> torch.futures.Future[torch.Tensor]:
    """Like torch's hooks, but divides before the cast and waits: send, and add, in `dtype`."""
    small = (bucket.buffer() / dist.get_world_size()).to(dtype)
    dist.all_reduce(small)
    bucket.buffer().copy_(small)
    return _done(bucket.buffer())


def _the_only(bucket: dist.GradBucket) -> None:
    if not (bucket.index() == 0 and bucket.is_last()):
        raise ValueError(f"bucket: number {bucket.index()} of several, expected one")


def _done(tensor: torch.Tensor) -> torch.futures.Future[torch.Tensor]:
    future = torch.futures.Future()
    future.set_result(tensor)
    return future


def in_fp32(inner: Callable) -> Callable:
    """A hook that does its work on a float32 copy of the float64 bucket."""

    def outer(state, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        bucket.set_buffer(bucket.buffer().float())
        return inner(state, bucket).then(lambda future: future.value().double())

    return outer


def _hook_of(method: str) -> tuple[object, Callable]:
    name, _, how = method.partition(", ")
    if name in COMPRESSORS:
        return Feedback(COMPRESSORS[name], keep=how != "forgetting"), hook
    if name == "PowerSGD":
        options = {"matrix_approximation_rank": 4, "start_powerSGD_iter": 2}
        state = powerSGD_hook.PowerSGDState(None, random_seed=0, **options)
        return state, in_fp32(powerSGD_hook.powerSGD_hook)
    return {"FP32": torch.float32, "BF16": torch.bfloat16}[name], cast_hook


def constant(
    rank: int, world_size: int, gradients: list[list[float]], steps: int, keep: bool
) -> dict[str, list]:
    """Send the same gradient again and again, one entry a step: the largest of what is owed.

    gradients: one a rank, of one length. keep: with error feedback. Returns the mean that was applied in
    each step, and what this rank still owes.
    """
    gradient = torch.tensor(gradients[rank], dtype=torch.float64)
    feedback = Feedback(TopK(1 / len(gradient)), keep)
    applied = [exchange(feedback, gradient).tolist() for _ in range(steps)]
    return {"applied": applied, "owed": feedback.residual.tolist()}


def train(
    rank: int,
    world_size: int,
    methods: list[str],
    lines: list[bytes],
    held: list[bytes],
    steps: int,
    report: int = 20,
    seed: int = 0,
) -> dict[str, dict]:
    """Train the byte model with DDP and SGD, once with each method, from the same start.

    methods: "FP32", "BF16", "PowerSGD", "1 bit", "top 1 %" or "top 0.1 %"; the last three also followed by
    ", forgetting", without error feedback. lines: two of them a rank and step, dealt in turn. held: for the
    loss, in nats a token, every `report` steps. seed: of the first parameters. Each result also holds the
    bytes that a rank sent in the last step, the relative error of the first compressed gradient, and `lost`,
    the part of all gradients together that was neither applied nor is still owed, relative to them.
    """
    return {
        method: _train(method, lines, held, steps, report, seed) for method in methods
    }


def _train(
    method: str, lines: list, held: list, steps: int, report: int, seed: int
) -> dict:
    rank, world_size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(seed)
    model = ByteModel()
    ddp = DistributedDataParallel(model)
    settle_buckets(ddp, torch.device("cpu"))
    state, send = _hook_of(method)
    seen = _Seen(send, look_at=getattr(state, "start_powerSGD_iter", 0))
    ddp.register_comm_hook(state, seen.hook)
    update = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    losses, start = {}, None
    for step in range(steps):
        first = 2 * (step * world_size + rank)
        mine = [lines[(first + i) % len(lines)] for i in range(2)]
        update.zero_grad()
        total, tokens = loss_sum(ddp, *batch(mine))
        with handed() as counted:
            (total / tokens).backward()
        start = seen.parameters() if start is None else start
        update.step()
        if (step + 1) % report == 0:
            with torch.no_grad():
                total, tokens = loss_sum(model, *batch(held))
            losses[step + 1] = float(total / tokens)
    end = seen.parameters()
    owed = _owed(state, torch.zeros_like(end))
    for tensor in (seen.brought, owed):
        dist.all_reduce(tensor)
    missing = (seen.brought - owed) / world_size - (start - end) / LEARNING_RATE
    return {
        "losses": losses,
        "bytes": sent_by_a_ring(counted, world_size),
        "error": seen.error,
        "lost": float(missing.norm() / (seen.brought / world_size).norm()),
        "end": end,
    }


def _owed(state, nothing: torch.Tensor) -> torch.Tensor:
    """What this rank's error feedback still holds back; torch's PowerSGD keeps it by bucket."""
    if isinstance(state, Feedback):
        return state.residual.clone()
    return getattr(state, "error_dict", {}).get(0, nothing).double()


class _Seen:
    """A hook that looks on: all that this rank brought, and how far the first compressed mean was off."""

    def __init__(self, send: Callable, look_at: int):
        self.send, self.look_at, self.order = send, look_at, []
        self.brought, self.steps, self.error = 0.0, 0, 0.0

    def hook(
        self, state, bucket: dist.GradBucket
    ) -> torch.futures.Future[torch.Tensor]:
        _the_only(bucket)
        own, now = bucket.buffer().clone(), self.steps
        self.order, self.steps = bucket.parameters(), now + 1
        self.brought = self.brought + own
        if now != self.look_at:
            return self.send(state, bucket)
        dist.all_reduce(own)
        return self.send(state, bucket).then(
            lambda future: self._compare(future.value(), own / dist.get_world_size())
        )

    def _compare(self, found: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
        self.error = float((found - exact).norm() / exact.norm())
        return found

    def parameters(self) -> torch.Tensor:
        """All parameters as one vector, in the bucket's order."""
        return torch.cat([p.detach().flatten() for p in self.order])

"""DDP in slow motion: layers that sleep while they compute, a link that sleeps while it sends.

On a real laptop computing and sending share the cores, so their overlap shows nothing. Sleeping takes no
core: what remains is DDP's own order, and a clock that we set ourselves.
"""

import queue
import threading
import time
from statistics import median

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from helpers.processes.rank import device

WIDTH = 64  # a layer has 64 x 64 float32 parameters, so one bucket of 16 KiB


class SleepyLayer(torch.autograd.Function):
    """x @ w, whose backward sleeps for `seconds` before it hands out gradients."""

    @staticmethod
    def forward(ctx, x, w, seconds):
        ctx.save_for_backward(x, w)
        ctx.seconds = seconds
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        time.sleep(ctx.seconds)
        x, w = ctx.saved_tensors
        return grad @ w.T, x.T @ grad, None


class Sleepy(nn.Module):
    def __init__(self, layers: int, seconds: float):
        super().__init__()
        self.seconds = seconds
        self.weights = nn.ParameterList(
            nn.Parameter(torch.eye(WIDTH)) for _ in range(layers)
        )

    def forward(self, x):
        for weight in self.weights:
            x = SleepyLayer.apply(x, weight, self.seconds)
        return x


class OneLane:
    """A link that sends one bucket at a time: averages it for real, then sleeps `seconds` a layer in it."""

    def __init__(self, seconds: float):
        self.seconds, self.waiting = seconds, queue.SimpleQueue()
        self.buckets = 0
        self.group = dist.new_group()  # DDP's own group stays free for its own messages
        threading.Thread(target=self._serve, daemon=True).start()

    def hook(self, state, bucket):
        future = torch.futures.Future()
        self.buckets += 1
        self.waiting.put((bucket.buffer(), future))
        return future

    def _serve(self):
        while (item := self.waiting.get()) is not None:
            buffer, future = item
            dist.all_reduce(buffer, group=self.group)
            buffer /= dist.get_world_size()
            time.sleep(self.seconds * buffer.numel() / WIDTH**2)
            future.set_result(buffer)


def backward_pass(
    rank: int,
    world_size: int,
    layers: int,
    compute: float,
    send: float,
    overlap: bool = True,
    cap_mb: float = WIDTH * WIDTH * 4 / 2**20,
    repeats: int = 7,
) -> dict:
    """Backward passes of `layers` layers that compute and send for a given time each.

    overlap: False keeps DDP from sending until everything is computed: no_sync, then one bucket after the
    other by hand. Returns "seconds" (the median), "buckets" a step, and "gradient", the sum of the first
    layer's gradient, to which rank r contributes r + 1 parts.
    """
    model = Sleepy(layers, compute).to(device())
    ddp = DistributedDataParallel(model, bucket_cap_mb=cap_mb)
    lane = OneLane(send)
    ddp.register_comm_hook(None, lane.hook)
    numbers = torch.full((1, WIDTH), rank + 1.0, device=device())
    seconds = []
    # Buckets are arranged anew after the first step, so that step is not counted.
    for _ in range(repeats + 1):
        ddp.zero_grad()
        lane.buckets = 0
        dist.barrier()
        start = time.perf_counter()
        if overlap:
            ddp(numbers).sum().backward()
        else:
            with ddp.no_sync():
                ddp(numbers).sum().backward()
            for weight in reversed(list(model.weights)):
                future = torch.futures.Future()
                lane.waiting.put((weight.grad, future))
                future.wait()
        seconds.append(time.perf_counter() - start)
    lane.waiting.put(None)
    return {
        "seconds": median(seconds[1:]),
        "buckets": lane.buckets,
        "gradient": float(model.weights[0].grad.sum()),
    }

"""The training loop: DDP, gradient accumulation, clipping, checkpoints; the same on a laptop and on GPUs.

Left out: a schedule of learning rates, evaluation on other text, mixed precision with a scaler (fp16).
"""

import contextlib
import hashlib
import os
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from helpers.ddp.checkpoint import random_states, read, save, set_random_state
from helpers.ddp.data import Batches
from helpers.ddp.model import ByteTransformer
from helpers.ddp.options import CHECKPOINT_EVERY, PRECISIONS, Options, SettingError
from helpers.ddp.progress import Clock, Progress


def train(
    rank: int,
    world_size: int,
    device: torch.device,
    options: Options,
    after_step: Callable[[int], None] | None = None,
    opening: str = "",
) -> dict:
    """Train a ByteTransformer on every rank of an initialised process group.

    after_step(step) is called on every rank when a step and its checkpoint are done. opening: what rank 0 says
    first, when nothing can be refused any more.

    Returns plain things: "backend", "device", "first_step" (1, or the one after the checkpoint) and "steps";
    "losses" {step: nats a byte, mean over the global batch before that step's update}; "parameters" and
    "gradient" (the last one used; None if no step was left), both flat on the CPU; "digest", SHA-256 of the
    parameters' bytes; "samples_per_second", windows of all ranks together, the first step not counted.
    Raises SettingError for settings that can't work, on all ranks alike.
    """
    make_repeatable(device)
    batches = Batches(rank, world_size, options.batch, options.accumulate, options.seed)
    steps = options.total_steps(batches.per_epoch)
    settings = options.binding(world_size, dist.get_backend())
    # Refused before there is a DDP: an error that still holds one can hang when the group is destroyed.
    state = find_checkpoint(rank, options, settings, steps)
    torch.manual_seed(options.seed)  # the same first parameters on every rank
    model = ByteTransformer(options.dropout).to(device, PRECISIONS[options.precision])
    ddp = DistributedDataParallel(
        model, device_ids=[device.index] if device.type == "cuda" else None
    )
    update = torch.optim.AdamW(model.parameters(), lr=options.learning_rate)
    settle_buckets(ddp, device)
    torch.manual_seed(options.seed + rank)  # dropout: other masks on every rank

    parts = {"model": model, "optimizer": update, "data": batches}
    if state:
        for name, part in parts.items():
            part.load_state_dict(state[name])
        set_random_state(device, state["random"][rank])
    done = state["step"] if state else 0
    progress, losses, clock = Progress(rank, steps, done), {}, Clock(device)
    if opening:
        progress.say(opening)
    every = options.checkpoint_every or CHECKPOINT_EVERY
    for step in range(done + 1, steps + 1):
        update.zero_grad()
        loss = backward(ddp, *batches.next(), device, options.precision)
        # After the AllReduce, so that the norm is the global one and the same on every rank.
        torch.nn.utils.clip_grad_norm_(model.parameters(), options.clip)
        update.step()
        if step % options.report_every == 0 or step in (1, steps):
            dist.all_reduce(loss)
            losses[step] = (loss / world_size).item()
            progress.say(f"step {step}: loss {losses[step]:.4f}")
        if options.checkpoint and (step % every == 0 or step == steps):
            random = random_states(device, world_size)
            if rank == 0:
                states = {name: part.state_dict() for name, part in parts.items()}
                stamp = {"settings": settings, "step": step, "random": random}
                save(options.checkpoint, states | stamp)
        progress.advance()
        clock.tick()
        if after_step:
            after_step(step)
    progress.close()

    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    parameters = flat(model.parameters())
    return {
        "backend": dist.get_backend(),
        "device": str(device),
        "first_step": done + 1,
        "steps": steps,
        "losses": losses,
        "digest": hashlib.sha256(parameters.numpy().tobytes()).hexdigest(),
        "parameters": parameters,
        "gradient": flat(gradients) if gradients else None,
        "samples_per_second": clock.rate() * batches.per_step * world_size,
    }


def backward(ddp, inputs, labels, device, precision: str) -> torch.Tensor:
    """Forward and backward over one step's micro-batches, int64 (accumulate, batch, T) each; one AllReduce.

    Every micro-batch has as many tokens as every other, on every rank: so the mean over micro-batches, and
    DDP's mean over ranks, is the mean over all tokens. Returns this rank's mean loss in nats, a scalar.
    """
    total = torch.zeros((), dtype=PRECISIONS[precision], device=device)
    for i in range(len(inputs)):
        last = i == len(inputs) - 1
        # The forward decides whether DDP synchronises, so it stands inside no_sync too.
        with contextlib.nullcontext() if last else ddp.no_sync():
            with torch.autocast(device.type, torch.bfloat16, precision == "bf16"):
                logits = ddp(inputs[i].to(device))
            logits = logits.flatten(0, 1).to(total.dtype)
            loss = functional.cross_entropy(logits, labels[i].flatten().to(device))
            (loss / len(inputs)).backward()
        total += loss.detach() / len(inputs)
    return total


def settle_buckets(ddp: DistributedDataParallel, device: torch.device) -> None:
    """Have DDP arrange its buckets before the first step that counts.

    DDP rebuilds them once, in the order in which the gradients of its first backward came. Where a gradient
    lies in a bucket decides in which order AllReduce adds the ranks' values. A resumed run would make its
    first step with buckets that the uninterrupted run no longer had, and with three ranks or more end in other
    bits.
    """
    for _ in range(2):  # the second forward is what rebuilds
        ddp(torch.zeros(1, 1, dtype=torch.int64, device=device)).sum().backward()
    ddp.zero_grad()


def find_checkpoint(rank: int, options: Options, settings: dict, steps: int):
    """The state to go on from, or None; a collective. Rank 0 says which when told to resume.

    Raises SettingError as `read` does, and when the checkpoint is beyond `steps`.
    """
    if options.checkpoint is None:
        return None
    state = read(rank, options.checkpoint, options.resume, settings)
    if state and state["step"] > steps:
        raise SettingError(
            f"steps {steps}: the checkpoint {options.checkpoint} "
            f"is at step {state['step']} already"
        )
    if rank == 0 and options.resume:
        told = (
            f"done to step {state['step']}" if state else "not there yet, nothing done"
        )
        print(f"checkpoint {options.checkpoint}: {told}", flush=True)
    return state


def make_repeatable(device: torch.device) -> None:
    """On a GPU, take the kernels that add in the same order every time; on the CPU one thread does it."""
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)


def flat(tensors) -> torch.Tensor:
    """All elements one after the other, a copy on the CPU."""
    return torch.cat([t.detach().flatten() for t in tensors]).cpu()

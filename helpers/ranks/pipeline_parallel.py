"""Rank functions of pipeline parallelism: every rank a stage, neighbours send activations and gradients.

What a stage does, and in which order, it reads from a schedule of helpers.hybrid.pipeline_schedule. Left out:
interleaved stages, and optimizer steps that do not wait for the whole batch. For gloo only: NCCL can have
the neighbours' sends and receives, which are posted in different orders, wait for each other.
"""

import torch
import torch.distributed as dist

from helpers.processes.rank import device


def run_stage(row, stage, inputs, loss_of, shape, before=None, after=None) -> dict:
    """One batch through this rank's stage, gradients added up in its parameters.

    row: of a schedule, this stage's work in order. stage: activation to activation. inputs: a micro-batch
    each, for the first stage; loss_of(activation, micro-batch) for the last; shape: of an activation.
    before, after: ranks of the neighbours, None at the ends. Returns "sent", numbers in all messages, and "kept",
    the most micro-batches whose activations were held at once.
    """
    held, sending, kept, sent = {}, [], 0, 0
    for op, i in row:
        if op == "F":
            x = inputs[i] if before is None else _receive(before, shape)
            if before is not None:
                x.requires_grad_()
            held[i] = x, stage(x)
            kept = max(kept, len(held))
            out, to = held[i][1].detach(), after
        else:
            x, y = held.pop(i)
            if after is None:
                loss_of(y, i).backward()
            else:
                y.backward(_receive(after, shape))
            out, to = x.grad, before
        if to is not None:
            sent += out.numel()
            sending.append((dist.isend(out, to), out))  # out lives until it is sent
    for request, _ in sending:
        request.wait()
    return {"sent": sent, "kept": kept}


def _receive(source: int, shape) -> torch.Tensor:
    arrived = torch.empty(shape, dtype=torch.float64, device=device())
    dist.recv(arrived, source)
    return arrived


def train_stage(
    rank: int, world_size: int, schedule, weights, inputs, targets, skip: int = 0
) -> dict:
    """A network of tanh(x W^T) layers, one a rank, and a batch in micro-batches through it.

    schedule: a row a rank; weights (K, h, h); inputs, targets (micro-batches, rows, h); the loss is the mean of
    (y - target)^2 / 2 over all rows of all micro-batches. skip: micro-batches at the end that are forgotten.
    Returns this rank's gradient (h, h), "sent" and "kept".
    """
    weight = weights[rank].clone().to(device()).requires_grad_()
    last, rows = world_size - 1, targets.shape[0] * targets.shape[1]
    x, t = list(inputs.to(device())), targets.to(device())
    row = [(op, i) for op, i in schedule[rank] if i < len(x) - skip]
    told = run_stage(
        row,
        stage=lambda activation: (activation @ weight.T).tanh(),
        inputs=x,
        loss_of=lambda y, i: (y - t[i]).pow(2).sum() / 2 / rows,
        shape=x[0].shape,
        before=rank - 1 if rank > 0 else None,
        after=rank + 1 if rank < last else None,
    )
    return {"gradient": weight.grad.cpu()} | told

"""Rank functions of expert parallelism: tokens travel to their experts and back, by All-to-All.

As in GShard (Lepikhin et al. 2021) each token goes to the two experts that a router prefers. Left out: a limit
to an expert's tokens, and the loss that spreads them evenly.
"""

import torch
import torch.distributed as dist

from helpers.processes.rank import device


class Exchange(torch.autograd.Function):
    """All-to-All of rows: send[j] go to rank j, receive[j] come from it; backward the same, swapped."""

    @staticmethod
    def forward(context, rows, send, receive):
        context.counts = send, receive
        arrived = rows.new_empty(sum(receive), rows.shape[1])
        dist.all_to_all_single(arrived, rows.contiguous(), receive, send)
        return arrived

    @staticmethod
    def backward(context, gradient):
        send, receive = context.counts
        back = gradient.new_empty(sum(send), gradient.shape[1])
        dist.all_to_all_single(back, gradient.contiguous(), send, receive)
        return back, None, None


def mixture(
    rank: int, world_size: int, tokens, router, experts, ordered: bool = True
) -> dict:
    """One layer of experts, one expert a rank, over the tokens of this rank; the loss is sum(y^2)/2.

    tokens: per rank (n_r, h), not all equally long; router (K, h); experts (K, h, h), of which this rank holds
    one. ordered: False takes what comes back for rows in the order of the tokens; it is in that of the experts.
    Returns "y" (n_r, h), the gradients "tokens" (n_r, h), "router" (K, h), summed over ranks, and "expert"
    (h, h), and "sent", rows by rank.
    """
    mine = tokens[rank].to(device()).requires_grad_()
    expert = experts[rank].clone().to(device()).requires_grad_()
    router = router.to(device()).requires_grad_()  # whole on every rank
    weight, chosen = (mine @ router.T).softmax(1).topk(2)
    order = chosen.flatten().argsort(stable=True)  # rows by the expert that they go to
    send = chosen.flatten().bincount(minlength=world_size)
    receive = torch.empty_like(send)
    dist.all_to_all_single(receive, send)
    send, receive = send.tolist(), receive.tolist()
    there = Exchange.apply(mine[order // 2], send, receive)
    back = Exchange.apply((there @ expert.T).tanh(), receive, send)
    row = order if ordered else torch.arange(len(order), device=device())
    weighted = back * weight.flatten()[row, None]
    y = torch.zeros_like(mine).index_add(0, row // 2, weighted)
    (y.pow(2).sum() / 2).backward()
    dist.all_reduce(router.grad)  # each rank has the part of its tokens
    told = {"y": y.detach(), "tokens": mine.grad, "expert": expert.grad}
    told["router"] = router.grad
    return {name: value.cpu() for name, value in told.items()} | {"sent": send}


def twice(rank: int, world_size: int, collective: str) -> tuple[list, list]:
    """What this rank brings, whole numbers, and what it holds after the collective was called twice.

    collective: "all_to_all" or "all_reduce".
    """
    if collective not in ("all_to_all", "all_reduce"):
        raise ValueError(
            f"collective={collective!r}: expected all_to_all or all_reduce"
        )
    mine = torch.arange(world_size, device=device()) + 10 * (rank + 1)
    held = mine.clone()
    for _ in range(2):
        if collective == "all_reduce":
            dist.all_reduce(held)
        else:
            sent, held = held, torch.empty_like(held)
            dist.all_to_all_single(held, sent)
    return mine.tolist(), held.tolist()


def reduced_by_exchange(
    rank: int, world_size: int, gradients, add: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """This rank's share of the sum of all gradients, by All-to-All and a sum at home, and by reduce-scatter.

    gradients (K, n): what rank r brings is gradients[r]. add: False keeps the first piece that came, unsummed.
    """
    mine = gradients[rank].to(device())
    arrived = torch.empty_like(mine)
    dist.all_to_all_single(arrived, mine)
    pieces = arrived.view(world_size, -1)
    at_home = pieces.sum(0) if add else pieces[0].clone()
    scattered = torch.empty_like(at_home)
    dist.reduce_scatter(scattered, list(mine.chunk(world_size)))
    return at_home.cpu(), scattered.cpu()

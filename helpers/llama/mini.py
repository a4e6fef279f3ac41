"""A small Llama with its attention written out, so that torch's counter of FLOPs sees every product.

On the CPU `scaled_dot_product_attention` is one operation that the counter doesn't know. Left out, because
they multiply no matrices: rotary embeddings, the softmax's scaling, the causal mask (which hides half of the
square, but computes it).
"""

import torch
from torch.utils.flop_counter import FlopCounterMode

from helpers.llama.like import LlamaLike
from helpers.models import Llama3

MINI = Llama3(layers=4, width=256, hidden=896, kv_width=64, vocabulary=1000)
HEAD = 64  # width of a head


class AttendingLlama(LlamaLike):
    """LlamaLike whose layers attend: grouped queries, explicit q k^T and weights times values."""

    @staticmethod
    def layer(hidden: torch.Tensor, weight) -> torch.Tensor:
        normed = hidden * weight("attention_norm")
        query, key, value = (normed @ weight(f"attention_w{part}").T for part in "qkv")
        query, key, value = (each.unflatten(-1, (-1, HEAD)).transpose(0, 1) for each in (query, key, value))
        group = query.shape[0] // key.shape[0]
        key, value = (each.repeat_interleave(group, 0) for each in (key, value))
        mixed = (query @ key.transpose(1, 2)).softmax(-1) @ value
        hidden = hidden + mixed.transpose(0, 1).flatten(1) @ weight("attention_wo").T
        normed = hidden * weight("ffn_norm")
        gated = (normed @ weight("feed_forward_w1").T) * (normed @ weight("feed_forward_w3").T)
        return hidden + gated @ weight("feed_forward_w2").T


def counted_flops(tokens: int, model: Llama3 = MINI) -> int:
    """FLOPs of a forward and a backward pass over one sequence of `tokens`, as torch counts them."""
    module = AttendingLlama(model, device="meta")
    with FlopCounterMode(display=False) as counter:
        module(torch.zeros(tokens, dtype=torch.int64, device="meta")).sum().backward()
    return counter.get_total_flops()


def matmul_parameters(model: Llama3) -> int:
    """Parameters that are multiplied: all matrices but the embedding."""
    return sum(shape[0] * shape[1] for _, shape in model.shapes()[1:] if len(shape) == 2)


def formula(tokens: int, model: Llama3 = MINI, causal: bool = False, attention: bool = True) -> int:
    """6 N tokens + 12 layers width tokens^2 (half of it if causal, or left out), N without the embedding."""
    square = 12 * model.layers * model.width * tokens**2 * attention
    return 6 * matmul_parameters(model) * tokens + (square // 2 if causal else square)

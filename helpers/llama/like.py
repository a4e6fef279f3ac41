"""A module with the parameters of Llama 3, registered as in the released code and used as it uses them.

It is no language model: attention is left out, and all that is kept is which parameter is used when. That
decides when gradients arrive, and so what DDP puts into which bucket. The two orders differ: norms are
registered after the matrices that they come before.
"""

from functools import cache

import torch
from torch import Tensor, nn

from helpers.models import Llama3


class LlamaLike(nn.Module):
    """The parameters of `model`, every width divided by `scale`.

    device, dtype: of the parameters; "meta" for ones without data.
    Raises ValueError where `scale` does not divide a width.
    """

    def __init__(self, model: Llama3, scale: int = 1, device="cpu", dtype=torch.bfloat16):
        super().__init__()
        for name, shape in model.shapes():
            if any(size % scale for size in shape):
                raise ValueError(f"scale={scale}: expected a divisor of {shape}, the shape of {name}")
            small = tuple(size // scale for size in shape)
            weight = torch.ones(small, device=device, dtype=dtype) / small[-1]
            self.register_parameter(name.replace(".", "_"), nn.Parameter(weight))
        self.layers = model.layers

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (n,) int64 to logits (n, vocabulary); every parameter is used once."""
        hidden = self.tok_embeddings[tokens]
        for layer in range(self.layers):
            hidden = self.layer(hidden, lambda name, i=layer: getattr(self, f"layers_{i}_{name}"))
        return (hidden * self.norm) @ self.output.T

    @staticmethod
    def layer(hidden: Tensor, weight) -> Tensor:
        normed = hidden * weight("attention_norm")
        query, key, value = (normed @ weight(f"attention_w{part}").T for part in "qkv")
        mixed = query + (key * value).repeat(1, query.shape[-1] // key.shape[-1])
        hidden = hidden + mixed @ weight("attention_wo").T
        normed = hidden * weight("ffn_norm")
        gated = (normed @ weight("feed_forward_w1").T) * (normed @ weight("feed_forward_w3").T)
        return hidden + gated @ weight("feed_forward_w2").T


@cache
def arrival(model: Llama3) -> list[tuple[str, tuple[int, ...]]]:
    """Names and shapes of the parameters of `model` in the order in which their gradients arrive.

    Runs a backward pass on tensors without data and lets a hook on each parameter take note.
    """
    module, arrived = LlamaLike(model, device="meta"), []
    shapes = dict(model.shapes())
    for name, parameter in zip(shapes, module.parameters(), strict=True):
        parameter.register_post_accumulate_grad_hook(lambda _, name=name: arrived.append(name))
    module(torch.zeros(2, dtype=torch.int64, device="meta")).sum().backward()
    return [(name, shapes[name]) for name in arrived]

"""A small causal transformer over bytes: what a GPT is made of, at a size that one core trains in seconds.

Attention is written out rather than called, because the fused kernels on GPUs add gradients in an order that
changes from run to run. Left out: tied embeddings, key-value caches, writing well.
Sources: Vaswani et al. 2017, section 3; Radford et al. 2019, section 2.3 (layer norm before each part).
"""

import torch
from torch import nn
from torch.nn import functional

CONTEXT = 32  # bytes
WIDTH, HEADS, BLOCKS = 32, 4, 2


class Block(nn.Module):
    """Causal attention and a two-layer perceptron, each added to its input: (batch, T, width), the same."""

    def __init__(self, width: int, heads: int, dropout: float):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width, bias=False)
        self.project = nn.Linear(width, width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def attention(self, x: torch.Tensor) -> torch.Tensor:
        """Every position looks at itself and at the positions before it."""
        batch, length, width = x.shape
        split = self.query_key_value(x).view(batch, length, 3, self.heads, -1)
        # Each (batch, heads, T, width of a head).
        query, key, value = split.permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(3)
        return self.project((weights @ value).transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        hidden = functional.gelu(self.expand(self.norm2(x)))
        return x + self.dropout(self.contract(hidden))


class ByteTransformer(nn.Module):
    """Next-byte logits: int64 (batch, T), T at most CONTEXT -> (batch, T, 256). 42,944 parameters.

    The same seed gives the same first parameters in every precision: they are drawn in float32.
    """

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.embed, self.place = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.dropout = nn.Dropout(dropout)
        blocks = [Block(WIDTH, HEADS, dropout) for _ in range(BLOCKS)]
        self.blocks = nn.Sequential(*blocks)
        self.norm, self.read = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 256)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        places = torch.arange(inputs.shape[1], device=inputs.device)
        x = self.dropout(self.embed(inputs) + self.place(places))
        return self.read(self.norm(self.blocks(x)))

"""A byte-level language model small enough to train in seconds on one core.

It predicts a byte from the eight before it: embedding, one causal convolution, one linear layer.
Left out: attention. The book needs a real loss over real tokens, not a good writer.
"""

import torch
from torch.nn import functional

from helpers.text import PADDING

CONTEXT = 8  # bytes


class ByteModel(torch.nn.Module):
    """Next-byte logits: int64 (lines, length) -> float64 (lines, length, 256). 41,280 parameters."""

    def __init__(self, width: int = 32, hidden: int = 64):
        super().__init__()
        self.embed = torch.nn.Embedding(256, width, dtype=torch.float64)
        self.mix = torch.nn.Conv1d(width, hidden, CONTEXT, dtype=torch.float64)
        self.read = torch.nn.Linear(hidden, 256, dtype=torch.float64)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        # Padding on the left only: a position sees itself and the seven bytes before it.
        x = functional.pad(self.embed(inputs).transpose(1, 2), (CONTEXT - 1, 0))
        return self.read(functional.gelu(self.mix(x)).transpose(1, 2))


def loss_sum(model: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Sum of the cross-entropies of all valid tokens in nats, and how many there are."""
    logits = model(inputs)
    total = functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=PADDING, reduction="sum"
    )
    return total, int((labels != PADDING).sum())

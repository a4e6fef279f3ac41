"""Llama 3's parameters as a module of blocks, the way FSDP2 wants a model: one group of parameters a block.

The same parameters as helpers.llama.like, used in the same order, with attention left out; but each block is
a module of its own, whose parameters can be gathered and let go together. The root keeps the embedding, the
last norm and the output.
"""

import torch
from torch import Tensor, nn

from helpers.llama.like import LlamaLike
from helpers.models import Llama3

# Three blocks of the 8B and as much beside them, in proportion, as it has: an eighth of the parameters.
SMALL = Llama3(layers=3, width=4096, hidden=14_336, vocabulary=12_288)
PLACE = "layers."


class Block(nn.Module):
    """One block: what LlamaLike does in a layer, with the parameters given by name."""

    def __init__(self, parameters: dict[str, nn.Parameter]):
        super().__init__()
        for name, parameter in parameters.items():
            self.register_parameter(name.replace(".", "_"), parameter)

    def forward(self, hidden: Tensor) -> Tensor:
        return LlamaLike.layer(hidden, lambda name: getattr(self, name))


class LlamaBlocks(nn.Module):
    """The parameters of `model`, every width divided by `scale`, of type `dtype`.

    seed: of the random values; None leaves them as they come (for tensors without data).
    Raises ValueError where `scale` does not divide a width.
    """

    def __init__(
        self,
        model: Llama3,
        scale: int = 1,
        dtype: torch.dtype = torch.float64,
        seed: int | None = 0,
    ):
        super().__init__()
        draw = None if seed is None else torch.Generator().manual_seed(seed)
        blocks: list[dict] = [{} for _ in range(model.layers)]
        for name, shape in model.shapes():
            if any(size % scale for size in shape):
                raise ValueError(f"scale={scale}: expected a divisor of {shape}, the shape of {name}")
            weight = nn.Parameter(_weight(tuple(size // scale for size in shape), dtype, draw))
            if name.startswith(PLACE):
                number, _, rest = name.removeprefix(PLACE).partition(".")
                blocks[int(number)][rest] = weight
            else:
                self.register_parameter(name, weight)
        self.layers = nn.ModuleList(Block(parameters) for parameters in blocks)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (n,) int64 to logits (n, vocabulary); every parameter is used once."""
        hidden = self.tok_embeddings[tokens]
        for block in self.layers:
            hidden = block(hidden)
        return (hidden * self.norm) @ self.output.T


def _weight(shape: tuple[int, ...], dtype: torch.dtype, draw: torch.Generator | None) -> Tensor:
    if draw is None:
        return torch.empty(shape, dtype=dtype)
    if len(shape) == 1:
        return torch.ones(shape, dtype=dtype)
    return (torch.randn(shape, dtype=torch.float64, generator=draw) / shape[1] ** 0.5).to(dtype)

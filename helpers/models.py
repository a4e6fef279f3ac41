"""The models of the running example: the parameter list of Llama 3, in the order of the module."""

from dataclasses import dataclass
from math import prod

EMBEDDING = "tok_embeddings"  # looked up, not multiplied


@dataclass(frozen=True)
class Llama3:
    """Sizes of a Llama 3 model (Dubey et al. 2024, Table 3). kv_width: width of keys, and of values."""

    layers: int
    width: int
    hidden: int
    kv_width: int = 1024
    vocabulary: int = 128_256

    def shapes(self) -> list[tuple[str, tuple[int, ...]]]:
        """Name and shape of every parameter, in the order in which the released code registers them."""
        d, kv, h = self.width, self.kv_width, self.hidden
        layer = [
            ("attention.wq", (d, d)),
            ("attention.wk", (kv, d)),
            ("attention.wv", (kv, d)),
            ("attention.wo", (d, d)),
            ("feed_forward.w1", (h, d)),
            ("feed_forward.w2", (d, h)),
            ("feed_forward.w3", (h, d)),
            ("attention_norm", (d,)),
            ("ffn_norm", (d,)),
        ]
        layers = [(f"layers.{i}.{name}", shape) for i in range(self.layers) for name, shape in layer]
        return [
            (EMBEDDING, (self.vocabulary, d)),
            *layers,
            ("norm", (d,)),
            ("output", (self.vocabulary, d)),
        ]

    @property
    def parameters(self) -> int:
        """Number of parameters.

        >>> LLAMA3_8B.parameters
        8030261248
        """
        return sum(prod(shape) for _, shape in self.shapes())


LLAMA3_8B = Llama3(layers=32, width=4096, hidden=14_336)
LLAMA3_70B = Llama3(layers=80, width=8192, hidden=28_672)
LLAMA3_405B = Llama3(layers=126, width=16_384, hidden=53_248)

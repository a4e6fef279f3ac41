"""One layer of a GPT in plain torch, with everything that autograd saves in sight.

Layer norm, attention, dropout, feed-forward network of four times the width with GELU, as in Korthikanti et
al. 2022, figure 2. Tensors lie as in Megatron, (sequence, batch, width), so no head has to be copied.
Left out: the causal mask, of which autograd saves nothing if it is added to the scores, and the embedding.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional


class GPTLayer(nn.Module):
    """(sequence, batch, width) to the same. flash: attention that never writes the scores to memory.

    Dropout goes through `native_dropout`, whose mask takes a byte a number, as that of nn.Dropout on GPUs; on
    the CPU nn.Dropout keeps a factor in the type of x. Without flash the scores have dropout as well.
    Raises ValueError where `heads` does not divide `width`.
    """

    def __init__(self, width: int, heads: int, dtype: torch.dtype = torch.bfloat16, flash: bool = False):
        super().__init__()
        if width % heads:
            raise ValueError(f"heads={heads}: expected a divisor of width={width}")
        self.heads, self.flash = heads, flash
        self.norm1, self.norm2 = (nn.LayerNorm(width, dtype=dtype) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width, dtype=dtype)
        self.proj = nn.Linear(width, width, dtype=dtype)
        self.up = nn.Linear(width, 4 * width, dtype=dtype)
        self.down = nn.Linear(4 * width, width, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = x + _dropout(self.proj(self.attention(self.norm1(x))))
        return x + _dropout(self.down(functional.gelu(self.up(self.norm2(x)))))

    def attention(self, x: Tensor) -> Tensor:
        s, b, h = x.shape
        d = h // self.heads
        heads = self.qkv(x).view(s, b * self.heads, 3 * d).transpose(0, 1)
        q, k, v = heads.split(d, dim=-1)
        if self.flash:
            asked = (each.view(b, self.heads, s, d) for each in (q, k, v))
            mixed = functional.scaled_dot_product_attention(*asked).view(-1, s, d)
        else:
            scores = q @ k.transpose(1, 2) * d**-0.5
            mixed = _dropout(scores.softmax(-1)) @ v
        return mixed.transpose(0, 1).reshape(s, b, h)


def _dropout(x: Tensor) -> Tensor:
    return torch.native_dropout(x, 0.1, True)[0]

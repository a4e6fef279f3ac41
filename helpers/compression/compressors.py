"""Gradients in fewer bytes: the largest entries, or one bit each; what was left out is kept for later.

A compressor packs a vector into the tensors that travel and unpacks them again; error feedback adds to each
gradient what the packages so far have left out (Seide et al. 2014; Karimireddy et al. 2019).
Left out: momentum correction, warm-up, and everything else that practice adds.
"""

import numpy as np
import torch


def _vector(vector: torch.Tensor) -> torch.Tensor:
    if vector.dim() != 1 or len(vector) == 0:
        raise ValueError(f"vector: shape {tuple(vector.shape)}, expected one dimension and an entry")
    return vector


def _as_before(gradient: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    if gradient.shape != before.shape:
        raise ValueError(f"gradient: shape {tuple(gradient.shape)}, expected {tuple(before.shape)} as before")
    return gradient


class TopK:
    """The `share` of entries with the largest absolute values, as float32 values and int32 places.

    Raises ValueError for a share outside (0, 1], and for a vector of no entries or not 1-d.

    >>> TopK(0.5).unpack(TopK(0.5).pack(torch.tensor([3.0, -1.0, 0.5, -4.0])), length=4)
    tensor([ 3.,  0.,  0., -4.], dtype=torch.float64)
    """

    def __init__(self, share: float):
        if not 0 < share <= 1:
            raise ValueError(f"share={share}: expected more than 0 and at most 1")
        self.share = share

    def pack(self, vector: torch.Tensor) -> list[torch.Tensor]:
        """Values and places of a 1-d vector's largest entries, at least one."""
        count = max(1, round(self.share * len(_vector(vector))))
        places = vector.abs().topk(count).indices
        return [vector[places].float(), places.int()]

    def unpack(self, parts: list[torch.Tensor], length: int) -> torch.Tensor:
        """The float64 vector that `parts` stand for; zero where nothing was sent."""
        values, places = parts
        sent = torch.zeros(length, dtype=torch.float64, device=values.device)
        return sent.index_put_((places.long(),), values.double())


class OneBit:
    """The sign of every entry, eight in a byte, and their mean absolute value.

    Raises ValueError for a vector of no entries or not 1-d.

    >>> OneBit().unpack(OneBit().pack(torch.tensor([3.0, -1.0])), length=2)
    tensor([ 2., -2.], dtype=torch.float64)
    """

    def pack(self, vector: torch.Tensor) -> list[torch.Tensor]:
        """One uint8 for eight entries (0 counts as positive), and one float32."""
        bits = torch.from_numpy(np.packbits((_vector(vector) >= 0).cpu().numpy()))
        return [bits.to(vector.device), vector.abs().mean().float().reshape(1)]

    def unpack(self, parts: list[torch.Tensor], length: int) -> torch.Tensor:
        """The float64 vector of plus and minus the mean."""
        bits, size = parts
        signs = torch.from_numpy(np.unpackbits(bits.cpu().numpy(), count=length))
        return (2 * signs.to(size.device).double() - 1) * size.double()


class Feedback:
    """One rank's memory of what it has not sent: `residual`, float64, None at first. One for each bucket.

    keep: False forgets it after each step, which is compression without error feedback. Raises ValueError
    for a gradient of another length than the first.
    """

    def __init__(self, compressor: TopK | OneBit, keep: bool = True):
        self.compressor, self.keep = compressor, keep
        self.residual: torch.Tensor | None = None

    def pack(self, gradient: torch.Tensor) -> list[torch.Tensor]:
        """What to send for this gradient and all that is left of the earlier ones."""
        if self.residual is None:
            self.residual = torch.zeros_like(_vector(gradient), dtype=torch.float64)
        owed = _as_before(gradient, self.residual) + self.residual
        parts = self.compressor.pack(owed)
        if self.keep:
            self.residual = owed - self.compressor.unpack(parts, len(owed))
        return parts

"""The text as windows of equal length, dealt to ranks so that a step sees the same windows on any number of them.

Windows have equal counts of tokens, so an average of averages is the average over all tokens.
Left out: a DataLoader; the text fits in memory, and a position in it is two numbers.
"""

import torch
from torch.utils.data import DistributedSampler

from helpers.ddp.model import CONTEXT
from helpers.ddp.options import SettingError
from helpers.text import sentences


def windows() -> torch.Tensor:
    """The sentences of the text, one after the other, cut into int64 (windows, CONTEXT + 1) bytes."""
    text = torch.frombuffer(bytearray(b" ".join(sentences())), dtype=torch.uint8)
    length = CONTEXT + 1
    return text[: len(text) // length * length].view(-1, length).long()


class Batches:
    """One rank's share of every step, epoch after epoch, without an end.

    DistributedSampler shuffles with (seed + epoch) and gives rank r every K-th window from the r-th on: the
    ranks' first n windows are together the first K n of the shuffled text, for every K. The rest of an epoch
    that fills no step is left out.

    batch: windows a rank and micro-batch. accumulate: micro-batches a step.
    Raises SettingError when one step needs more windows than there are.
    """

    def __init__(
        self, rank: int, world_size: int, batch: int, accumulate: int, seed: int
    ):
        self.windows, self.shape = windows(), (accumulate, batch, -1)
        self.sampler = DistributedSampler(
            self.windows, world_size, rank, shuffle=True, seed=seed, drop_last=True
        )
        self.per_step = accumulate * batch
        self.per_epoch = len(self.windows) // (self.per_step * world_size)  # steps
        self.epoch, self.step, self.order = 0, 0, None  # step: of this epoch, done
        if not self.per_epoch:
            raise SettingError(
                f"batch {batch}: a step of {world_size} x {accumulate} x {batch} windows "
                f"is more than the text's {len(self.windows)}"
            )

    def next(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and labels of this rank's next step, each int64 (accumulate, batch, CONTEXT)."""
        if self.step == self.per_epoch:
            self.epoch, self.step, self.order = self.epoch + 1, 0, None
        if self.order is None:
            # Without the epoch, the sampler gives every epoch the order of the first.
            self.sampler.set_epoch(self.epoch)
            self.order = torch.tensor(list(self.sampler))
        begin = self.step * self.per_step
        self.step += 1
        chosen = self.windows[self.order[begin : begin + self.per_step]]
        chosen = chosen.view(self.shape)
        return chosen[..., :-1], chosen[..., 1:]

    def state_dict(self) -> dict[str, int]:
        """Where the data stands: the epoch, and the steps of it that are done."""
        return {"epoch": self.epoch, "step": self.step}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go to where `state_dict` was taken."""
        self.epoch, self.step, self.order = state["epoch"], state["step"], None

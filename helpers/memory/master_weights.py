"""AdamW for BF16 weights that keeps a copy of them in FP32, the smallest loop that does mixed precision.

Left out: loss scaling (BF16 has FP32's range), several parameter groups, saving and loading.
"""

from functools import partial

import torch
from torch.optim import AdamW

GRADIENTS = ("passing", "copied", "accumulated")


class MasterAdamW:
    """Updates FP32 copies of a model's weights, and rounds them back into the model.

    gradients: "passing", the FP32 copy of a BF16 gradient lives for the update of its own tensor only;
    "copied", the copies stay; "accumulated", the backward pass adds to FP32 and drops its own at once.
    options: of torch's AdamW. Raises ValueError for another word.
    """

    def __init__(self, model: torch.nn.Module, gradients: str = "passing", **options):
        if gradients not in GRADIENTS:
            raise ValueError(f"gradients={gradients!r}: expected one of {GRADIENTS}")
        self.weights, self.gradients = list(model.parameters()), gradients
        self.master = [weight.detach().float() for weight in self.weights]
        self.adams = [AdamW([master], **options) for master in self.master]
        if gradients == "accumulated":
            for weight, master in zip(self.weights, self.master, strict=True):
                weight.register_post_accumulate_grad_hook(partial(_move, master))

    def step(self) -> None:
        """One update; the model's gradients stay where they are."""
        for weight, master, adam in zip(self.weights, self.master, self.adams, strict=True):
            update_in_fp32(weight, master, adam, keep=self.gradients != "passing")

    def zero_grad(self) -> None:
        """Drop all gradients."""
        for tensor in (*self.weights, *self.master):
            tensor.grad = None


@torch.no_grad()
def update_in_fp32(weight: torch.Tensor, master: torch.Tensor, adam: AdamW, keep: bool):
    """Update one weight through its FP32 copy. keep: leave the copy of its gradient there."""
    if weight.grad is not None:
        master.grad = weight.grad.float()
    adam.step()  # updates master
    weight.copy_(master)  # rounds it to BF16
    if not keep:
        master.grad = None


def _move(master: torch.Tensor, weight: torch.Tensor) -> None:
    arrived = weight.grad.float()
    master.grad = arrived if master.grad is None else master.grad + arrived
    weight.grad = None

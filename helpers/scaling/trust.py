"""One step of LARS and of LAMB: every layer moves by the same fraction of its own norm.

LARS (You et al. 2017) scales a layer's gradient, LAMB (You et al. 2020) a layer's Adam direction, by the
norm of the layer's weights over the norm of what it scales. Left out: momentum, weight decay, the clipping
of the ratio; and this is the first step of Adam, whose direction is g / (|g| + epsilon).
"""

from collections.abc import Callable

import torch

Rule = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def sgd(weight: torch.Tensor, gradient: torch.Tensor, lr: float = 0.01) -> torch.Tensor:
    """The update of plain SGD."""
    return -lr * gradient


def lars(weight: torch.Tensor, gradient: torch.Tensor, lr: float = 0.01) -> torch.Tensor:
    """The update of LARS: lr |w| / |g| times the gradient."""
    return -lr * weight.norm() / gradient.norm() * gradient


def lamb(weight: torch.Tensor, gradient: torch.Tensor, lr: float = 0.01) -> torch.Tensor:
    """The update of LAMB in its first step."""
    direction = gradient / (gradient.abs() + 1e-6)
    return -lr * weight.norm() / direction.norm() * direction


def relative_steps(rule: Rule, norms: list[float]) -> list[float]:
    """How far each layer of a small network moves in one step, as a fraction of its norm.

    norms: of the layers' weights; the gradients are those of a real backward pass, in float64.
    """
    torch.manual_seed(0)
    weights = [torch.randn(16, 16, dtype=torch.float64) for _ in norms]
    weights = [(w * n / w.norm()).requires_grad_() for w, n in zip(weights, norms, strict=True)]
    hidden = torch.randn(8, 16, dtype=torch.float64)
    for weight in weights:
        hidden = torch.nn.functional.layer_norm(hidden @ weight, (16,)).tanh()
    hidden.pow(2).sum().backward()
    with torch.no_grad():
        moved = [(w + rule(w, w.grad)) - w for w in weights]
        return [float(m.norm() / w.norm()) for m, w in zip(moved, weights, strict=True)]

"""The noise of a gradient, from two norms that data parallelism has anyway, and exactly, sample by sample.

Every rank holds the gradient of b samples, and after AllReduce that of K b. The squared norm of a mean over n
samples is |G|^2 + trace / n in expectation; two values of n give both unknowns (McCandlish et al. 2018,
appendix A.1). Left out: the Hessian, which turns this simple noise scale into a sharper one.
"""

import numpy as np
import torch
from torch.func import functional_call, grad, vmap

from helpers.scaling.letters import SYMBOLS, Noise, descend, pairs, softmax


def from_norms(small: float, large: float, batch: int, ranks: int) -> Noise:
    """Noise from the mean squared norms of gradients of `batch` and of `ranks * batch` samples.

    batch: all that one rank saw for the step; with accumulation, a micro-batch times their number.
    A negative square, where the noise of the estimate hides the mean, gives an infinite noise scale.
    Raises ValueError for one rank, whose two norms are the same, and for norms that are not above 0.

    >>> from_norms(small=3.0, large=1.5, batch=1, ranks=4)
    Noise(trace=2.0, square=1.0)
    """
    if ranks < 2:
        raise ValueError(f"ranks={ranks}: expected at least 2, with two norms")
    if not (small > 0 and large > 0):
        raise ValueError(f"small={small}, large={large}: expected norms above 0")
    trace = (small - large) * batch * ranks / (ranks - 1)
    square = (ranks * large - small) / (ranks - 1)
    return Noise(trace, square)


def exact(model: torch.nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> Noise:
    """Noise over all samples, each drawn equally often, from the gradient of every single one.

    inputs, labels: int64 (samples, length); the loss of a sample is the mean over its positions.
    """
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(weights, line, label):
        logits = functional_call(model, weights, (line[None],))[0]
        return torch.nn.functional.cross_entropy(logits, label)

    gradients = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, inputs, labels)
    each = torch.cat([g.flatten(1) for g in gradients.values()], dim=1)
    mean = each.mean(0)
    return Noise(float(((each - mean) ** 2).sum(1).mean()), float((mean**2).sum()))


def repeated(trained: int, batch: int, ranks: int, steps: int, repeats: int) -> list[float]:
    """Noise scales of helpers.scaling.letters after `trained` steps, read off two norms again and again.

    Each averages the norms of `steps` batches on `ranks` simulated ranks, at fixed parameters, with other
    samples (RandomState, whose stream NumPy has frozen). Raises ValueError for less than 1 of anything.
    """
    if min(batch, steps, repeats) < 1:
        raise ValueError(f"batch={batch}, steps={steps}, repeats={repeats}: expected at least 1")
    draw, p, (first, second) = np.random.RandomState(0), softmax(descend(trained)), pairs()
    cell, many, found = first * SYMBOLS + second, steps * ranks, []
    base = np.arange(many)[:, None] * SYMBOLS**2
    for _ in range(repeats):
        chosen = cell[draw.randint(len(cell), size=(many, batch))] + base
        share = np.bincount(chosen.ravel(), minlength=many * SYMBOLS**2) / batch
        share = share.reshape(many, SYMBOLS, SYMBOLS)
        each = share.sum(2, keepdims=True) * p - share
        mean = each.reshape(steps, ranks, SYMBOLS, SYMBOLS).mean(1)
        small, large = ((g**2).sum((1, 2)).mean() for g in (each, mean))
        found.append(from_norms(small, large, batch, ranks).scale)
    return found

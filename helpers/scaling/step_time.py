"""One training step on a clock: what is computed, what is sent, and what of the sending sticks out.

A step computes forward and backward, by default two thirds of it backward, and sends DDP's real buckets on
the way (helpers.overlap). Left out: the optimizer, data loading, and that sending slows computing down.
"""

from collections.abc import Callable
from dataclasses import dataclass

from helpers import overlap
from helpers.cost import price
from helpers.llama.like import arrival
from helpers.models import LLAMA3_8B

FLOPS = 400e12  # a card's FLOPs a second in the running example
TOKENS = 4 * 8192  # a card's tokens a step there
ONE_BUCKET = 16_000  # MiB: a cap that puts the whole gradient of Llama 3 8B into one bucket


@dataclass(frozen=True)
class Step:
    """Seconds. compute: forward and backward; sending: all buckets; exposed: what of it sticks out."""

    compute: float
    sending: float
    exposed: float

    @property
    def seconds(self) -> float:
        """How long the step takes."""
        return self.compute + self.exposed

    @property
    def efficiency(self) -> float:
        """Seconds of computing over seconds of the step: what K cards do over K times what one does."""
        return self.compute / self.seconds


def step(
    ranks: int,
    tokens: float = TOKENS,
    alpha: float = 20e-6,
    B: float = 50e9,
    cap_mb: float | None = None,
    cost: Callable[..., float] = price.ring,
    backward: float = 2 / 3,
) -> Step:
    """One step of Llama 3 8B in BF16 on `ranks` cards with `tokens` tokens each.

    alpha: seconds a message; B: bytes a second of a card's port; cap_mb: DDP's bucket cap in MiB, None for
    its default; cost(K, M, alpha, B): seconds of one AllReduce; backward: its share of the computing. One
    card sends nothing.
    Raises ValueError for less than one card, no tokens, a negative alpha, no bandwidth, or a share of
    backward that is none.

    >>> one = step(ranks=1)
    >>> round(one.seconds, 3), one.efficiency
    (3.947, 1.0)
    """
    if ranks < 1 or ranks != int(ranks):
        raise ValueError(f"ranks={ranks}: expected a whole number, at least 1")
    for name, value in {"tokens": tokens, "B": B}.items():
        if not value > 0:
            raise ValueError(f"{name}={value}: expected a number above 0")
    if not alpha >= 0:
        raise ValueError(f"alpha={alpha}: expected seconds, 0 or more")
    if not 0 < backward <= 1:
        raise ValueError(f"backward={backward}: expected a share above 0, at most 1")

    def seconds_of(size: int) -> float:
        return cost(ranks, size, alpha, B) if ranks > 1 else 0.0

    compute = 6 * LLAMA3_8B.parameters * tokens / FLOPS
    end = backward * compute
    sent = overlap.llama_timeline(arrival(LLAMA3_8B), seconds_of, end, cap_mb)
    return Step(compute, sum(seconds_of(each.size) for each in sent), overlap.exposed(sent, end))

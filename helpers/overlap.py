"""When gradients become ready, when buckets leave, and what sticks out: DDP's overlap as a simulation.

The rule is DDP's (Li et al. 2020, section 3.2.3): gradients become ready one after the other, a bucket is
complete with its last one, and buckets are sent one at a time in their order, over one link. Left out: the
forward pass, the optimizer, and that sending slows computing down.
"""

from collections.abc import Callable
from dataclasses import dataclass

from helpers.buckets import Shapes, bucket_places
from helpers.models import EMBEDDING


@dataclass(frozen=True)
class Sent:
    """One bucket on the timeline, seconds from the start of the backward pass. size: bytes."""

    size: int
    ready: float
    start: float
    end: float


def timeline(ready: list[float], sizes: list[int], seconds: list[float]) -> list[Sent]:
    """Buckets in their order, each sent when it is ready and the one before it is through.

    ready: when each bucket is complete; sizes: bytes; seconds: how long each occupies the link.
    Raises ValueError for lists of different length.

    >>> [sent.end for sent in timeline([1.0, 2.0], [8, 8], [3.0, 3.0])]
    [4.0, 7.0]
    """
    if not len(ready) == len(sizes) == len(seconds):
        raise ValueError(f"{len(ready)} times, {len(sizes)} sizes and {len(seconds)} costs: expected as many")
    free, sent = 0.0, []
    for at, size, cost in zip(ready, sizes, seconds, strict=True):
        start = max(at, free)
        free = start + cost
        sent.append(Sent(size, at, start, free))
    return sent


def exposed(sent: list[Sent], backward: float) -> float:
    """Seconds of sending after the backward pass is over."""
    return max(0.0, sent[-1].end - backward) if sent else 0.0


def ready_times(work: list[float], buckets: list[list[int]], backward: float) -> list[float]:
    """When each bucket is complete, if parameter i takes its share work[i] of the backward pass.

    work: in the order in which gradients become ready, any unit. buckets: the same positions, by bucket.
    """
    total, at, done = sum(work), 0.0, []
    for share in work:
        at += share
        done.append(backward * at / total)
    return [max(done[i] for i in bucket) for bucket in buckets]


def llama_timeline(
    arrived: Shapes, seconds_of: Callable[[int], float], backward: float, cap_mb: float | None = None
) -> list[Sent]:
    """The timeline of a backward pass of `backward` seconds whose gradients arrive in this order.

    arrived: as helpers.llama.like.arrival has it; seconds_of(bytes): time of one bucket on the link. A matrix
    takes time in proportion to its elements; vectors and the embedding, which is looked up and not
    multiplied, take none.
    """
    sizes, buckets = bucket_places(arrived, cap_mb=cap_mb)
    work = [shape[0] * shape[1] if len(shape) == 2 and name != EMBEDDING else 0 for name, shape in arrived]
    ready = ready_times(work, buckets, backward)
    return timeline(ready, sizes, [seconds_of(size) for size in sizes])

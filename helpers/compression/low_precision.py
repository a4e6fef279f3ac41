"""Additions that round after each one, along any schedule, in arithmetics that know nothing of each other.

A schedule adds with `+=`, so an array that rounds in its `+=` turns every simulation low-precision.
BF16 keeps 8 significant bits and float32's exponents. Left out: its overflow and its subnormal numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import torch

from helpers.schedule import Schedule, Step
from helpers.simulate import simulate

BITS = 8  # significant bits of a BF16 number, the leading one included


def round_bits(numbers: np.ndarray) -> np.ndarray:
    """float32 numbers, each rounded to the nearest BF16 number, ties to the even one: integers only.

    A BF16 number is a float32 whose lower 16 bits are zero. Raises ValueError for another type.

    >>> round_bits(np.array([257, 259], np.float32)).tolist()
    [256.0, 260.0]
    """
    if numbers.dtype != np.float32:
        raise ValueError(f"numbers: {numbers.dtype}, expected float32")
    pattern = np.asarray(numbers).view(np.uint32)
    even = (pattern >> np.uint32(16)) & np.uint32(1)
    return ((pattern + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)).view(np.float32)


def round_fraction(number: Fraction, bits: int = BITS) -> Fraction:
    """The nearest number of `bits` significant bits, ties to the even one: exact fractions only.

    >>> [int(round_fraction(Fraction(n))) for n in (257, 259)]
    [256, 260]
    """
    if number == 0:
        return number
    unit = Fraction(1)  # of the last bit that is kept
    while abs(number) / unit >= 2**bits:
        unit *= 2
    while abs(number) / unit < 2 ** (bits - 1):
        unit /= 2
    return round(number / unit) * unit  # Python rounds a Fraction's ties to even


class _ByBits(np.ndarray):
    def __iadd__(self, other):
        self[...] = round_bits(np.asarray(self) + np.asarray(other))
        return self


class _ByFractions(np.ndarray):
    def __iadd__(self, other):
        self[...] = [round_fraction(a + b) for a, b in zip(self, other, strict=True)]
        return self


def by_bits(numbers: Sequence) -> np.ndarray:
    """BF16 in numpy: float32 additions, each rounded by `round_bits`."""
    return round_bits(np.array(numbers, dtype=np.float32)).view(_ByBits)


def by_fractions(numbers: Sequence) -> np.ndarray:
    """BF16 in exact fractions: exact additions, each rounded by `round_fraction`."""
    exact = np.empty(len(numbers), dtype=object)
    exact[:] = [round_fraction(_fraction(number)) for number in numbers]
    return exact.view(_ByFractions)


def _fraction(number) -> Fraction:
    """Exactly `number`; numpy's float32 is no number that Fraction knows."""
    return Fraction(number if isinstance(number, int | float | Fraction) else float(number))


def by_torch(numbers: Sequence) -> np.ndarray:
    """BF16 in torch: every number is a tensor of one element."""
    tensors = np.empty(len(numbers), dtype=object)
    for i, number in enumerate(numbers):
        tensors[i] = torch.tensor(float(number), dtype=torch.bfloat16)
    return tensors


def in_fp32(numbers: Sequence) -> np.ndarray:
    """BF16 numbers whose sums are kept in float32: nothing is rounded to 8 bits on the way."""
    return round_bits(np.array(numbers, dtype=np.float32))


BF16: dict[str, Callable] = {"bits": by_bits, "torch": by_torch, "fractions": by_fractions}


def one_chunk(schedule: Schedule, chunk: int = 0) -> Schedule:
    """What `schedule` does with one of its chunks, as a schedule of that chunk alone.

    Raises ValueError for a chunk that it has not got.
    """
    if not 0 <= chunk < schedule.chunks:
        raise ValueError(f"chunk={chunk}: expected 0 to {schedule.chunks - 1}, the chunks of {schedule.name}")
    steps = []
    for step in schedule.steps:
        mine = step.chunk == chunk
        if mine.any():
            source, destination, add = (part[mine] for part in (step.source, step.destination, step.add))
            steps.append(Step(source, destination, np.zeros_like(source), add, step.phase))
    ends = {name: getattr(schedule, name)[:, chunk : chunk + 1] for name in ("starts", "ends")}
    return replace(schedule, chunks=1, steps=tuple(steps), **ends)


@cache
def _written(write: Callable[[int], Schedule], ranks: int, chunk: int) -> Schedule:
    return one_chunk(write(ranks), chunk)


def reduced(write: Callable[[int], Schedule], vectors: Sequence[np.ndarray], chunk: int = 0) -> np.ndarray:
    """The sum of one vector a rank, added in the order in which the schedule adds its chunk `chunk`.

    write: one of helpers.algorithms. vectors: made by one of the arithmetics above. Returns the vector of
    the first node that has to end with the sum.
    """
    schedule = _written(write, len(vectors), chunk)
    holder = int(np.flatnonzero(schedule.ends[:, 0])[0])
    return simulate(schedule, list(vectors)).arrays[holder]


def partial_sums(numbers: Sequence, arithmetic: Callable = by_bits) -> list[float]:
    """What a chain holds after each addition, the first number included. Raises ValueError for none."""
    if not len(numbers):
        raise ValueError("numbers: none, expected at least one")
    held, seen = arithmetic(numbers[:1]), [float(numbers[0])]
    for number in numbers[1:]:
        held += arithmetic([number])
        seen.append(float(held[0]))
    return seen


def relative_error(found: np.ndarray, exact: np.ndarray) -> float:
    """Length of the difference over the length of `exact`."""
    return float(np.linalg.norm(np.asarray(found, dtype=np.float64) - exact) / np.linalg.norm(exact))

"""The alpha-beta explorer: four AllReduces priced by formula, under the reader's own sliders.

explorer.js computes what it shows, by the formulas of helpers/cost/price.py, once more in JavaScript;
tests/site/test_explorer_page.py compares the two over a grid. Python holds start values, limits and labels.
"""

from numbers import Real

from helpers.cost.price import FORMULAS, threshold
from helpers.drawn import Drawn

LABELS = {
    "ring-allreduce": "Ring",
    "halving-doubling-allreduce": "Halving-doubling",
    "binomial-tree-allreduce": "Binomial tree",
    "parameter-server": "Parameter server",
}
LIMITS = {"ranks": (2, 16384), "message": (2**10, 64e9), "alpha": (1e-7, 1e-3), "bandwidth": (1e8, 1e12)}
EXPECTED = {
    "ranks": "a whole number from 2 to 16384",
    "message": "bytes, from 1024 (1 KiB) to 64e9 (64 GB)",
    "alpha": "seconds a message, from 1e-7 to 1e-3",
    "bandwidth": "bytes a second one way, from 1e8 to 1e12",
}
# Sizes worth a button: the least, what DDP puts in one bucket, and 8,030,261,248 gradients in bfloat16.
PRESETS = {
    "1 KiB": 2**10,
    "one 25 MiB bucket": 25 * 2**20,
    "gradient of Llama 3 8B (16.06 GB)": 2 * 8_030_261_248,
}


def explore(
    ranks: int = 1024,
    message: float = 25 * 2**20,
    alpha: float = 20e-6,
    bandwidth: float = 50e9,
    algorithm: str = "ring-allreduce",
) -> Drawn:
    """Sliders for the alpha-beta model, and the time of four AllReduces against the message size.

    ranks: K. message: M in bytes. alpha: seconds a message. bandwidth: B in bytes a second, one way.
    These are start values. Raises ValueError for one that is outside its slider, or an unknown algorithm.

    >>> explore()  # doctest: +ELLIPSIS
    Ring, 1,024 ranks, 26,214,400 bytes, 20 µs a message, 50 GB/s: 41.97 ms, 28.99 times the fastest ...
    >>> explore(alpha=2)
    Traceback (most recent call last):
    ValueError: alpha=2: expected seconds a message, from 1e-7 to 1e-3
    """
    start = {"ranks": ranks, "message": message, "alpha": alpha, "bandwidth": bandwidth}
    for name, value in start.items():
        low, high = LIMITS[name]
        broken = name == "ranks" and isinstance(value, Real) and value % 1
        if not isinstance(value, Real) or not low <= value <= high or broken:
            raise ValueError(f"{name}={value!r}: expected {EXPECTED[name]}")
        start[name] = int(value) if name == "ranks" else float(value)
    if algorithm not in LABELS:
        raise ValueError(f"algorithm={algorithm!r}: expected one of {', '.join(LABELS)}")
    state = {
        "start": {**start, "algorithm": algorithm},
        "limits": {name: list(ends) for name, ends in LIMITS.items()},
        "labels": LABELS,
        "presets": PRESETS,
    }
    return Drawn("explorer", state, _words(**start, algorithm=algorithm))


def _words(ranks: int, message: float, alpha: float, bandwidth: float, algorithm: str) -> str:
    """What the explorer says at its start, for whoever has neither a kernel nor a script."""
    times = {name: FORMULAS[name](ranks, message, alpha, bandwidth) for name in LABELS}
    seconds = times[algorithm]
    return (
        f"{LABELS[algorithm]}, {ranks:,} ranks, {message:,.0f} bytes, {alpha * 1e6:.4g} µs a message,"
        f" {bandwidth / 1e9:.4g} GB/s: {seconds * 1e3:.4g} ms, {seconds / min(times.values()):.4g} times the"
        f" fastest of four. Below M* = {threshold(ranks, alpha, bandwidth) / 1e9:.4g} GB latency is most of"
        " what a ring costs."
    )

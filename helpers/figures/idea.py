"""Figures of the chapters on the idea."""

import matplotlib.pyplot as plt

from helpers.figures.style import BLUE, GREY, ORANGE


def token_weights(counts: list[int], by_rank: list[float], by_token: float) -> None:
    """Height of every token's weight, rank by rank, beside the weight that a mean over all tokens gives.

    counts: tokens of each rank. by_rank: weight of one token of each rank. by_token: the common weight.
    """
    figure, axes = plt.subplots()
    start = 0
    for rank, (count, weight) in enumerate(zip(counts, by_rank, strict=True)):
        axes.bar(start, weight, width=count, align="edge", color=(BLUE, ORANGE)[rank % 2], edgecolor="white")
        label = {"ha": "center", "va": "center", "color": "white", "weight": "bold"}
        axes.text(start + count / 2, weight / 3, f"rank {rank}\n{count} tokens", **label)
        start += count
    axes.axhline(by_token, color=GREY, linestyle="--")
    axes.text(start, by_token, f"1/{start}, the same for all", ha="right", va="bottom", color=GREY)
    axes.set(xlabel="token", ylabel="weight of one token", xlim=(0, start), ylim=(0, max(by_rank) * 1.05))
    plt.show()


def two_curves(steps: list[int], curves: dict[str, list[float]], ylabel: str) -> None:
    """Two labelled curves over training steps, told apart by line style as well as by colour."""
    figure, axes = plt.subplots()
    styles = (dict(color=ORANGE, linestyle="--", marker="s"), dict(color=BLUE, linestyle="-", marker="o"))
    for (name, values), style in zip(curves.items(), styles, strict=True):
        axes.plot(steps, values, label=name, markersize=4, **style)
    axes.set(xlabel="training step", ylabel=ylabel)
    axes.legend(frameon=False)
    plt.show()

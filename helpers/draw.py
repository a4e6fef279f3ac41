"""Figures of the book: each function draws numbers it is given and computes none."""

import matplotlib.pyplot as plt

from helpers.figure_style import BLUE, GREY, ORANGE


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


def ring_states(states: list[list[list[int]]]) -> None:
    """States of a collective side by side: a row a rank, a column a chunk, the number of contributions in it.

    Colour deepens with the count; the number is written in every cell.
    """
    columns = 4
    figure, grid = plt.subplots(2, columns, figsize=(6.4, 3.6))
    for axes in grid.flat:
        axes.axis("off")
    for number, (state, axes) in enumerate(zip(states, grid.flat, strict=False)):
        axes.imshow(state, cmap="Blues", vmin=0, vmax=2 * len(state))
        for row, counts in enumerate(state):
            for column, count in enumerate(counts):
                bold = "bold" if count == len(state) else "normal"
                axes.text(column, row, str(count), ha="center", va="center", weight=bold)
        axes.set_title("start" if number == 0 else f"step {number}")
    plt.show()

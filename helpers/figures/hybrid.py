"""Figures of the chapter on hybrid parallelism."""

import matplotlib.pyplot as plt
from matplotlib.patches import Rectangle

from helpers.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PAPER, PURPLE
from helpers.hybrid.pipeline_schedule import Span

RANKS = (BLUE, ORANGE, GREEN, PURPLE)


def four_cuts(cuts: dict[str, tuple[list[list], str]]) -> None:
    """A panel a cut: who holds which piece, as a table of ranks, and under it what is sent.

    cuts: {title: (rows of ranks, from the top; a row of one rank is one piece, words)}. A piece that is no
    rank's own, such as "all", is grey.
    """
    figure, grid = plt.subplots(2, 2, figsize=(6.4, 4.6))
    for axes, (title, (rows, words)) in zip(grid.flat, cuts.items(), strict=True):
        for down, row in enumerate(rows):
            width = 4 / len(row)
            for across, holder in enumerate(row):
                colour = RANKS[holder] if isinstance(holder, int) else GREY
                place = (across * width + 0.04, -down + 0.06)
                axes.add_patch(Rectangle(place, width - 0.08, 0.88, facecolor=PAPER, edgecolor=colour, lw=2))
                middle = ((across + 0.5) * width, -down + 0.48)
                axes.text(*middle, f"{holder}", ha="center", va="center", color=colour, weight="bold")
        axes.set_title(title)
        axes.text(2, -len(rows) + 0.8, words, ha="center", va="top", color=INK)
        axes.set(xlim=(-0.05, 4.05), ylim=(-len(rows) - 0.1, 1.05))
        axes.axis("off")
    plt.show()


def schedules(panels: dict[str, list[Span]]) -> None:
    """Pipeline schedules to scale, a panel each: forward passes filled, backward passes hatched, numbered."""
    figure, grid = plt.subplots(len(panels), 1, sharex=True, figsize=(6.4, 2.0 * len(panels)))
    for axes, (title, spans) in zip(grid, panels.items(), strict=True):
        for span in spans:
            forward = span.op == "F"
            style = dict(facecolor=BLUE, edgecolor=PAPER)
            words = dict(ha="center", va="center_baseline", color=PAPER)
            if not forward:
                style = dict(facecolor=PAPER, edgecolor=BLUE, hatch="///")
                words |= dict(color=ORANGE, bbox=dict(facecolor=PAPER, edgecolor="none", pad=0.6))
            size = span.end - span.start, 0.8
            axes.add_patch(Rectangle((span.start, span.stage - 0.4), *size, **style))
            axes.text((span.start + span.end) / 2, span.stage, f"{span.micro_batch}", **words)
        stages = 1 + max(span.stage for span in spans)
        axes.set(xlim=(0, max(span.end for span in spans)), ylim=(stages - 0.4, -0.6), yticks=range(stages))
        axes.set_ylabel("stage")
        axes.set_title(title, loc="left")
    grid[-1].set_xlabel("time, in forward passes of a micro-batch")
    plt.show()


def traffic(tokens: list[int], curves: dict[str, list[float]], crossing: tuple[float, float]) -> None:
    """Bytes that a rank sends in a step against tokens a replica; a dot where two curves cross."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for name, sent in curves.items():
        axes.loglog(tokens, sent, label=name)
    axes.plot(*crossing, "o", color=INK)
    words = f"{crossing[0]:,.0f} tokens"
    axes.annotate(words, crossing, xytext=(-4, 9), textcoords="offset points", ha="right", color=GREY)
    axes.legend(loc="upper left")
    axes.set(xlabel="tokens a replica and step", ylabel="sent by a rank, GB")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
    axes.grid(True, color=GREY, alpha=0.25)
    plt.show()

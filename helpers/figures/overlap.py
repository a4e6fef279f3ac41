"""Figures of the chapter on overlap."""

import matplotlib.pyplot as plt

from helpers.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PAPER
from helpers.overlap import Sent


def overlap_timeline(sent: list[Sent], backward: float) -> None:
    """Computing above, buckets on the link below: the whole backward pass, and its end magnified.

    The last bucket has a colour and a hatching of its own.
    """
    figure, (whole, end) = plt.subplots(
        1, 2, figsize=(6.4, 2.6), sharey=True, gridspec_kw={"width_ratios": (3, 2)}
    )
    for axes in (whole, end):
        axes.broken_barh([(0, backward)], (1.1, 0.8), facecolor=GREEN)
        axes.broken_barh([(s.start, s.end - s.start) for s in sent[:-1]], (0.1, 0.8), facecolor=BLUE)
        last = sent[-1]
        axes.broken_barh(
            [(last.start, last.end - last.start)], (0.1, 0.8), facecolor=PAPER, edgecolor=ORANGE, hatch="////"
        )
        axes.axvline(backward, color=INK, linestyle="--", linewidth=1)
    whole.set(xlim=(0, sent[-1].end + 0.05), xlabel="s", yticks=(0.5, 1.5))
    whole.set_yticklabels(("sending", "computing"))
    end.set(xlim=(backward - 0.05, backward + 0.055), xlabel="s, magnified", ylim=(0, 2.4))
    end.set_xticks((backward - 0.05, backward, backward + 0.05))
    end.xaxis.set_major_formatter(lambda value, _: f"{value:.2f}")
    end.text(sent[-1].start, 0.98, "embedding", color=ORANGE, va="bottom")
    end.text(backward + 0.003, 1.5, "computing\nends", color=GREY, va="center")
    plt.show()


def exposed_by_cap(caps: list[float], curves: dict[str, list[float]]) -> None:
    """Exposed seconds against the cap in MiB, one labelled curve an entry; the best of each is a dot."""
    figure, axes = plt.subplots()
    for name, seconds in curves.items():
        (line,) = axes.loglog(caps, seconds, label=name, marker=".")
        best = seconds.index(min(seconds))
        axes.plot(caps[best], seconds[best], "o", color=line.get_color(), markersize=8)
    axes.axvline(25, color=GREY, linewidth=1)
    axes.annotate(
        "default", (25, axes.get_ylim()[1]), xytext=(4, -12), textcoords="offset points", color=GREY
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set(xlabel="bucket cap, MiB", ylabel="exposed, s")
    axes.legend(frameon=False)
    plt.show()


def profiled(spans: dict[str, list[tuple[float, float]]]) -> None:
    """What a profiler saw of one backward pass: layers computing above, AllReduces below, each in its row."""
    figure, axes = plt.subplots(figsize=(6.4, 2.6))
    layers, sent = ([(1e3 * a, 1e3 * (b - a)) for a, b in spans[name]] for name in ("backward", "AllReduce"))
    axes.broken_barh(layers, (1.1, 0.4), facecolor=GREEN)
    row = 0.9 / len(sent)
    for number, bar in enumerate(sent):
        axes.broken_barh([bar], (1 - (number + 1) * row, 0.8 * row), facecolor=BLUE)
    axes.axvline(1e3 * spans["backward"][-1][1], color=INK, linestyle="--", linewidth=1)
    axes.set(xlabel="ms", yticks=(0.55, 1.3), ylim=(0, 1.6))
    axes.set_yticklabels(("sending", "computing"))
    plt.show()

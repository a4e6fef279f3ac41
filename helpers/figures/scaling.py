"""Figures of the chapter on scaling."""

import matplotlib.pyplot as plt
from matplotlib.ticker import FixedLocator, NullLocator

from helpers.figures.style import BLUE, GREEN, GREY, INK, ORANGE


def _cards(axes, cards: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(FixedLocator(cards[::2]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("cards")


def weak_and_strong(cards: list[int], efficiency: dict, seconds: dict) -> None:
    """Left: efficiency against cards. Right: seconds of a step, global batch fixed. A curve an entry."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.3))
    for axes, curves in ((left, efficiency), (right, seconds)):
        for name, values in curves.items():
            axes.plot(cards, values, label=name, marker=".")
        _cards(axes, cards)
    left.set(ylim=(0, 1.05), title="efficiency")
    left.legend(loc="lower left")
    right.set_yscale("log")
    right.yaxis.set_major_locator(FixedLocator([0.25, 1, 4, 16, 32]))
    right.yaxis.set_minor_locator(NullLocator())
    right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    right.set(title="strong: seconds a step")
    right.legend(loc="lower left")
    plt.show()


def stale_limit(lags: list[int], formula: list[float], roots: list[float], traces: dict) -> None:
    """Left: largest stable rate against workers, a line and dots. Right: w against updates."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.0))
    left.loglog([lag + 1 for lag in lags], formula, color=BLUE, label="formula")
    left.plot([lag + 1 for lag in lags], roots, "o", color=ORANGE, label="found by search")
    for axis in (left.xaxis, left.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_locator(NullLocator())
    left.xaxis.set_major_locator(FixedLocator([1, 4, 16, 64]))
    left.yaxis.set_major_locator(FixedLocator([0.02, 0.1, 0.5, 2]))
    left.set(xlabel="workers", title="largest stable rate")
    left.legend(loc="lower left")
    for (name, trace), style in zip(
        traces.items(), (dict(color=ORANGE, linestyle="--"), dict(color=BLUE)), strict=True
    ):
        right.plot(trace, label=name, linewidth=1.2, **style)
    right.set(xlabel="updates", title="w, four workers", ylim=(-6, 10), xlim=(0, len(trace)))
    right.legend(loc="upper left")
    plt.show()


def steps_by_batch(steps: dict[int, float], law: dict[int, float], marks: dict[str, float]) -> None:
    """Steps to the target against batch: trained dots, a curve of the law, vertical lines at `marks`."""
    figure, axes = plt.subplots(figsize=(6.4, 3.5))
    axes.loglog(list(law), list(law.values()), color=BLUE, label="fewest $\\times\\,(1 + B_{crit}/bK)$")
    axes.plot(list(steps), list(steps.values()), "o", color=ORANGE, markersize=8, label="trained")
    top = max(steps.values()) * 1.6
    for (name, batch), colour in zip(marks.items(), (GREY, GREEN, GREY), strict=True):
        axes.axvline(batch, color=colour, linestyle=":", linewidth=1.5)
        place = dict(xytext=(-4, 0), ha="right", va="top")
        axes.annotate(name, (batch, top), textcoords="offset points", color=colour, **place)
    for batch, count in steps.items():
        axes.annotate(f"{count:.0f}", (batch, count), xytext=(5, 7), textcoords="offset points", color=INK)
    axes.xaxis.set_major_locator(FixedLocator(list(steps)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set(xlabel="global batch $bK$, samples", ylabel="steps to the target", ylim=(6, top))
    axes.legend(loc="lower left")
    plt.show()

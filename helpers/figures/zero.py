"""Figures of the chapter on ZeRO."""

import matplotlib.pyplot as plt
from matplotlib.patches import Patch

from helpers.counting.volume import Call
from helpers.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PAPER, PURPLE

HELD = {
    "parameters": (BLUE, ""),
    "gradients": (ORANGE, "//"),
    "optimizer": (GREEN, "\\\\"),
}
MOVED = {
    "AllReduce": (PURPLE, "xx"),
    "reduce-scatter": (ORANGE, "//"),
    "all-gather": (BLUE, ".."),
    "broadcast": (GREY, "--"),
}
GATHER, REDUCE = (
    dict(color=BLUE, marker="o", label="all-gather"),
    dict(color=ORANGE, marker="s", label="reduce-scatter"),
)


def memory_and_traffic(held: dict[str, dict[str, float]], moved: dict[str, dict[str, float]]) -> None:
    """What a rank keeps, in numbers a parameter, beside the passes it moves in a step; a row for each way.

    held, moved: way to amounts by part (HELD) and by collective (MOVED); parts that are missing are 0.
    """
    figure, panels = plt.subplots(1, 2, sharey=True, figsize=(6.4, 4.8), width_ratios=(4.3, 3.4))
    for axes, rows, parts in zip(panels, (held, moved), (HELD, MOVED), strict=True):
        for row, amounts in enumerate(rows.values()):
            start = 0.0
            for part, (colour, hatch) in parts.items():
                if size := float(amounts.get(part, 0)):
                    axes.barh(-row, size, 0.62, left=start, **_style(colour, hatch))
                start += size
            axes.text(start + 0.08, -row, f"{start:.2f}", va="center", color=INK)
        handles = [Patch(label=part, **_style(*style)) for part, style in parts.items()]
        axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0.0, 1.0), labelspacing=0.3)
    panels[0].set_yticks([-row for row in range(len(held))], list(held))
    panels[0].set(xlabel="kept: numbers a parameter", xlim=(0, 4.9), xticks=range(5))
    panels[1].set(xlabel="moved: passes a step", xlim=(0, 3.8), xticks=range(4))
    plt.show()


def _style(colour: str, hatch: str) -> dict:
    return dict(facecolor=PAPER, edgecolor=colour, hatch=hatch, linewidth=1.5)


def gathers(steps: dict[str, list[Call]]) -> None:
    """The collectives of a step in their order, a row for each module, a panel for each step given.

    Between a gather and what lets go of it (the end of the forward pass, where the module is gathered again,
    or its reduce-scatter) runs a bar: so long all ranks have the module whole. Not measured, but drawn from
    the order of the calls.
    """
    figure, panels = plt.subplots(1, len(steps), sharey=True, figsize=(6.4, 2.7))
    modules = dict.fromkeys(call.module for calls in steps.values() for call in calls)
    rows = {module: -row for row, module in enumerate(modules)}
    for axes, (title, calls) in zip(panels, steps.items(), strict=True):
        loss = sum(call.phase == "forward" for call in calls) + 0.5
        for module, row in rows.items():
            for start, end in _whole(calls, module, loss):
                axes.plot(
                    [start, end],
                    [row, row],
                    color=BLUE,
                    linewidth=5,
                    alpha=0.3,
                    linestyle="-",
                    solid_capstyle="butt",
                )
        for style in (GATHER, REDUCE):
            found = [(i + 1, rows[c.module]) for i, c in enumerate(calls) if c.name == style["label"]]
            axes.plot(*zip(*found, strict=True), linestyle="none", markersize=7, **style)
        axes.axvline(loss, color=INK, linestyle=":", linewidth=1)
        axes.set(xticks=[], xlim=(0.3, 12.7), ylim=(0.6 - len(rows), 1.05), xlabel="order")
        axes.set_title(title, fontsize=12)
        axes.text(loss, 0.5, " loss", fontsize=11)
    panels[0].set_yticks(list(rows.values()), [name.replace("layers.", "block ") for name in rows])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    plt.show()


def _whole(calls: list[Call], module: str, loss: float) -> list[tuple[float, float]]:
    """From when to when a module is whole, in places of the order."""
    gathered = [i + 1 for i, c in enumerate(calls) if (c.module, c.name) == (module, "all-gather")]
    (reduced,) = [i + 1 for i, c in enumerate(calls) if (c.module, c.name) == (module, "reduce-scatter")]
    if len(gathered) == 1:
        return [(gathered[0], reduced)]
    first, second = gathered
    forward_ends = loss - 0.25
    return [(first, forward_ends if module == "root" else min(first + 0.9, forward_ends)), (second, reduced)]

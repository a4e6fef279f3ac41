"""Figures of the chapters on the wire."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

from helpers.figures.style import BLUE, GREY, INK, ORANGE, PAPER


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


def cost_curves(sizes: list[float], curves: dict[str, list[float]], marks: dict[str, float]) -> None:
    """Seconds against bytes on logarithmic axes, one labelled curve an entry, told apart by dashes too.

    marks: {name of a curve: bytes} puts a dot with its size on that curve.
    """
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for name, seconds in curves.items():
        (line,) = axes.loglog(sizes, seconds, label=name)
        if name in marks:
            at = float(np.exp(np.interp(np.log(marks[name]), np.log(sizes), np.log(seconds))))
            axes.plot(marks[name], at, "o", color=line.get_color())
            place = {"textcoords": "offset points", "xytext": (-6, 8), "ha": "right"}
            axes.annotate(_bytes(marks[name]), (marks[name], at), color=line.get_color(), **place)
    axes.set(xlabel="bytes of the message", ylabel="time")
    axes.xaxis.set_major_formatter(lambda value, _: _bytes(value))
    axes.xaxis.set_major_locator(LogLocator(1000, numticks=9))
    axes.yaxis.set_major_formatter(lambda value, _: _seconds(value))
    axes.grid(True, color=GREY, alpha=0.25)
    axes.legend(frameon=False)
    plt.show()


def two_nodes(sends: list[float], receives: list[float]) -> None:
    """One ring over two nodes: boxes are GPUs, squares their network ports, filled where bytes pass.

    sends, receives: bytes through each rank's network port, the first half of the ranks in the upper node.
    """
    figure, axes = plt.subplots(figsize=(6.4, 2.9))
    gpus = len(sends) // 2
    for rank in range(2 * gpus):
        upper = rank < gpus
        # The lower row runs back, so that the ring closes at the left.
        x, y = (rank, 1.0) if upper else (2 * gpus - 1 - rank, 0.0)
        box = dict(boxstyle="round,pad=0.35", facecolor=PAPER, edgecolor=INK)
        axes.text(x, y, f"{rank}", ha="center", va="center", bbox=box)
        busy = sends[rank] > 0 or receives[rank] > 0
        port = y + (-0.24 if upper else 0.24)
        axes.plot(x, port, "s", color=ORANGE, markersize=8, fillstyle="full" if busy else "none")
        if (rank + 1) % gpus:
            way = 1 if upper else -1
            axes.annotate("", (x + 0.72 * way, y), (x + 0.28 * way, y), arrowprops=_arrow(BLUE))
    for x, start, end in ((gpus - 1, 0.7, 0.3), (0, 0.3, 0.7)):
        axes.annotate("", (x, end), (x, start), arrowprops=_arrow(ORANGE))
    for y, name in ((1.34, "node 0: GPUs joined by NVLink"), (-0.4, "node 1")):
        axes.text(-0.4, y, name, color=BLUE, va="center")
    axes.text((gpus - 1) / 2, 0.5, "network ports: filled where something passes", ha="center", color=ORANGE)
    axes.set(xlim=(-0.6, gpus - 0.4), ylim=(-0.55, 1.5))
    axes.axis("off")
    plt.show()


def _arrow(colour: str) -> dict:
    return {"arrowstyle": "-|>", "color": colour, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}


def port_times(panels: dict[str, tuple[list[float], list[float]]]) -> None:
    """Seconds for which each GPU's network port and NVLink are busy, a panel an algorithm."""
    figure, grid = plt.subplots(1, len(panels), sharey=True, figsize=(6.4, 3.0))
    for axes, (title, (network, nvlink)) in zip(grid, panels.items(), strict=True):
        places = np.arange(len(network))
        axes.bar(places - 0.2, network, 0.4, color=ORANGE, label="network port")
        axes.bar(places + 0.2, nvlink, 0.4, color=PAPER, edgecolor=BLUE, hatch="////", label="NVLink")
        axes.text(places[-1] + 0.5, max(network) + 0.012, f"{max(network):.3f} s", color=ORANGE, ha="right")
        axes.set(title=title, xlabel="GPU", xticks=places[::7], ylim=(0, 0.72))
    grid[0].set_ylabel("busy sending, s")
    grid[-1].legend(frameon=False, loc="upper right")
    plt.show()


def bandwidth_by_ports(squares: dict[int, float], circles: dict[int, float], per_port: float) -> None:
    """Bus bandwidth in GB/s against GPUs used a node, beside the straight line of `per_port` GB/s each."""
    figure, axes = plt.subplots()
    ports = sorted(squares)
    axes.loglog(ports, [per_port * p for p in ports], color=GREY, linestyle="--")
    axes.annotate(f"{per_port:g} GB/s a port", (1.9, per_port * 2.35), color=GREY, ha="right")
    axes.plot(ports, list(squares.values()), "s", color=BLUE, markersize=8)
    axes.plot(list(circles), list(circles.values()), "o", color=ORANGE, markersize=9)
    for ports_used, value in squares.items():
        axes.annotate(
            f"{value:.0f}", (ports_used, value), xytext=(6, -14), textcoords="offset points", color=BLUE
        )
    for ports_used, value in circles.items():
        place = {"xytext": (-10, 4), "textcoords": "offset points", "ha": "right"}
        axes.annotate(f"{value:.0f}, tuned", (ports_used, value), color=ORANGE, **place)
    axes.set(xlabel="GPUs used a node", ylabel="busbw, GB/s", xlim=(0.85, 10), ylim=(38, 520))
    axes.xaxis.set_major_locator(FixedLocator(ports))
    axes.yaxis.set_major_locator(FixedLocator([per_port * p for p in ports]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_locator(NullLocator())
    plt.show()


def _bytes(value: float) -> str:
    return _with_unit(value, {1e9: "GB", 1e6: "MB", 1e3: "kB"}, "B")


def _seconds(value: float) -> str:
    return _with_unit(value, {1: "s", 1e-3: "ms"}, "µs", 1e-6)


def _with_unit(value: float, units: dict[float, str], last: str, least: float = 1) -> str:
    size, unit = next(((size, unit) for size, unit in units.items() if value >= size * 0.999), (least, last))
    return f"{value / size:.3g} {unit}"

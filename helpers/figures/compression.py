"""Figures of the chapter on precision and compression."""

import matplotlib.pyplot as plt

from helpers.figures.style import BLUE, DASHES, GREEN, GREY, ORANGE, PALETTE


def stalling_sum(chain: list[float], exact: list[float]) -> None:
    """Partial sums along a chain against those of exact addition, by how many ranks are in."""
    figure, axes = plt.subplots()
    ranks = range(1, len(chain) + 1)
    axes.plot(ranks, exact, color=GREY, linestyle="--", linewidth=1.5)
    axes.plot(ranks, chain, color=ORANGE)
    stops = chain.index(chain[-1]) + 1
    axes.plot(stops, chain[-1], "o", color=ORANGE, markersize=7)
    axes.annotate(f"from rank {stops} on nothing is added", (stops, chain[-1]), xytext=(8, -18),
                  textcoords="offset points", color=ORANGE)  # fmt: skip
    axes.annotate("exact", (0.72 * len(exact), 0.72 * exact[-1]), xytext=(-10, 4),
                  textcoords="offset points", color=GREY, ha="right")  # fmt: skip
    axes.set(xlabel="ranks added", ylabel="sum so far", xlim=(0, len(chain)), ylim=(0, 1.05 * max(exact)))
    axes.set_xticks([0, len(chain) // 4, len(chain) // 2, 3 * len(chain) // 4, len(chain)])
    plt.show()


def error_by_ranks(ranks: list[int], curves: dict[str, list[float]], laws: dict[str, list[float]]) -> None:
    """Relative error against ranks on logarithmic axes: marks are measured, thin lines predicted."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4))
    styles = zip((ORANGE, BLUE, GREEN), "os^", strict=True)
    for (name, errors), (colour, marker) in zip(curves.items(), styles, strict=True):
        axes.plot(ranks, laws[name], color=colour, linestyle="--", linewidth=1)
        axes.plot(ranks, errors, marker, color=colour, markersize=7, linestyle="none", label=name)
        axes.annotate(f"{errors[-1]:.1%}", (ranks[-1], errors[-1]), xytext=(8, -4),
                      textcoords="offset points", color=colour)  # fmt: skip
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="ranks",
        ylabel="relative error",
        xlim=(ranks[0] / 1.3, ranks[-1] * 2),
    )
    axes.set_xticks(ranks, [f"{K:,}" for K in ranks])
    axes.set_yticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.2%", "0.5%", "1%", "2%", "5%"])
    axes.minorticks_off()
    axes.legend(loc="upper left")
    plt.show()


def loss_curves(curves: dict[str, dict[int, float]]) -> None:
    """Loss on held-out lines by training step, a labelled curve a method, told apart by dashes too."""
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for number, (name, losses) in enumerate(curves.items()):
        style = dict(color=PALETTE[number % len(PALETTE)], linestyle=DASHES[number % len(DASHES)])
        axes.plot(list(losses), list(losses.values()), label=name, **style)
    axes.set(xlabel="training step", ylabel="held-out loss, nats a token")
    axes.legend()
    plt.show()

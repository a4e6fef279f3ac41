"""Figures of the chapter on memory."""

import matplotlib.pyplot as plt

from helpers.figures.style import BLUE, GREEN, GREY, INK, ORANGE, PAPER, PURPLE

# What fills a block: its letter, its colour, its hatching. Letters alone tell the parts apart.
PARTS = {
    "weights": ("W", BLUE, ""),
    "gradients": ("G", ORANGE, "///"),
    "master weights": ("M", GREEN, "\\\\\\"),
    "first moment": ("m", PURPLE, ".."),
    "second moment": ("v", PURPLE, "xx"),
    "main gradients": ("F", GREY, "///"),
    "buckets": ("B", GREY, "--"),
}


def bytes_a_parameter(recipes: dict[str, dict[str, int]]) -> None:
    """A row for each recipe, a square for each byte of a parameter, a letter for each part, the sum behind.

    recipes: name to bytes by part, as `Recipe.parts` gives them. The caption names the letters of PARTS.
    """
    figure, axes = plt.subplots(figsize=(6.4, 0.72 * len(recipes)))
    for row, (name, parts) in enumerate(recipes.items()):
        start = 0
        axes.text(0, -row - 0.05, name, va="bottom")
        for part, size in parts.items():
            letter, colour, hatch = PARTS[part]
            for byte in range(size):
                at = (start + byte, -row - 0.6)
                axes.add_patch(plt.Rectangle(at, 1, 0.5, facecolor=PAPER, edgecolor=colour, hatch=hatch))
            outline = plt.Rectangle((start, -row - 0.6), size, 0.5, fill=False, edgecolor=INK, linewidth=1.5)
            axes.add_patch(outline)
            label = {"ha": "center", "va": "center", "color": colour, "weight": "bold"}
            box = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
            axes.text(start + size / 2, -row - 0.35, letter, **label, bbox=box)
            start += size
        axes.text(start + 0.3, -row - 0.35, str(start), va="center", weight="bold")
    axes.set(xlim=(-0.2, 21.5), ylim=(0.3 - len(recipes), 0.4))
    axes.axis("off")
    plt.show()


def activations(sequences: list[int], curves: dict[str, list[float]], lines: dict[str, float]) -> None:
    """GB against the length of the sequence on logarithmic axes; `lines` are levels with a name."""
    figure, axes = plt.subplots(figsize=(6.4, 3.8))
    for (name, sizes), marker in zip(curves.items(), "os^", strict=True):
        (line,) = axes.loglog(sequences, sizes, marker=marker, markersize=5)
        axes.text(sequences[-1] * 1.15, sizes[-1], name, color=line.get_color(), va="center", fontsize=11)
    for name, level in lines.items():
        axes.axhline(level, color=INK, linewidth=1, linestyle=":")
        axes.text(sequences[0], level * 1.1, name, va="bottom")
    axes.set(xlabel="tokens in the sequence", ylabel="GB", xlim=(sequences[0] * 0.85, sequences[-1] * 6))
    axes.set_xticks(sequences[::2], [f"{n // 1024}k" for n in sequences[::2]])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}")
    plt.show()

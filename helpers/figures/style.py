"""How figures look: one palette and one type size, for light pages, dark pages, paper and phones.

A stored figure is an opaque light card, so that JupyterLab and GitHub show it well in either mode. On the
site's dark pages web/custom.css turns its lightness around and keeps its hues. Each colour below has a
contrast of 4.5 against both backgrounds (a test measures it), so it serves for lines, bars and words alike.
"""

import matplotlib
from cycler import cycler

# Okabe and Ito's hues, which every eye tells apart, darkened until they are readable as text.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#bf5200", "#007d5c", "#a8528a", "#5f6b76"
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, GREY)
INK, PAPER = "#24282c", "#ffffff"

# Colour is never the only carrier: lines differ in dashes by default, bars and areas carry labels.
DASHES = ("-", "--", "-.", ":", (0, (6, 2, 1, 2, 1, 2)))

WIDTH, HEIGHT, DPI = 6.4, 3.2, 110  # inches and dots an inch
FONT_SIZE = 12  # points: 8.5 pixels where a phone of 360 pixels shows the figure 326 wide


def set_style() -> None:
    """Set matplotlib's defaults; the same bytes come out on every run."""
    ink = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    matplotlib.rcParams.update(
        {
            "figure.figsize": (WIDTH, HEIGHT),
            "figure.dpi": DPI,
            "figure.facecolor": PAPER,
            "figure.constrained_layout.use": True,
            "font.size": FONT_SIZE,
            "axes.facecolor": PAPER,
            "axes.prop_cycle": cycler(color=PALETTE) + cycler(linestyle=DASHES),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "lines.linewidth": 2,
            "legend.frameon": False,
            "svg.hashsalt": "data-parallelism-proven",
            **dict.fromkeys(ink, INK),
        }
    )

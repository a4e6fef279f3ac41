"""The palette holds its contrast on light pages and on dark ones, after the site has turned it around."""

import math
import re

import pytest

from helpers.figures.style import DASHES, INK, PALETTE, PAPER
from helpers.ledger.claims import ROOT

TEXT = 4.5  # WCAG 2.2, contrast of text, level AA
INVERT = re.compile(r"invert\(([\d.]+)\) hue-rotate\(180deg\)")
BACKGROUND = re.compile(r'html\[data-theme="(\w+)"\] \{[^}]*--pst-color-background: (#\w+);')

Colour = tuple[float, ...]


def rgb(code: str) -> Colour:
    return tuple(int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))


def luminance(colour: Colour) -> float:
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Colour, other: Colour) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def half_turn(colour: Colour) -> Colour:
    """CSS hue-rotate(180deg), as the Filter Effects module defines it."""
    weights = (0.213, 0.715, 0.072)
    grey = 2 * sum(w * v for w, v in zip(weights, colour, strict=True))
    return tuple(min(1.0, max(0.0, grey - value)) for value in colour)


@pytest.fixture(scope="module")
def backgrounds() -> dict[str, Colour]:
    css = (ROOT / "web" / "custom.css").read_text(encoding="utf-8")
    return {theme: rgb(code) for theme, code in BACKGROUND.findall(css)}


def on_dark(colour: str, dark: Colour) -> Colour:
    """A colour of a stored figure as a dark page of the site shows it."""
    (amount,) = INVERT.findall((ROOT / "web" / "figures.css").read_text(encoding="utf-8"))
    a = float(amount)
    turned = half_turn(tuple(v * (1 - 2 * a) + a for v in rgb(colour)))
    return tuple(map(max, turned, dark))  # mix-blend-mode: lighten


@pytest.mark.parametrize("colour", [*PALETTE, INK])
def test_colours_are_readable_on_both_pages(colour: str, backgrounds: dict[str, Colour]) -> None:
    assert contrast(rgb(colour), rgb(PAPER)) >= TEXT
    assert contrast(rgb(colour), backgrounds["light"]) >= TEXT
    assert contrast(on_dark(colour, backgrounds["dark"]), backgrounds["dark"]) >= TEXT


def test_the_card_sinks_into_the_page(backgrounds: dict[str, Colour]) -> None:
    assert contrast(rgb(PAPER), backgrounds["light"]) < 1.02
    assert contrast(on_dark(PAPER, backgrounds["dark"]), backgrounds["dark"]) < 1.02


def test_words_on_a_bar_are_readable(backgrounds: dict[str, Colour]) -> None:
    for colour in PALETTE:
        shown = [on_dark(code, backgrounds["dark"]) for code in (PAPER, colour)]
        assert min(contrast(rgb(PAPER), rgb(colour)), contrast(*shown)) >= TEXT


def test_hues_survive_the_dark(backgrounds: dict[str, Colour]) -> None:
    """Blue stays blue: the largest component is the same on both pages."""
    for colour in PALETTE[:4]:
        dark = on_dark(colour, backgrounds["dark"])
        assert dark.index(max(dark)) == rgb(colour).index(max(rgb(colour)))


def test_colour_is_not_alone() -> None:
    assert len(set(DASHES)) == len(PALETTE)


def test_half_turn_is_the_matrix_of_the_standard() -> None:
    for colour in ((0.2, 0.5, 0.9), (0.9, 0.4, 0.1)):
        cos, sin = math.cos(math.pi), math.sin(math.pi)
        red = (
            (0.213 + cos * 0.787 - sin * 0.213) * colour[0]
            + (0.715 - cos * 0.715 - sin * 0.715) * colour[1]
            + (0.072 - cos * 0.072 + sin * 0.928) * colour[2]
        )
        assert half_turn(colour)[0] == pytest.approx(min(1, max(0, red)))

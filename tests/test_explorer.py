"""The alpha-beta explorer: what it accepts, what it hands to its script, and how light that script is."""

import gzip
import json
import re

import numpy as np
import pytest
from extensions import load_extension
from test_figures import BACKGROUND, contrast, rgb

from helpers.cost.price import FORMULAS, threshold
from helpers.drawn import module_of, style_of
from helpers.explorer import EXPECTED, LABELS, LIMITS, PRESETS, explore
from helpers.ledger.claims import ROOT

LARGEST = 15 * 1024  # bytes of script and style sheet, compressed
GRAPHICS = 3.0  # WCAG 2.2, contrast of what is drawn


@pytest.fixture(scope="module")
def style() -> str:
    return style_of("explorer")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ranks", 1),
        ("ranks", 16385),
        ("ranks", 2.5),
        ("ranks", "8"),
        ("message", 1023),
        ("message", 65e9),
        ("alpha", 0),
        ("alpha", 1.1e-3),
        ("alpha", float("nan")),
        ("bandwidth", 9e7),
        ("bandwidth", float("inf")),
        ("bandwidth", None),
    ],
)
def test_a_start_outside_its_slider_is_refused(name: str, value: object) -> None:
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}: expected {EXPECTED[name]}")):
        explore(**{name: value})


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"algorithm='all-to-all': expected one of ring-allreduce, "):
        explore(algorithm="all-to-all")


def test_both_ends_of_every_slider_are_accepted() -> None:
    for name, ends in LIMITS.items():
        for end in ends:
            assert explore(**{name: end}).state["start"][name] == end


def test_state_is_start_limits_and_labels_and_survives_json() -> None:
    state = explore(ranks=np.int64(64), message=1e6, algorithm="parameter-server").state
    assert json.loads(json.dumps(state)) == state
    assert set(state) == {"start", "limits", "labels", "presets"}
    assert state["start"] == {
        "ranks": 64,
        "message": 1e6,
        "alpha": 20e-6,
        "bandwidth": 50e9,
        "algorithm": "parameter-server",
    }
    assert set(LABELS) < set(FORMULAS)
    assert list(PRESETS.values()) == [1024, 26_214_400, 16_060_522_496]


def test_words_stand_where_nothing_runs() -> None:
    shown = explore()
    edge = threshold(1024, 20e-6, 50e9)
    assert "41.97 ms, 28.99 times the fastest of four" in repr(shown)
    assert f"M* = {edge / 1e9:.4g} GB" in repr(shown)
    assert f"<p>{shown!r}</p>" in shown.box()


def test_script_and_style_are_light(style: str) -> None:
    script = load_extension("drawn").classic_script("explorer", module_of("explorer"))
    sizes = [len(gzip.compress(part.encode())) for part in (script, style)]
    assert sum(sizes) <= LARGEST, sizes


def test_curves_stand_out_on_light_pages_and_on_dark_ones(style: str) -> None:
    site = (ROOT / "web" / "custom.css").read_text(encoding="utf-8")
    light, dark = (dict(BACKGROUND.findall(site))[theme] for theme in ("light", "dark"))
    colours = re.findall(r"--(?:ring|halving|tree|server): (#\w{6});", style)
    assert len(colours) == 2 * len(LABELS)
    for colour in colours[: len(LABELS)]:
        assert contrast(rgb(colour), rgb(light)) >= GRAPHICS
    for colour in colours[len(LABELS) :]:
        assert contrast(rgb(colour), rgb(dark)) >= GRAPHICS

"""The alpha-beta explorer on its page: its numbers are Python's, its words are right, everyone can use it."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from site_visit import Visit

from helpers.cost.price import FORMULAS, threshold
from helpers.explorer import LABELS

PAGE = "book/wire/alpha-beta.html"
Open = Callable[..., Visit]

# Moves every slider through some of its stops; answers what was set and the seconds that came of it.
GRID = """([sliders, share]) => {
  const root = document.querySelector(".explorer"), found = [];
  const move = ([name, ...rest]) => {
    if (!name) {
      const rows = [...root.querySelectorAll("tr[data-algorithm]")].map((row) => [row.dataset.algorithm,
        [...row.querySelectorAll("[data-seconds]")].map((cell) => cell.dataset.seconds)]);
      found.push({ ...root.dataset, rows, said: root.querySelector("strong").dataset.seconds });
      return;
    }
    const input = root.querySelector(`input[name="${name}"]`);
    for (const part of share) {
      input.value = Math.round(part * input.max);
      input.dispatchEvent(new Event("input", { bubbles: true }));
      move(rest);
    }
  };
  move(sliders);
  return found;
}"""
SLIDERS = ["ranks", "message", "alpha", "bandwidth"]
# Messages from the least to the largest: the message, and the verdict in words.
VERDICTS = """root => {
  const input = root.querySelector("input[name=message]");
  return Array.from({ length: Number(input.max) + 1 }, (_, stop) => {
    input.value = stop;
    input.dispatchEvent(new Event("input"));
    const words = root.querySelector(".explorer-readout").textContent;
    return [Number(root.dataset.message), words.match(/(Latency|Bandwidth|Neither term) rules/)[1]];
  });
}"""

FONT_SIZES = "all => all.map((each) => parseFloat(getComputedStyle(each).fontSize))"
STICKS_OUT = """root => [...root.querySelectorAll("*")].filter((each) =>
  each.getBoundingClientRect().right > root.getBoundingClientRect().right + 1).map((e) => e.outerHTML)"""


def words(page: Page, index: int = 0) -> str:
    return page.locator(".explorer-readout").nth(index).inner_text().replace("\u00a0", " ")


def test_numbers_are_those_of_python(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    found = page.evaluate(GRID, [SLIDERS, [0, 0.31, 0.64, 1]])
    assert len(found) == 256
    assert any(float(at["ranks"]) % 2 for at in found), "no group that is not a power of two"
    for at in found:
        K, M, alpha, B = int(at["ranks"]), *(float(at[name]) for name in SLIDERS[1:])
        assert [name for name, _ in at["rows"]] == list(LABELS)
        for name, seconds in at["rows"]:
            formula = FORMULAS[name]
            expected = [formula(K, M, alpha, math.inf), formula(K, M, 0, B), formula(K, M, alpha, B)]
            assert [float(each) for each in seconds] == pytest.approx(expected, rel=1e-9, abs=0), (name, at)
        assert at["said"] == dict(at["rows"])[at["algorithm"]][2]


def test_start_is_exact_and_said_to_the_digit(visit: Open, site: Path) -> None:
    seen = visit((site / PAGE).as_uri())
    root = seen.page.locator(".explorer")
    start = [float(root.get_attribute(f"data-{name}")) for name in SLIDERS]
    assert start == [1024, 25 * 2**20, 20e-6, 50e9]
    assert words(seen.page) == (
        "Ring, 1,024 ranks, 25 MiB: 41.97 ms, of which 40.92 ms (97.5 %) latency and 1.05 ms bandwidth. "
        "Latency rules: the message is below M* = K·α·B = 1.02 GB. Fastest here: halving-doubling, 1.45 ms."
    )
    spoken = seen.page.locator(".explorer-plot").get_attribute("aria-label").replace("\u00a0", " ")
    assert spoken.endswith(words(seen.page))
    assert (seen.foreign, seen.complaints) == ([], [])


def test_verdict_flips_at_the_threshold(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    edge = threshold(1024, 20e-6, 50e9)
    verdicts = page.locator(".explorer").evaluate(VERDICTS)
    assert {verdict for _, verdict in verdicts} == {"Latency", "Bandwidth"}
    assert all(verdict == ("Latency" if M < edge else "Bandwidth") for M, verdict in verdicts)
    page.get_by_role("button", name="Llama 3 8B").click()
    assert "16.06 GB" in words(page) and "Bandwidth rules" in words(page)
    page.locator(".explorer select").select_option("binomial-tree-allreduce")
    assert "Binomial tree, " in words(page)
    page.get_by_role("button", name="Reset").click()
    assert words(page).startswith("Ring, 1,024 ranks, 25 MiB: 41.97 ms")


def test_keyboard_moves_and_the_plot_takes_a_pointer(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    ranks = page.get_by_role("slider", name="Ranks K")
    assert ranks.get_attribute("aria-valuetext").replace("\u00a0", " ") == "1,024 ranks"
    ranks.focus()
    for key, expected in (("ArrowRight", "1,117 ranks"), ("Home", "2 ranks"), ("End", "16,384 ranks")):
        page.keyboard.press(key)
        assert ranks.get_attribute("aria-valuetext").replace("\u00a0", " ") == expected
        assert f"Ring, {expected}, 25 MiB" in words(page)
    page.locator(".explorer-plot").click(position={"x": 65, "y": 100})
    assert float(page.locator(".explorer").get_attribute("data-message")) < 2_000


# Stops of all sliders, then: the axis of time, the words at the point, what the picture has below its frame,
# and by how much the lowest curve stays above it.
EDGES = """values => {
  const root = document.querySelector(".explorer"), plot = root.querySelector(".explorer-plot");
  for (const [name, stop] of Object.entries(values)) {
    const input = root.querySelector(`input[name="${name}"]`);
    input.value = stop === "max" ? input.max : 0;
    input.dispatchEvent(new Event("input"));
  }
  const frame = plot.querySelector("svg"), height = frame.height.baseVal.value;
  const bottom = frame.y.baseVal.value + height, end = (e) => e.getBBox().y + e.getBBox().height;
  const lowest = Math.max(...[...plot.querySelectorAll(".explorer-curve")].map(end));
  return {
    words: [...plot.querySelectorAll("text")].map((t) => t.textContent.replaceAll("\u00a0", " ")),
    below: [...plot.children].filter((e) => e.matches("line, path, circle"))
      .filter((e) => end(e) > bottom + 7.1).length, // a point on the edge sticks out by half
    empty: (bottom - lowest) / height,
  };
}"""


def test_the_axis_of_time_fits_what_networks_do_and_an_arrow_says_what_it_cuts(
    visit: Open, address: str
) -> None:
    page = visit(f"{address}/{PAGE}").page
    start = page.evaluate(EDGES, {})
    assert {"1 µs", "1 ms", "1 s", "1,000 s"} < set(start["words"])
    assert "25 MiB: 41.97 ms" in start["words"] and 0 < start["empty"] < 0.25 and start["below"] == 0
    least = page.evaluate(EDGES, {"ranks": 0, "message": 0, "alpha": 0, "bandwidth": "max"})
    assert "1 KiB: 201 ns ↓" in least["words"] and least["below"] == 0
    assert any(words.endswith("200 ns ↓") for words in least["words"])
    page.locator(".explorer select").select_option("parameter-server")
    most = page.evaluate(EDGES, {"ranks": "max", "message": "max", "alpha": "max", "bandwidth": 0})
    assert any(words.startswith("64 GB: ") and words.endswith(" ↑") for words in most["words"])


def test_the_server_that_wins_with_small_messages_is_explained(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    page.get_by_role("button", name="1 KiB").click()
    assert "Fastest here: parameter server" in words(page)
    row = page.locator("tr[data-algorithm=parameter-server] th")
    assert row.inner_text().strip() == "Parameter server*"
    note = page.locator(".explorer-note")
    assert note.is_visible() and note.inner_text().startswith("* The server’s messages arrive together")


def test_two_explorers_leave_each_other_alone(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    page.evaluate("""() => {
      const box = document.querySelector('[data-widget="explorer"]');
      box.after(box.cloneNode());
    }""")
    page.add_script_tag(url=f"{address}/_static/explorer.js")
    page.get_by_role("slider", name="Message M").nth(1).press("End")
    assert "64 GB" in words(page, 1) and "25 MiB" in words(page, 0)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_explorer_is_accessible_and_fits(visit: Open, site: Path, scheme: str, width: int) -> None:
    page = visit((site / PAGE).as_uri(), scheme=scheme, width=width).page
    found = Axe().run(page, context={"include": [[".explorer"]]}).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:160]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
    root = page.locator(".explorer")
    assert root.evaluate(STICKS_OUT) == []
    heights = root.locator("button, select, input").evaluate_all("all => all.map((e) => e.offsetHeight)")
    assert min(heights) >= 40, "too small for a finger"
    sizes = root.locator("text, td").evaluate_all(FONT_SIZES)
    assert min(sizes) >= 10.5, "too small to read"

"""Every page: nothing from elsewhere, no complaint, light, readable on a phone, accessible, and named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from site_visit import Visit

from helpers.figure_style import DPI, FONT_SIZE

# Compressed bytes of a first view without images. The aim was 350 KB; the pages are well below, and
# this is where it starts to hurt: one more icon font or math script would pass 200.
BUDGET = 200_000
UNREACHABLE = """all => all.filter((box) => box.scrollWidth > box.clientWidth + 1
  && !(box.tabIndex === 0 && box.getAttribute("aria-label"))).map((box) => box.textContent)"""
NOT_DRAWN = """all => all.filter((formula) => {
  const box = formula.getBoundingClientRect();
  const shut = formula.closest("details:not([open]), .toggle-hidden");
  return !shut && !(box.width > 3 && box.height > 5);
}).map((formula) => formula.getAttribute("alttext"))"""
SMALLEST = 8  # pixels that a word in a figure has on a phone

Open = Callable[..., Visit]


def test_page_asks_nobody_else(visit: Open, address: str, page_path: str) -> None:
    seen = visit(f"{address}/{page_path}", settle=True)
    assert seen.foreign == []
    assert seen.complaints == []
    weights = seen.weights()
    assert sum(weights.values()) <= BUDGET, sorted(weights.items(), key=lambda item: -item[1])


def test_page_works_from_a_folder(visit: Open, site: Path, page_path: str) -> None:
    seen = visit((site / page_path).as_uri())
    assert seen.foreign == []
    assert seen.complaints == []
    assert seen.page.locator("main h1:visible").count() == 1


# The ledger's rows are all alike, and axe needs a tenth of a second for each: the first ones, which
# hold every verdict and both kinds of status, stand for the rest.
ALIKE = {"exclude": [["#ledger > li:nth-child(n + 36)"]]}


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 360)])
def test_page_is_accessible(visit: Open, address: str, page_path: str, scheme: str, width: int) -> None:
    page = visit(f"{address}/{page_path}", scheme=scheme, width=width).page
    assert page.locator("html").get_attribute("data-theme") == scheme
    found = Axe().run(page, context=ALIKE).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:160]) for each in found] == []


def test_page_fits_a_phone(visit: Open, address: str, page_path: str) -> None:
    page = visit(f"{address}/{page_path}", width=360).page
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    boxes = page.locator(".pst-scrollable-table-container, .math-scroll, .bd-article pre")
    assert boxes.evaluate_all(UNREACHABLE) == [], "a box that scrolls must take the keyboard and have a name"
    scales = page.locator(".cell_output img").evaluate_all(
        "all => all.map(i => i.clientWidth / i.naturalWidth)"
    )
    assert all(scale * FONT_SIZE * DPI / 72 >= SMALLEST for scale in scales), (
        "words in a figure are too small"
    )
    cut = "all => all.filter(pre => pre.scrollWidth > pre.clientWidth + 1).map(pre => pre.textContent)"
    assert page.locator(".cell_output pre:visible").evaluate_all(cut) == [], "an output is cut off"


def test_mathematics_is_drawn_by_the_browser(visit: Open, address: str, site: Path) -> None:
    with_math = [path for path in site.glob("book/**/*.html") if "<math " in path.read_text(encoding="utf-8")]
    assert with_math, "no page has a formula"
    for path in with_math:
        page = visit(f"{address}/{path.relative_to(site).as_posix()}").page
        assert page.locator("article math").evaluate_all(NOT_DRAWN) == []


def test_front_door_leads_to_the_book(visit: Open, address: str) -> None:
    seen = visit(f"{address}/")
    seen.page.wait_for_url("**/book/index.html")
    assert seen.complaints == []

"""Every page: nothing from elsewhere, no complaint, light, readable on a phone, accessible, and named."""

from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from site_visit import Visit

# Compressed bytes of a first view without images. The aim was 350 KB; the pages are well below, and
# this is where it starts to hurt: one more icon font or math script would pass 200.
BUDGET = 200_000

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
    boxes = page.locator(".pst-scrollable-table-container, .math-scroll, .bd-article pre").all()
    for box in boxes:
        if box.evaluate("box => box.scrollWidth > box.clientWidth + 1"):
            assert box.get_attribute("tabindex") == "0", "a box that scrolls must take the keyboard"
            assert box.get_attribute("aria-label")


def test_keyboard_starts_at_the_skip_link(visit: Open, address: str) -> None:
    page = visit(f"{address}/book/index.html").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main-content"


def test_mathematics_is_drawn_by_the_browser(visit: Open, address: str, site: Path) -> None:
    with_math = [path for path in site.glob("book/**/*.html") if "<math " in path.read_text(encoding="utf-8")]
    assert with_math, "no page has a formula"
    for path in with_math:
        page = visit(f"{address}/{path.relative_to(site).as_posix()}").page
        for formula in page.locator("article math").all():
            box = formula.evaluate("formula => formula.getBoundingClientRect().toJSON()")
            shut = formula.evaluate("formula => !!formula.closest('details:not([open]), .toggle-hidden')")
            assert shut or (box["width"] > 3 and box["height"] > 5), formula.get_attribute("alttext")


@pytest.mark.parametrize("base", ["http", "file"])
def test_search_finds_the_chapter(visit: Open, address: str, site: Path, base: str) -> None:
    start = address if base == "http" else site.as_uri()
    seen = visit(f"{start}/search.html?q=tokens")
    seen.page.wait_for_selector("#search-results a[href*='unequal-tokens']", timeout=10_000)
    assert seen.complaints == []


def test_front_door_leads_to_the_book(visit: Open, address: str) -> None:
    seen = visit(f"{address}/")
    seen.page.wait_for_url("**/book/index.html")
    assert seen.complaints == []

"""Every page: nothing from elsewhere, no complaint, light, readable on a phone, accessible, and named."""

from collections.abc import Callable
from pathlib import Path

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from site_visit import Visit

from helpers.figures.style import DPI, FONT_SIZE

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


# axe needs a tenth of a second for each of the ledger's rows, and for a line of code. The first rows hold
# every verdict and both kinds of status, one chapter's code every colour of a word: they stand for the rest.
LIKE_OTHERS = [["#ledger > li:nth-child(n + 36)"]]
CODE, ALL_OF_IT = [[".highlight pre"]], "book/idea/unequal-tokens.html"


def assert_accessible(page: Page, page_path: str) -> None:
    context = {"exclude": LIKE_OTHERS if page_path == ALL_OF_IT else LIKE_OTHERS + CODE}
    found = Axe().run(page, context=context).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:160]) for each in found] == []


def test_page_on_a_desk(visit: Open, address: str, page_path: str) -> None:
    """From a server, light: nothing from elsewhere, no complaint, few bytes, accessible."""
    seen = visit(f"{address}/{page_path}", settle=True)
    assert seen.foreign == []
    assert seen.complaints == []
    weights = seen.weights()
    assert sum(weights.values()) <= BUDGET, sorted(weights.items(), key=lambda item: -item[1])
    assert seen.page.locator("html").get_attribute("data-theme") == "light"
    assert_accessible(seen.page, page_path)


def test_page_on_a_phone(visit: Open, site: Path, page_path: str) -> None:
    """From a folder, dark, 360 pixels: the same, and all of it can be read."""
    seen = visit((site / page_path).as_uri(), scheme="dark", width=360)
    page = seen.page
    assert seen.foreign == []
    assert seen.complaints == []
    assert page.locator("main h1:visible").count() == 1
    assert page.locator("html").get_attribute("data-theme") == "dark"
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
    assert page.locator("article math").evaluate_all(NOT_DRAWN) == [], "the browser has to draw formulas"
    assert_accessible(page, page_path)


def test_front_door_leads_to_the_book(visit: Open, address: str) -> None:
    seen = visit(f"{address}/")
    seen.page.wait_for_url("**/book/index.html")
    assert seen.complaints == []

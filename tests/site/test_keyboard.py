"""Whoever has no mouse reaches everything, sees where they are, and can open what is folded."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page
from site_visit import Visit

Open = Callable[..., Visit]

# Rows and entries are all alike: the first ones stand for the rest, or tabbing would take minutes.
MORE = 40  # stops that browsers add by themselves: boxes that scroll
FEWER = "#ledger > li:nth-child(n + 6), .citation-list > div:nth-child(n + 6) { display: none !important }"

# Whatever takes part in the tab order, and a note of each stop: was there a ring, could it be seen?
WATCH = """() => {
  const all = document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']");
  const stops = [...all].filter((e) =>
    e.tabIndex >= 0 && !e.disabled && e.checkVisibility({ visibilityProperty: true }));
  window.seen = {};
  addEventListener("focusin", ({ target }) => {
    const style = getComputedStyle(target);
    const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    window.seen[stops.indexOf(target)] = ring && parseFloat(style.opacity) > 0.9;
  });
  return stops.map((e) => e.outerHTML.slice(0, 120));
}"""


def tab_through(page: Page) -> None:
    page.add_style_tag(content=FEWER)
    stops = page.evaluate(WATCH)
    for _ in range(len(stops) + MORE):
        page.keyboard.press("Tab")
    seen = page.evaluate("seen")
    assert [stop for i, stop in enumerate(stops) if str(i) not in seen] == []
    assert [stop for i, stop in enumerate(stops) if not seen[str(i)]] == []


def test_every_control_is_reached_and_marked(visit: Open, address: str, page_path: str) -> None:
    tab_through(visit(f"{address}/{page_path}").page)


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark")])
def test_on_a_phone_from_a_folder_as_well(visit: Open, site: Path, width: int, scheme: str) -> None:
    page = visit((site / "book/idea/unequal-tokens.html").as_uri(), width=width, scheme=scheme).page
    tab_through(page)


def test_the_first_stop_is_the_skip_link(visit: Open, address: str) -> None:
    page = visit(f"{address}/book/index.html").page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#main-content"


def test_folds_open_by_keyboard_and_without_scripts(visit: Open, address: str) -> None:
    page = visit(f"{address}/book/idea/unequal-tokens.html").page
    for kind in ("details.fold", "details.sd-dropdown"):
        fold = page.locator(kind).first
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert fold.get_attribute("open") is not None
        page.keyboard.press("Enter")
        assert fold.get_attribute("open") is None
    still = visit(f"{address}/book/idea/unequal-tokens.html", javascript=False).page
    still.locator("details.fold summary").first.click()
    assert still.locator("details.fold").first.get_attribute("open") is not None


def test_paper_shows_everything(visit: Open, address: str) -> None:
    """Printing opens the folds, drops what is for finding one's way, and cuts no line of code."""
    page = visit(f"{address}/book/idea/unequal-tokens.html", width=800, scheme="dark").page
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator(".bd-article details:not([open])").count() == 0
    for hidden in (".bd-sidebar-primary", ".bd-header-article", ".prev-next-footer", ".copybtn"):
        assert page.locator(hidden).locator("visible=true").count() == 0, hidden
    assert page.locator("h1").locator("visible=true").count() == 1
    cut = "all => all.filter(pre => pre.scrollWidth > pre.clientWidth + 1).map(pre => pre.textContent)"
    assert page.locator(".bd-article pre").evaluate_all(cut) == []
    assert page.locator("body").evaluate("body => getComputedStyle(body).color") == "rgb(0, 0, 0)"
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".bd-article details[open]").count() == 0

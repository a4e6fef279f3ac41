"""The player of the ring: it plays by itself, obeys buttons and keys, and asks nobody for anything."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect
from site_visit import Visit

Open = Callable[..., Visit]
PAGE = "book/wire/ring-allreduce.html"

# The seven states of the ring of four, a row a rank, as the figure above the player has them.
STATES = [
    "1111 1111 1111 1111",
    "1112 2111 1211 1121",
    "1132 2113 3211 1321",
    "1432 2143 3214 4321",
    "4432 2443 3244 4324",
    "4434 4443 3444 4344",
    "4444 4444 4444 4444",
]
WATCH = """() => { window.long = [];
  new PerformanceObserver((list) => long.push(...list.getEntries().map((entry) => entry.duration)))
    .observe({ type: "longtask" }) }"""
SIZES = "all => all.map((t) => parseFloat(getComputedStyle(t).fontSize) * t.getScreenCTM().a)"


def player_of(page: Page) -> Locator:
    return page.locator(".player").first


def button(page: Page, name: str) -> Locator:
    return player_of(page).get_by_role("button", name=name)


def shows(page: Page, state: int) -> None:
    """The counts of `state`, in the picture, in what is read aloud, on the slider and in the table."""
    player, rows = player_of(page), STATES[state].split()
    expect(player.get_by_role("slider")).to_have_value(str(state))
    assert "".join(player.locator(".player-cell text").all_text_contents()) == "".join(rows)
    said = "; ".join(f"rank {rank}: {' '.join(row)}" for rank, row in enumerate(rows))
    expect(player.get_by_role("img")).to_have_attribute("aria-label", re.compile(re.escape(f"{said}.") + "$"))
    table = player.locator("tbody td").all_text_contents()
    assert "".join(cell.split(":")[0] for cell in table) == "".join(rows)
    assert player.locator(".player-full").count() == "".join(rows).count("4")


@pytest.mark.parametrize("from_folder", (False, True))
def test_it_plays_to_the_end_by_itself(visit: Open, address: str, site: Path, from_folder: bool) -> None:
    seen = visit((site / PAGE).as_uri() if from_folder else f"{address}/{PAGE}", settle=True)
    page = seen.page
    shows(page, 0)
    player_of(page).get_by_role("slider").fill("5" if from_folder else "4")
    button(page, "Play").click()
    expect(player_of(page).locator(".player-chip")).to_have_count(4)
    expect(button(page, "Pause")).to_be_visible()
    expect(button(page, "Play")).to_be_visible(timeout=15_000)
    shows(page, 6)
    expect(player_of(page).locator(".player-head")).to_have_text(
        "Step 6 of 6 · all-gather each rank has sent 3/2 gradients"
    )
    button(page, "Play").click()  # once more, from the start
    expect(player_of(page).locator(".player-words")).to_contain_text("Step 1 of 6, reduce-scatter: rank 0")
    button(page, "Pause").click()
    shows(page, 0)
    assert (seen.foreign, seen.complaints) == ([], [])


def test_buttons_keys_and_slider_lead_to_every_state(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    for _ in range(2):  # a press in the middle of a step finishes it first
        button(page, "One step on").click()
    shows(page, 1)
    shows(page, 2)
    for key, state in (("ArrowLeft", 1), ("End", 6), ("ArrowLeft", 5), ("Home", 0), ("ArrowRight", 1)):
        page.keyboard.press(key)
        shows(page, state)
    slider = player_of(page).get_by_role("slider")
    for state in range(7):
        slider.fill(str(state))
        shows(page, state)
    expect(slider).to_have_attribute("aria-valuetext", "after step 6 of 6, all-gather")
    slider.press("ArrowLeft")
    shows(page, 5)
    slider.press("Space")
    expect(button(page, "Pause")).to_be_visible()
    button(page, "One step back").click()  # stops, back where the step began
    expect(button(page, "Play")).to_be_visible()
    shows(page, 5)
    button(page, "Back to the start").click()
    shows(page, 0)


def test_eight_ranks_play_without_a_long_task(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", width=360, settle=True).page
    page.evaluate(WATCH)
    player = player_of(page)
    player.get_by_label("Number of ranks").select_option("8")
    button(page, "Play").click()
    page.wait_for_timeout(2_000)
    assert page.evaluate("long") == []
    assert player.locator(".player-chip").count() == 8
    player.get_by_role("slider").fill("14")
    assert player.locator(".player-cell text").all_text_contents() == ["8"] * 64
    assert min(player.locator("svg text").evaluate_all(SIZES)) >= 10.5
    boxes = [control.bounding_box() for control in player.locator("button, select, input").all()]
    assert min(box["height"] for box in boxes) >= 40
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_reduced_motion_moves_nothing(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    page.emulate_media(reduced_motion="reduce")
    button(page, "One step on").click()
    shows(page, 1)
    button(page, "Play").click()
    chip = player_of(page).locator(".player-chip").first
    before = chip.bounding_box()
    page.wait_for_timeout(300)
    assert chip.bounding_box() == before
    expect(player_of(page).get_by_role("slider")).to_have_value("2")


def test_it_is_accessible_with_its_table_open(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", width=360).page
    player_of(page).get_by_text("This state as a table").click()
    expect(player_of(page).locator("table caption")).to_be_visible()
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        found = Axe().run(page, context={"include": [[".player"]]}).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:160]) for each in found] == [], theme

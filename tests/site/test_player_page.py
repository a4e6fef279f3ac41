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
# While it plays: the deepest that a chip lies over a name or a box, in units of the picture, frame by frame.
OVERLAP = """() => new Promise((resolve) => {
  const root = document.querySelector(".player"), end = performance.now() + 1_000;
  let deepest = 0, seen = 0;
  const look = () => {
    const boxes = [...root.querySelectorAll(".player-name, .player-cell")];
    for (const chip of root.querySelectorAll(".player-chip")) {
      const a = chip.getBoundingClientRect();
      seen += 1;
      for (const b of boxes.map((e) => e.getBoundingClientRect())) deepest = Math.max(deepest, Math.min(
        a.right - b.left, b.right - a.left, a.bottom - b.top, b.bottom - a.top));
    }
    performance.now() < end ? requestAnimationFrame(look) : resolve([seen, deepest]);
  };
  look();
})"""
# What the words in the middle say, and which of them lie over a card.
MIDDLE = """root => {
  const words = [...root.querySelectorAll(".player-phase, .player-how")].filter((e) => e.textContent);
  const cards = [...root.querySelectorAll(".player-card")].map((e) => e.getBoundingClientRect());
  const over = (a) => cards.some((b) =>
    a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top < a.bottom - 3);
  return [words.map((e) => e.textContent).join(" ").replace(/  +/g, " ").trim(),
    words.filter((e) => over(e.getBoundingClientRect())).map((e) => e.textContent)];
}"""
# What a screen reader is told from here on: the sentence, each time it is written while it is live.
LISTEN = """root => {
  const words = root.querySelector(".player-words");
  window.told = [];
  new MutationObserver(() => words.ariaLive === "off" || told.push(words.textContent))
    .observe(words, { childList: true, subtree: true });
}"""
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
    expect(player_of(page).locator(".player-head")).to_have_text(
        "Step 1 of 6 · reduce-scatter before it, nothing was sent"
    )
    player_of(page).get_by_role("slider").fill("2")
    button(page, "Play").click()
    expect(player_of(page).locator(".player-head")).to_have_text(
        "Step 3 of 6 · reduce-scatter before it, each rank sent 1/2 of a gradient"
    )
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


@pytest.mark.alone
def test_eight_ranks_play_without_a_long_task(visit: Open, address: str) -> None:
    """The best of three tries: a task is also long when somebody else takes the processor."""
    longest = []
    for _ in range(3):
        page = visit(f"{address}/{PAGE}", width=360, settle=True).page
        page.evaluate(WATCH)
        player = player_of(page)
        player.get_by_label("Number of ranks").select_option("8")
        button(page, "Play").click()
        page.wait_for_timeout(2_000)
        longest.append(page.evaluate("long"))
        if longest[-1] == []:
            return
    pytest.fail(f"tasks of {longest} ms in three tries")


def test_chips_of_eight_ranks_leave_names_and_numbers_alone(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", width=360, settle=True).page
    player_of(page).get_by_label("Number of ranks").select_option("8")
    button(page, "Play").click()
    seen, deepest = page.evaluate(OVERLAP)
    assert seen >= 8 and deepest <= 3
    expect(player_of(page).locator(".player-chip").first).to_have_text(re.compile(r"^\d \+\d$"))


def test_the_middle_says_what_a_chip_means_and_has_room(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", width=360).page
    player = player_of(page)
    for ranks in range(2, 9):
        player.get_by_label("Number of ranks").select_option(str(ranks))
        chip = "chunk 0 +1" if ranks < 6 else "0 +1"
        assert player.evaluate(MIDDLE) == ["", []]
        player.get_by_role("slider").fill("1")
        adds = f"reduce-scatter + adds {chip}: chunk 0 with 1 rank in it, added"
        assert player.evaluate(MIDDLE) == [adds, []]
        player.get_by_role("slider").fill(str(ranks))
        words, over = player.evaluate(MIDDLE)
        assert words.startswith("all-gather = overwrites") and over == []
        assert words.endswith(f"={ranks}: chunk 1 with {ranks} ranks in it, copied")


def test_a_screen_reader_is_told_once(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}").page
    player = player_of(page)
    expect(player.locator(".player-words")).to_have_text(re.compile("^Each card is a rank, each box a chunk"))
    player.get_by_role("slider").fill("3")
    player.evaluate(LISTEN)
    button(page, "Play").click()
    expect(button(page, "Pause")).to_be_visible()
    expect(player.get_by_role("slider")).to_have_value("4")
    expect(player.locator(".player-words")).to_contain_text("Step 5 of 6")
    assert page.evaluate("told") == []
    button(page, "Pause").click()
    expect(button(page, "Play")).to_be_visible()
    button(page, "Play").click()
    expect(button(page, "Play")).to_be_visible(timeout=15_000)
    paused, ended = page.evaluate("told")
    assert paused.startswith("Step 5 of 6") and ended.startswith("Step 6 of 6, all-gather: rank 0 sends")
    assert ended.endswith("Now every chunk is complete.")
    button(page, "Back to the start").click()
    button(page, "One step on").click()
    expect(player.get_by_role("slider")).to_have_value("1")
    expect(player.locator(".player-chip")).to_have_count(0)
    assert [words[:11] for words in page.evaluate("told")[2:]] == ["Each card i", "Step 1 of 6"]


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
    expect(player_of(page).locator(".player-chip")).to_have_count(0)  # gone while the next step waits
    button(page, "Pause").click()
    player_of(page).get_by_role("slider").fill("4")
    expect(player_of(page).locator(".player-chip")).to_have_count(0)


def test_it_is_accessible_with_its_table_open(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", width=360).page
    player_of(page).get_by_text("This state as a table").click()
    expect(player_of(page).locator("table caption")).to_be_visible()
    for theme in ("light", "dark"):
        page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)
        found = Axe().run(page, context={"include": [[".player"]]}).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:160]) for each in found] == [], theme


def test_eight_ranks_can_be_read_on_a_phone(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", width=360, settle=True).page
    player = player_of(page)
    player.get_by_label("Number of ranks").select_option("8")
    button(page, "Play").click()
    page.wait_for_timeout(1_000)
    assert player.locator(".player-chip").count() == 8
    player.get_by_role("slider").fill("14")
    assert player.locator(".player-cell text").all_text_contents() == ["8"] * 64
    assert min(player.locator("svg text").evaluate_all(SIZES)) >= 10.5
    boxes = [control.bounding_box() for control in player.locator("button, select, input").all()]
    assert min(box["height"] for box in boxes) >= 40
    assert page.evaluate("document.documentElement.scrollWidth") == 360

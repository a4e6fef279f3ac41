"""The ledger's page: rows, counts, filters; and the ways between a claim and its proof."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page
from site_build import pages
from site_visit import Visit

from helpers.ledger.claims import STATUSES, VERDICTS, ledger, proofs, status
from helpers.ledger.references import parts

PAGE = "book/back/claims.html"
Open = Callable[..., Visit]


@pytest.fixture
def page(visit: Open, address: str) -> Page:
    return visit(f"{address}/{PAGE}").page


def shown(page: Page) -> int:
    return page.locator("#ledger > li:visible").count()


def test_every_row_is_there_with_its_parts(page: Page) -> None:
    rows = ledger()
    assert page.locator("#ledger > li").evaluate_all("all => all.map(row => row.id)") == [
        f"ledger-{row.id.lower()}" for row in rows
    ]
    texts = page.locator("#ledger > li").all_text_contents()
    for row, text in zip(rows, texts, strict=True):
        for part in (row.id, row.claim, row.verdict, row.correct_statement, row.primary_source, row.kind):
            assert part in text, (row.id, part)


@pytest.mark.parametrize("path", [PAGE, "book/index.html"])
def test_counts_are_those_of_the_table(visit: Open, address: str, path: str) -> None:
    found = proofs()
    count = Counter((row.verdict, status(row, found)) for row in ledger())
    rows = visit(f"{address}/{path}").page.locator(".ledger-summary tbody tr").all()
    for verdict, row in zip(VERDICTS, rows, strict=False):  # the last row holds the sums
        numbers = [count[verdict, state] for state in STATUSES]
        assert row.locator("th").inner_text() == verdict
        assert [int(cell) for cell in row.locator("td").all_text_contents()] == [*numbers, sum(numbers)]


@pytest.mark.parametrize(
    ("label", "value", "fits"),
    [
        ("Verdict", "wrong", lambda row: row.verdict == "wrong"),
        ("Kind", "historical", lambda row: row.kind == "historical"),
        ("Chapter", "unequal-tokens", lambda row: row.chapter == "unequal-tokens"),
        ("Place in the sources", "B", lambda row: row.source == "B"),
        ("Place in the sources", "A 7.1|7.1.2", lambda row: row.section == "7.1.2"),
        ("Status", "proven", lambda row: status(row, proofs()) == "proven"),
    ],
)
def test_filter_shows_what_fits(page: Page, label: str, value: str, fits: Callable) -> None:
    expected = sum(map(fits, ledger()))
    assert 0 < expected < len(ledger())
    page.get_by_label(label, exact=True).select_option(value)
    assert shown(page) == expected
    assert page.get_by_role("status").inner_text() == f"{expected} of {len(ledger())} claims shown"
    page.get_by_role("button", name="Show all").click()
    page.wait_for_function(
        f"document.querySelector('.ledger-shown').textContent.startsWith('{len(ledger())} ')"
    )
    assert shown(page) == len(ledger())


def test_words_and_choices_work_by_keyboard_together(page: Page) -> None:
    page.get_by_label("Words").focus()
    page.keyboard.type("RING bidirectional")
    assert page.locator("#ledger > li:visible").first.get_attribute("id") == "ledger-b-12"
    page.get_by_label("Verdict").focus()
    page.keyboard.type("wrong")
    assert shown(page) == 0
    assert page.get_by_role("status").inner_text().startswith("0 of")


def test_link_to_a_hidden_row_shows_it(page: Page) -> None:
    page.get_by_label("Verdict").select_option("wrong")
    assert page.locator("#ledger-a-01").is_hidden()
    page.evaluate("location.hash = 'ledger-a-01'")
    page.wait_for_selector("#ledger-a-01:visible")


def test_without_javascript_every_row_shows(visit: Open, address: str) -> None:
    page = visit(f"{address}/{PAGE}", javascript=False).page
    assert shown(page) == len(ledger())
    assert page.locator("#ledger-filters").is_hidden()


def test_filters_work_from_a_folder(visit: Open, site: Path) -> None:
    page = visit((site / PAGE).as_uri()).page
    page.get_by_label("Verdict").select_option("wrong")
    assert shown(page) == sum(row.verdict == "wrong" for row in ledger())


def test_claim_and_proof_lead_to_each_other(visit: Open, address: str) -> None:
    found = proofs()
    proven = [row for row in ledger() if status(row, found) == "proven"]
    page = visit(f"{address}/{PAGE}").page
    links = page.locator("#ledger a").evaluate_all(
        "all => all.map(a => a.pathname.split('/').pop() + a.hash)"
    )
    for row in proven:
        assert f"{row.chapter}.html#{row.id.lower()}" in links
    first = proven[0]
    page.locator(f"#ledger-{first.id.lower()} a[href$='{first.chapter}.html#{first.id.lower()}']").click()
    page.wait_for_url(f"**/{first.chapter}.html#{first.id.lower()}")
    page.get_by_role("link", name=f"Claim {first.id} in the ledger").first.click()
    page.wait_for_url(f"**/claims.html#ledger-{first.id.lower()}")


def test_each_proof_has_one_link_to_its_row(visit: Open, address: str) -> None:
    found = proofs()
    proven = [row for row in ledger() if status(row, found) == "proven"]
    for chapter in {row.chapter for row in proven}:
        (path,) = (path for path in pages() if path.endswith(f"/{chapter}.html"))
        page = visit(f"{address}/{path}", javascript=False).page
        links = page.locator(".claim-margin a").evaluate_all("all => all.map(a => [a.hash, a.ariaLabel])")
        for row in proven:
            link = [f"#ledger-{row.id.lower()}", f"Claim {row.id} in the ledger"]
            assert links.count(link) == (row.chapter == chapter), row.id


def test_primary_sources_lead_to_their_entries(page: Page) -> None:
    links = page.locator("#ledger > li").evaluate_all(
        "all => all.map(row => [...row.querySelectorAll(`a[href*='references.html#ref-']`)].map(a => a.hash))"
    )
    for row, found in zip(ledger(), links, strict=True):
        assert found == [f"#ref-{part.key}" for part in parts(row.primary_source)], row.id
    page.locator("#ledger-a-01 a[href$='#ref-li2020ddp']").click()
    page.wait_for_url("**/references.html#ref-li2020ddp")
    page.locator("#ref-li2020ddp a[href$='#ledger-a-01']").click()
    page.wait_for_url("**/claims.html#ledger-a-01")


def test_proofs_and_breaks_say_what_they_are(visit: Open, address: str) -> None:
    page = visit(f"{address}/book/idea/unequal-tokens.html").page
    assert page.locator(".tag_claim").count() and page.locator(".tag_break").count()
    for cell in page.locator(".tag_claim").all():
        assert cell.locator(".proof-label").count() == 1
    for cell in page.locator(".tag_break").all():
        assert cell.locator(".break-label").text_content().startswith("Breaks as it should")
        error = cell.locator(".traceback pre").text_content().strip()
        assert error.startswith("AssertionError") and "\n" not in error

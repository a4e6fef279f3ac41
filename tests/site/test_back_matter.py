"""The back matter: references say how they were checked, the glossary speaks both languages, links arrive."""

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from site_visit import Visit

from helpers.ledger.references import references
from helpers.ledger.terms import terms

Open = Callable[..., Visit]
WORDS = {"checked": "Checked: ", "unchecked": "Not checked: "}


def test_every_reference_says_how_it_was_checked(visit: Open, address: str) -> None:
    page = visit(f"{address}/book/back/references.html", javascript=False).page
    entries = page.locator("div.citation").all()
    assert {entry.get_attribute("id") for entry in entries} == {f"ref-{key}" for key in references()}
    for entry in entries:
        known = references()[(entry.get_attribute("id") or "").removeprefix("ref-")]
        assert entry.locator(".label").text_content() == f"[{known.key}]"
        note = entry.locator(".ref-note").text_content() or ""
        assert note.startswith(WORDS[known.state] + known.how)
    number = Counter(entry.state for entry in references().values())
    sentence = (
        f"Of {len(references())} entries {number['checked']} are checked and {number['unchecked']} are not"
    )
    assert sentence in page.locator("article").inner_text().replace("\n", " ")


def test_glossary_terms_have_addresses_and_chinese(visit: Open, address: str) -> None:
    page = visit(f"{address}/book/back/glossary.html").page
    names = page.locator("dl.glossary > dt").evaluate_all("all => all.map(dt => [dt.id, dt.firstChild.data])")
    assert len(names) >= 80
    assert all(id_.startswith("term-") for id_, _ in names)
    known = {term.english.lower(): term for term in terms()}
    found = page.locator("dl.glossary > dd").evaluate_all(
        "all => all.map(dd => [...dd.querySelectorAll('[lang]')].map(span => [span.lang, span.textContent]))"
    )
    for (_, name), spans in zip(names, found, strict=True):
        term = known.get(name.strip().lower())
        if term is None:
            assert spans == [], name
        else:
            assert {words for _, words in spans} == {term.simplified, term.traditional} - {term.english}, name
            assert all(tag in ("zh-Hans", "zh-Hant") for tag, _ in spans)


def test_citations_in_chapters_arrive(site: Path) -> None:
    """{cite:p} and {term} roles become links into the back matter; test_markup.py checks their targets."""
    pages = [path.read_text(encoding="utf-8") for path in site.glob("book/**/*.html")]
    cited = {key for page in pages for key in re.findall(r'references\.html#ref-([\w-]+)"', page)}
    assert cited == set(references()), "an entry that nothing links to, or a link to none"

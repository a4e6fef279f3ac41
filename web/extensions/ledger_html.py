"""The HTML of the ledger: rows, filters, counts. It decides nothing, it only writes.

Without JavaScript every row shows and the filters stay hidden; web/ledger.js brings them to life.
A row is one list item: columns on a wide screen, a card on a phone (web/ledger.css). The line breaks
matter: Sphinx's search quotes a page's text without its tags, and would glue words together.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from helpers.ledger.claims import CHAPTERS, KINDS, STATUSES, VERDICTS, Row
from helpers.ledger.references import Part
from helpers.ledger.terms import Term

SOURCE_NAMES = {"A 7.1": "A, section 7.1", "B": "B, the article"}
STATUS_NAMES = {"proven": "proven", "told": "told", "open": "open"}


class Entry(NamedTuple):
    """A row with what the page adds to it: the status, the ways to the proof and the sources, the terms."""

    row: Row
    status: str
    proof_url: str
    proof_title: str
    sources: tuple[tuple[Part, str], ...]
    terms: tuple[Term, ...]


def anchor(id_: str) -> str:
    """The id that the row has in the page: `A-27` is at `#ledger-a-27`."""
    return f"ledger-{id_.lower()}"


def counts(rows: Iterable[tuple[Row, str]]) -> dict[str, int]:
    """How many rows there are in all, by status and by verdict."""
    number = dict.fromkeys(("rows", *STATUSES, *VERDICTS), 0)
    for row, status in rows:
        for key in ("rows", status, row.verdict):
            number[key] += 1
    return number


def summary(rows: Sequence[tuple[Row, str]]) -> str:
    """A table of verdicts against statuses with the sums."""
    head = "".join(f'<th scope="col">{name}</th>' for name in (*STATUSES, "all"))
    lines = []
    for verdict in (*VERDICTS, "all"):
        states = [state for row, state in rows if verdict in (row.verdict, "all")]
        cells = [states.count(state) for state in STATUSES] + [len(states)]
        numbers = "".join(f"<td>{number}</td>" for number in cells)
        lines.append(f'<tr><th scope="row">{verdict}</th>{numbers}</tr>')
    return (
        '<table class="ledger-summary"><caption>Claims by verdict and status</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def table(entries: Sequence[Entry]) -> str:
    """The filters and all rows."""
    items = "\n".join(_item(entry) for entry in entries)
    return f'{_filters(entries)}<ul class="ledger" id="ledger">\n{items}\n</ul>'


def _filters(entries: Sequence[Entry]) -> str:
    used = {entry.row.chapter for entry in entries}
    fields = "\n".join(
        [
            _select("verdict", "Verdict", VERDICTS),
            _select("status", "Status", STATUSES),
            _select("kind", "Kind", KINDS),
            _select("chapter", "Chapter", [name for name in CHAPTERS if name in used]),
            _place(entries),
            _field("words", "Words", '<input type="search" name="words" id="filter-words">'),
        ]
    )
    return (
        '<form class="ledger-filters" id="ledger-filters" aria-label="Filter the claims" hidden>'
        f"{fields}"
        '<button type="reset" class="ledger-reset">Show all</button>'
        f'<p class="ledger-shown" role="status">{len(entries)} of {len(entries)} claims shown</p></form>'
    )


def _select(name: str, label: str, values: Sequence[str]) -> str:
    options = "\n".join(f"<option>{escape(value)}</option>" for value in values)
    return _choice(name, label, options)


def _choice(name: str, label: str, options: str) -> str:
    first = '<option value="">any</option>\n'
    return _field(name, label, f'<select name="{name}" id="filter-{name}">{first}{options}</select>')


def _field(name: str, label: str, control: str) -> str:
    return f'<p><label for="filter-{name}">{label}</label>{control}</p>'


def _place(entries: Sequence[Entry]) -> str:
    """Sources and their sections, in the order in which the sources have them."""
    groups = []
    for source, name in SOURCE_NAMES.items():
        sections = dict.fromkeys(e.row.section for e in entries if e.row.source == source)
        options = "\n".join(
            f'<option value="{escape(f"{source}|{section}")}">{escape(section)}</option>'
            for section in sections
        )
        whole = f'<option value="{source}">all of {name}</option>\n'
        groups.append(f'<optgroup label="{name}">{whole}{options}</optgroup>')
    return _choice("place", "Place in the sources", "".join(groups))


def _item(entry: Entry) -> str:
    row = entry.row
    data = {
        "verdict": row.verdict,
        "status": entry.status,
        "kind": row.kind,
        "chapter": row.chapter,
        "place": f"{row.source}|{row.section}",
    }
    attributes = " ".join(f'data-{name}="{escape(value)}"' for name, value in data.items())
    return (
        f'<li id="{anchor(row.id)}" {attributes}>'
        f'<p class="ledger-head"><a href="#{anchor(row.id)}" aria-label="Link to claim {row.id}">{row.id}</a>'
        f'\n<span class="ledger-verdict">{row.verdict}</span>\n'
        f'<span class="ledger-status">{STATUS_NAMES[entry.status]}</span></p>\n'
        f'<p class="ledger-claim">{escape(row.claim)}</p>\n'
        f'<p class="ledger-right"><b>What holds:</b> {escape(row.correct_statement)}</p>\n'
        f'<p class="ledger-facts">{_facts(entry)}</p></li>'
    )


def _facts(entry: Entry) -> str:
    row = entry.row
    facts = [
        _proof(entry),
        f"<b>Place:</b> {SOURCE_NAMES[row.source]}"
        + ("" if row.section in row.source else f", {escape(row.section)}"),
        f"<b>Kind:</b> {row.kind}",
    ]
    if entry.sources:
        facts.append(f"<b>Primary source:</b> {'; '.join(_source(*pair) for pair in entry.sources)}")
    elif row.primary_source.strip("-"):
        facts.append(f"<b>Primary source:</b> {escape(row.primary_source)}")
    if entry.terms:
        facts.append(f"<b>Terms:</b> {', '.join(_term(term, row.source) for term in entry.terms)}")
    return " ".join(f"<span>{fact}</span>" for fact in facts)


def _proof(entry: Entry) -> str:
    word = {"proven": "Proof", "told": "Told in", "open": "Open"}[entry.status]
    if entry.proof_url:
        title = f'<a href="{escape(entry.proof_url)}">{escape(entry.proof_title)}</a>'
        return f"<b>{word}:</b> {title}"
    return f"<b>{word}:</b> no proof yet; belongs to the chapter {entry.row.chapter}"


def _source(part: Part, url: str) -> str:
    name = f'<a href="{escape(url)}">{escape(part.name)}</a>' if part.key else ""
    return name + escape(part.place)


def _term(term: Term, source: str) -> str:
    language, words = term.chinese(source)
    if words == term.english:
        return escape(words)
    return f'{escape(term.english)} <span lang="{language}">{escape(words)}</span>'

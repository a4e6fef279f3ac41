"""Shows the ledger on the site: the table of all claims, the counts, and the links to the table.

* `{ledger}` renders every row of claims.csv with its filters, `{ledger-summary}` the table of counts,
  and the role {ledger-count}`proven` one number. All of them are computed, never typed.
* Each target `(A-27)=` in a chapter gets a small link to its row, in the margin, so that the
  chapter's own text stays free of ids.
* Each rule of the ledger that a chapter breaks is a warning, and so fails the build.

What the rows are and when a row counts as proven is decided in helpers/ledger/claims.py; the HTML is
written in ledger_html.py.
"""

import html
from functools import cache
from pathlib import Path

import ledger_html
from docutils import nodes
from ledger_html import Entry
from sphinx.application import Sphinx
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from helpers.ledger.check import problems
from helpers.ledger.claims import LEDGER, Row, ledger, proofs, status
from helpers.ledger.references import BIBLIOGRAPHY, parts
from helpers.ledger.terms import TERMS, terms, terms_of

logger = logging.getLogger(__name__)


class ledger_table(nodes.General, nodes.Element):
    """Stands for the filters and all rows until every page was read and each proof has an address."""


class ledger_summary(nodes.General, nodes.Element):
    """Stands for the table of counts."""


class ledger_count(nodes.Inline, nodes.TextElement):
    """Stands for one number; the attribute `key` is what to count."""


class LedgerDirective(SphinxDirective):
    """`{ledger}` and `{ledger-summary}`: a placeholder, and the note that the page reads the tables."""

    placeholder: type[nodes.Element] = ledger_table

    def run(self) -> list[nodes.Node]:
        for table in (LEDGER, TERMS, BIBLIOGRAPHY):
            self.env.note_dependency(str(Path(self.env.srcdir, table)))
        return [self.placeholder()]


class LedgerSummaryDirective(LedgerDirective):
    placeholder = ledger_summary


class LedgerCountRole(SphinxRole):
    """{ledger-count}`rows`, a status such as `open`, or a verdict such as `wrong`."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.note_dependency(str(Path(self.env.srcdir, LEDGER)))
        known = ledger_html.counts([]).keys()
        if self.text not in known:
            message = f"ledger-count: {self.text!r} is not one of {', '.join(known)}"
            logger.warning(message, location=self.get_location())
        return [ledger_count(key=self.text)], []


@cache
def rows_with_status(root: Path) -> tuple[tuple[Row, str], ...]:
    """Every row and its status; read once per build, because every page asks."""
    found = proofs(root)
    return tuple((row, status(row, found)) for row in ledger(root))


def warn_of_problems(app: Sphinx) -> None:
    rows_with_status.cache_clear()
    for line in problems(Path(app.srcdir)):
        logger.warning("ledger: %s", line)


def rewrite_counting_pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """A proof added to a chapter changes these pages too, though their own text did not change."""
    return [name for name in (app.config.ledger_page, app.config.root_doc) if name in env.all_docs]


def entries(app: Sphinx, docname: str) -> list[Entry]:
    """The rows as the page `docname` shows them: with status, terms and the ways to proof and sources."""
    known = terms(Path(app.srcdir))
    references = app.builder.get_relative_uri(docname, app.config.references_page)
    labels = StandardDomain.anonlabels.fget(app.env.get_domain("std"))
    shown = []
    for row, state in rows_with_status(Path(app.srcdir)):
        url = title = ""
        if state != "open" and row.id.lower() in labels:
            page, anchor = labels[row.id.lower()]
            url = app.builder.get_relative_uri(docname, page) + "#" + anchor
            title = app.env.titles[page].astext()
        named = parts(row.primary_source, Path(app.srcdir))
        sources = tuple((part, f"{references}#ref-{part.key}") for part in named)
        shown.append(Entry(row, state, url, title, sources, tuple(terms_of(row, known))))
    return shown


def show_ledger(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Replace the three placeholders, now that every page has been read."""
    root = Path(app.srcdir)
    for node in list(doctree.findall(ledger_table)):
        node.replace_self(nodes.raw("", ledger_html.table(entries(app, docname)), format="html"))
    for node in list(doctree.findall(ledger_summary)):
        node.replace_self(nodes.raw("", ledger_html.summary(rows_with_status(root)), format="html"))
    for node in list(doctree.findall(ledger_count)):
        number = ledger_html.counts(rows_with_status(root)).get(node["key"], "?")
        node.replace_self(nodes.Text(str(number)))


def add_margin_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Put a link to the ledger beside whatever a target such as `(A-27)=` points at."""
    ids = {row.id.lower(): row.id for row, _ in rows_with_status(Path(app.srcdir))}
    for node in list(doctree.findall(nodes.Element)):
        names = sorted((ids[name] for name in node.get("ids", []) if name in ids), key=str)
        if not names or isinstance(node, nodes.target):
            continue
        links = "".join(ledger_link(app, docname, name) for name in names)
        margin = nodes.raw("", f'<div class="claim-margin">{links}</div>', format="html")
        if isinstance(node, nodes.section):
            node.insert(1, margin)
        else:
            node.parent.insert(node.parent.index(node), margin)


def ledger_link(app: Sphinx, docname: str, name: str) -> str:
    """A link to the row `name` on the ledger's page, as HTML."""
    page = app.builder.get_relative_uri(docname, app.config.ledger_page)
    label = f"Claim {name} in the ledger"
    url = html.escape(f"{page}#{ledger_html.anchor(name)}")
    return f'<a class="claim-id" href="{url}" aria-label="{label}" title="{label}">{name}</a>'


def add_files(app: Sphinx, pagename: str, *_: object) -> None:
    """Style and script only where they are needed: the other pages stay lighter."""
    if pagename in (app.config.ledger_page, app.config.root_doc):
        app.add_css_file("ledger.css")
    if pagename == app.config.ledger_page:
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_config_value("ledger_page", "book/back/claims", "env")
    app.add_node(ledger_table)
    app.add_node(ledger_summary)
    app.add_node(ledger_count)
    app.add_directive("ledger", LedgerDirective)
    app.add_directive("ledger-summary", LedgerSummaryDirective)
    app.add_role("ledger-count", LedgerCountRole())
    app.connect("builder-inited", warn_of_problems)
    app.connect("env-updated", rewrite_counting_pages)
    app.connect("doctree-resolved", show_ledger)
    app.connect("doctree-resolved", add_margin_links)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

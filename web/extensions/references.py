"""The page of references: how each entry was checked, and which claims of the ledger rest on it.

sphinxcontrib-bibtex formats the entries and makes {cite:p}`li2020ddp` work in every chapter. This
extension sets how labels and links look, and adds to each entry what a reader who doubts wants to know.
The role {reference-count}`checked` gives the number of entries that were checked, or not, or `all`.
"""

from collections import defaultdict
from html import escape
from pathlib import Path

from docutils import nodes
from ledger import ledger_link
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pybtex.style.labels import BaseLabelStyle
from pybtex.style.sorting import BaseSortingStyle
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.writers.html5 import HTML5Translator

from helpers.ledger.claims import ledger
from helpers.ledger.references import BIBLIOGRAPHY, STATES, parts, references

logger = logging.getLogger(__name__)

# The ids of the entries are part of the site's addresses: `references.html#ref-li2020ddp`.
CITE_ID = "ref-{key}"
WORDS = {"checked": "Checked", "unchecked": "Not checked"}


class KeyLabels(BaseLabelStyle):
    """Entries are labelled with the keys that the ledger uses."""

    def format_labels(self, sorted_entries):
        return [entry.key for entry in sorted_entries]


class KeyOrder(BaseSortingStyle):
    """Entries stand in the order of their labels."""

    def sorting_key(self, entry):
        return entry.key


class Style(PlainStyle):
    default_sorting_style = "book_order"
    default_label_style = "book_keys"


class ReferenceCountRole(SphinxRole):
    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        self.env.note_dependency(str(Path(self.env.srcdir, BIBLIOGRAPHY)))
        states = [entry.state for entry in references(Path(self.env.srcdir)).values()]
        if self.text not in (*STATES, "all"):
            logger.warning("reference-count: %r is unknown", self.text, location=self.get_location())
        number = len(states) if self.text == "all" else states.count(self.text)
        return [nodes.Text(str(number))], []


def users(root: Path) -> dict[str, list[str]]:
    """The ids of the ledger rows that name each entry; a name without an entry is a warning."""
    found = defaultdict(list)
    for row in ledger(root):
        for part in parts(row.primary_source, root):
            if not part.key:
                logger.warning("ledger: %s: %r is not in %s", row.id, part.place, BIBLIOGRAPHY)
            elif row.id not in found[part.key]:
                found[part.key].append(row.id)
    return found


def add_notes(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Below each entry: how it was checked, and the rows that rest on it."""
    if docname != app.config.references_page:
        return
    known, rows = references(Path(app.srcdir)), users(Path(app.srcdir))
    for node in doctree.findall(nodes.citation):
        entry = known[node["ids"][0].removeprefix(CITE_ID.format(key=""))]
        links = " ".join(ledger_link(app, docname, id_) for id_ in rows[entry.key])
        claims = f' <span class="ref-claims">Claims: {links}</span>' if links else ""
        note = f'<p class="ref-note" data-state="{entry.state}">'
        note += f"<b>{WORDS[entry.state]}:</b> {escape(entry.how)}.{claims}</p>"
        node.append(nodes.raw("", note, format="html"))


def visit_citation(self: HTML5Translator, node: nodes.citation) -> None:
    """As docutils writes it, but as an item of a list: the role it gives has left the standard."""
    if not isinstance(node.previous_sibling(), nodes.citation):
        self.body.append('<div role="list" class="citation-list">\n')
    self.body.append(self.starttag(node, "div", classes=["citation"], role="listitem"))


def depart_citation(self: HTML5Translator, node: nodes.citation) -> None:
    self.body.append("</div>\n")
    if not isinstance(node.next_node(descend=False, siblings=True), nodes.citation):
        self.body.append("</div>\n")


def add_files(app: Sphinx, pagename: str, *_: object) -> None:
    """One sheet for the back matter, which no other page needs."""
    if Path(pagename).parent == Path(app.config.references_page).parent:
        app.add_css_file("back.css")


def setup(app: Sphinx) -> dict[str, bool]:
    register_plugin("pybtex.style.labels", "book_keys", KeyLabels)
    register_plugin("pybtex.style.sorting", "book_order", KeyOrder)
    register_plugin("pybtex.style.formatting", "book", Style)
    app.add_node(nodes.citation, override=True, html=(visit_citation, depart_citation))
    app.add_config_value("references_page", "book/back/references", "env")
    app.add_role("reference-count", ReferenceCountRole())
    app.connect("doctree-resolved", add_notes)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

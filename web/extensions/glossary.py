"""Puts the Chinese words of book/data/terms.csv below the glossary's definitions.

A term of the glossary and a line of the table belong together when they have the same English name; a
term without a line simply has no Chinese. Each term can be linked from anywhere by {term}`rank`.
"""

from html import escape
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from helpers.ledger.terms import TERMS, Term, terms


def add_chinese(app: Sphinx, doctree: nodes.document) -> None:
    for glossary in doctree.findall(addnodes.glossary):
        app.env.note_dependency(str(Path(app.srcdir, TERMS)))
        known = {term.english.lower(): term for term in terms(Path(app.srcdir))}
        for item in glossary.findall(nodes.definition_list_item):
            names = [node.astext().lower() for node in item.findall(nodes.term)]
            found = [known[name] for name in names if name in known]
            if found:
                html = f'<p class="term-zh">{chinese(found[0])}</p>'
                item.children[-1].append(nodes.raw("", html, format="html"))


def chinese(term: Term) -> str:
    """Both scripts, as each source writes the term; one where they agree, none where it is English."""
    pairs = {words: tag for tag, words in (term.chinese("B"), term.chinese("A")) if words != term.english}
    spans = [f'<span lang="{tag}">{escape(words)}</span>' for words, tag in reversed(pairs.items())]
    return " / ".join(spans)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", add_chinese)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

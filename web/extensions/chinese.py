"""Tells the browser which words are Chinese: screen readers then speak them, and fonts fit.

Chapters quote their sources; a notebook cannot mark the language of a few words in a sentence, the build can.
"""

import re
from html import escape

from docutils import nodes
from sphinx.application import Sphinx

RUN = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uff00-\uffef]+")


def mark_chinese(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for text in list(doctree.findall(nodes.Text)):
        if isinstance(text.parent, nodes.paragraph | nodes.emphasis | nodes.entry) and RUN.search(text):
            text.parent.replace(text, _parts(str(text)))


def _parts(text: str) -> list[nodes.Node]:
    language = "zh-Hans" if _is_simplified("".join(RUN.findall(text))) else "zh-Hant"
    parts, end = [], 0
    for run in RUN.finditer(text):
        parts.append(nodes.Text(text[end : run.start()]))
        span = f'<span lang="{language}">{escape(run.group())}</span>'
        parts.append(nodes.raw("", span, format="html"))
        end = run.end()
    return [*parts, nodes.Text(text[end:])]


def _is_simplified(chinese: str) -> bool:
    """The older code of mainland China has no signs for the traditional script."""
    try:
        chinese.encode("gb2312")
    except UnicodeEncodeError:
        return False
    return True


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", mark_chinese)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Folded cells as plain <details>, so that they look and work like every other folded section.

myst-nb labels its folds "Toggle hidden content" for screen readers while the eye reads something else,
and puts paragraphs where HTML allows none. The visible words are label enough.
"""

from html import escape

from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit(self: HTML5Translator, node: HideCodeCellNode) -> None:
    classes = " ".join(node["classes"])
    self.body.append(
        f'<details class="fold {classes}"><summary>'
        f'<span class="collapsed">{escape(node["prompt_show"])}</span>'
        f'<span class="expanded">{escape(node["prompt_hide"])}</span></summary>\n'
    )


def depart(self: HTML5Translator, node: HideCodeCellNode) -> None:
    self.body.append("</details>\n")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(HideCodeCellNode, override=True, html=(visit, depart))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Labels the cells that carry the proofs, in words, so that colour is never the only sign.

A cell tagged `claim` says which claims of the ledger it proves, if any; the error of a cell tagged
`break` says that the error is the point. The labels are real text, not CSS: they survive printing and
screen readers.
"""

from docutils import nodes
from ledger import ledger_link
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.application import Sphinx

from helpers.ledger.claims import ID

TAG = "tag_"


def label_cells(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for cell in list(doctree.findall(nodes.container)):
        tags = [name.removeprefix(TAG) for name in cell["classes"] if name.startswith(TAG)]
        ids = [tag for tag in tags if ID.fullmatch(tag)]
        links = " ".join(ledger_link(app, docname, id_) for id_ in ids)
        for fold in cell.findall(HideCodeCellNode):
            # A folded break is otherwise an anonymous bar.
            words = "the break" if "break" in tags else "the proof" if "claim" in tags else "this cell"
            words = f"{words} of {' '.join(ids)}" if ids else words
            fold["prompt_show"], fold["prompt_hide"] = f"Show {words}", f"Hide {words}"
        if "claim" in tags:
            cell.insert(0, _label("proof-label", f"Proof <span>of {links}</span>" if ids else "Proof"))
        if "break" in tags:
            for output in cell.findall(nodes.container):
                if "cell_output" in output["classes"]:
                    output.insert(0, _label("break-label", f"Breaks as it should <span>{links}</span>"))


def _label(name: str, text: str) -> nodes.raw:
    return nodes.raw("", f'<p class="{name}">{text}</p>', format="html")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", label_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

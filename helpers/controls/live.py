"""A widget that is live where a kernel runs and a picture everywhere else."""

import ipywidgets as widgets


class LiveControl:
    """A widget that also knows how to stand still.

    Where a kernel runs the widget is shown; everywhere else (the site, GitHub) its `picture`.
    """

    def __init__(self, widget: widgets.Widget, picture: str, name: str):
        self.widget, self.picture, self.name = widget, picture, name

    def __repr__(self) -> str:
        return f"{self.name} (move the sliders in JupyterLab)"

    def _repr_mimebundle_(self, **kwargs) -> dict:
        note = "<p><em>Open this page in JupyterLab to change these numbers.</em></p>"
        view = self.widget._repr_mimebundle_(**kwargs)
        return {
            **{kind: data for kind, data in view.items() if kind.endswith("widget-view+json")},
            "text/plain": repr(self),
            "text/html": f'<div class="live-control">{self.picture}{note}</div>',
        }


def row(*values, cell: str = "td") -> str:
    """A table row in HTML: one cell for each value, "td" or "th"."""
    return f"<tr>{''.join(f'<{cell}>{value}</{cell}>' for value in values)}</tr>"

"""Widgets drawn by a JavaScript module: anywidgets in JupyterLab, the same module as a script on the site.

A package of helpers that draws this way holds NAME/NAME.js, an ES module whose default export is
`{ render }`, and NAME/NAME.css. The module reads `model.get("state")` and never changes it, so it needs no
kernel: web/extensions/drawn.py turns it into a classic script that finds its boxes by `data-widget`.
"""

import html
import json
from functools import cache
from pathlib import Path

import anywidget
import traitlets

HERE = Path(__file__).parent


class Drawn:
    """A widget that draws `state` (JSON) with the module `name`.

    words: what the reader sees, and hears, where neither a kernel nor a script runs; also its repr.
    """

    def __init__(self, name: str, state: dict, words: str):
        self.name, self.state, self.words = name, state, words

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, **kwargs) -> dict:
        view = _widget_class(self.name)(state=self.state)._repr_mimebundle_(**kwargs)
        view = view[0] if isinstance(view, tuple) else view
        return {
            **{kind: data for kind, data in view.items() if kind.endswith("widget-view+json")},
            "text/plain": self.words,
            "text/html": self.box(),
        }

    def box(self) -> str:
        """The HTML that the site's script looks for: no script in it, only data."""
        state = html.escape(json.dumps(self.state, separators=(",", ":")), quote=True)
        return (
            f'<div class="drawn" data-widget="{self.name}" data-state="{state}">'
            f"<p>{html.escape(self.words)}</p></div>"
        )


def module_of(name: str) -> Path:
    """The JavaScript module of a widget; its style sheet lies beside it."""
    return HERE / name / f"{name}.js"


@cache
def _widget_class(name: str) -> type[anywidget.AnyWidget]:
    path = module_of(name)
    parts = {
        "_esm": path.read_text(encoding="utf-8"),
        "_css": path.with_suffix(".css").read_text(encoding="utf-8"),
        "state": traitlets.Dict().tag(sync=True),
    }
    return type(name.capitalize(), (anywidget.AnyWidget,), parts)

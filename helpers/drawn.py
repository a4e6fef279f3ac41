"""Widgets drawn by a JavaScript module: anywidgets in JupyterLab, the same module as a script on the site.

A package of helpers that draws this way holds NAME/NAME.js, an ES module whose default export is
`{ render }`, and NAME/NAME.css; drawn.js and drawn.css, which all share, stand before them. The module reads
`model.get("state")` and never changes it, so it needs no kernel: web/extensions/drawn.py turns it into a
classic script that finds its boxes by `data-widget`.
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


def widgets() -> list[str]:
    """Names of the packages of helpers that hold a module of their own name."""
    return sorted(path.parent.name for path in HERE.glob("*/*.js") if path.stem == path.parent.name)


def module_of(name: str) -> str:
    """The JavaScript of a widget: what all share (drawn.js), then its own module."""
    return _read("drawn.js") + _read(name, f"{name}.js")


def style_of(name: str) -> str:
    """The style sheet of a widget: what all share (drawn.css), then its own."""
    return _read("drawn.css") + _read(name, f"{name}.css")


def _read(*parts: str) -> str:
    return HERE.joinpath(*parts).read_text(encoding="utf-8")


@cache
def _widget_class(name: str) -> type[anywidget.AnyWidget]:
    parts = {
        "_esm": module_of(name),
        "_css": style_of(name),
        "state": traitlets.Dict().tag(sync=True),
    }
    return type(name.capitalize(), (anywidget.AnyWidget,), parts)

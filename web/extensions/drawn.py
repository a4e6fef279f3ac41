"""Puts the widgets of helpers/drawn.py on the site: each module as a classic script, so file:// works too.

A page that holds a box for a widget gets its script and its style sheet; other pages stay lighter.
"""

from pathlib import Path

from sphinx.application import Sphinx

from helpers.drawn import module_of, style_of, widgets

EXPORT = "export default "
SCRIPT = """// Made from helpers/{name}/{name}.js by web/extensions/drawn.py.
(() => {{
"use strict";
{module}
for (const el of document.querySelectorAll('[data-widget="{name}"]')) {{
  const state = JSON.parse(el.dataset.state);
  el.replaceChildren();
  widget.render({{ el, model: {{ get: () => state, on() {{}} }} }});
}}
}})();
"""


def classic_script(name: str, module: str) -> str:
    """The module as a script that draws into every box of its name.

    Raises ValueError where the module imports something or has not exactly one default export.
    """
    if module.count(EXPORT) != 1 or module.startswith("import ") or "\nimport " in module:
        raise ValueError(f"{name}.js: expected no import and one default export")
    return SCRIPT.format(name=name, module=module.replace(EXPORT, "const widget = "))


def write_scripts(app: Sphinx) -> None:
    folder = Path(app.doctreedir) / "drawn"
    folder.mkdir(parents=True, exist_ok=True)
    for name in widgets():
        (folder / f"{name}.js").write_text(classic_script(name, module_of(name)), encoding="utf-8")
        (folder / f"{name}.css").write_text(style_of(name), encoding="utf-8")
    app.config.html_static_path.append(str(folder))


def add_files(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: object) -> None:
    for name in widgets():
        if f'data-widget="{name}"' in context.get("body", ""):
            app.add_css_file(f"{name}.css")
            app.add_js_file(f"{name}.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_scripts)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

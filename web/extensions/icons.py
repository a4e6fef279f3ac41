"""Sends the few icons that the pages use, instead of the theme's whole icon font.

The theme draws its icons with Font Awesome: a font of 156 KB, and nearly two thousand rules that name
its signs, for the two dozen that a reader sees. After the build this extension looks which icons the
pages and scripts name, cuts their signs out of the theme's own font, and drops the rules of the rest.

The small font declares the same family for just these characters, so it wins for them; for any other
character the browser still finds the theme's full font, which costs weight but shows the icon.
"""

import base64
import io
import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx

STYLE_SHEET = "icons.css"
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
FONT = THEME / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.ttf"
THEME_SHEET = Path("styles", "pydata-sphinx-theme.css")

# `.fa-xmark:before,.fa-close:before{content:"\f00d"}`, and `--pst-icon-bell:"<sign>"`
RULE = re.compile(r"(?:\.fa-[a-z0-9-]+:before,?)+\{content:([^}]*)\}")
VARIABLE = re.compile(r'--pst-icon-[a-z-]+:"(?:\\([0-9a-f]+)|(.))"')
NAME = re.compile(r"\bfa-([a-z0-9-]+)")

FONT_FACE = """@font-face {{
  font-family: "Font Awesome 6 Free";
  font-style: normal;
  font-weight: 900;
  src: url("data:font/woff;base64,{data}") format("woff");
  unicode-range: {range};
}}
"""


def icons_named_in(folder: Path) -> set[str]:
    """The icon names in all pages and scripts; a few words more than there are icons, which is harmless."""
    files = [*folder.rglob("*.html"), *folder.glob("_static/**/*.js")]
    return {name for file in files for name in NAME.findall(file.read_text(encoding="utf-8"))}


def slim(sheet: str, names: set[str]) -> tuple[str, set[int]]:
    """The theme's style sheet without the rules of unnamed icons, and the characters it still draws."""
    characters = {int(code, 16) if code else ord(sign) for code, sign in VARIABLE.findall(sheet)}

    def keep(rule: re.Match[str]) -> str:
        if names.isdisjoint(NAME.findall(rule[0])):
            return ""
        characters.update(int(code, 16) for code in re.findall(r"\\([0-9a-f]+)", rule[1]))
        return rule[0]

    return RULE.sub(keep, sheet), characters


def small_font(characters: set[int]) -> str:
    """A @font-face rule that holds just these characters of the theme's icon font."""
    font = TTFont(FONT, recalcTimestamp=False)
    # No layout features: the font's ligatures would pull in signs by name.
    cutter = subset.Subsetter(subset.Options(layout_features=[]))
    cutter.populate(unicodes=characters)
    cutter.subset(font)
    font.flavor = "woff"
    file = io.BytesIO()
    font.save(file)
    codes = ", ".join(f"U+{code:X}" for code in sorted(characters))
    return FONT_FACE.format(data=base64.b64encode(file.getvalue()).decode(), range=codes)


def write_icons(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir, "_static")
    for script in static.glob("scripts/fontawesome.js*"):
        script.unlink()  # no page loads it, see web/templates/layout.html
    sheet = (THEME / THEME_SHEET).read_text(encoding="utf-8")
    slimmed, characters = slim(sheet, icons_named_in(Path(app.outdir)))
    (static / THEME_SHEET).write_text(slimmed, encoding="utf-8")
    (static / STYLE_SHEET).write_text(small_font(characters), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_css_file(STYLE_SHEET)
    app.connect("build-finished", write_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

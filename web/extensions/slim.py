"""One style sheet instead of fourteen, without the rules that no page uses, and scripts that do not block.

A phone on a slow network pays for every sheet and script that a page waits for before it shows a word.
After the build this extension joins the sheets that all pages share into `_static/site.css`, in their
order; leaves out rules for classes and ids that no page has and no script names; and lets the scripts
wait until the page is there. Sheets of single pages, and the one for paper, stay as they are.

Classes that a script composes ("bs-tooltip-" + placement) are recognised by the literal's final hyphen.
"""

import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import tinycss2
from sphinx.application import Sphinx
from tinycss2.ast import AtRule, HashToken, IdentToken, LiteralToken, Node, QualifiedRule

SHEET = "site.css"
LINK = re.compile(r'[ \t]*<link [^>]*href="([^"?]*_static/([^"?]+\.css))[^"]*"[^>]*/?>\n?')
SCRIPT = re.compile(r'<script((?: (?!defer|src)[^> ]+)*) src="([^"]+)"></script>')
PRELOAD = re.compile(
    r'[ \t]*<link rel="preload" as="script"[^>]*>\n?'
)  # before all else, for what comes last
ATTRIBUTE = re.compile(r'\b(?:class|id)="([^"]*)"')
OPTIONS = "documentation_options.js"  # inline scripts in the head read it, so it cannot wait
WORD = re.compile(r"-?[A-Za-z_][\w-]*")
IMPORT = re.compile(r'@import "([^"]+)";')
ADDRESS = re.compile(r"""url\((["']?)(?!data:|["']|#)([^)"']+)\1\)""")
NESTED = ("media", "supports", "layer", "container")


class Names:
    """Classes and ids of pages, all words of scripts, and the beginnings that scripts complete."""

    def __init__(self, pages: Iterable[str], scripts: Iterable[str]) -> None:
        scripts = list(scripts)
        self.words = {word for page in pages for names in ATTRIBUTE.findall(page) for word in names.split()}
        self.words |= {word for script in scripts for word in WORD.findall(script)}
        literals = re.findall(r"""["'`]([\w-]+-)["'`$]""", "\n".join(scripts))
        self.starts = tuple({start for start in literals if len(start) > 3})

    def __contains__(self, name: str) -> bool:
        return name in self.words or name.startswith(self.starts)


def slim(css: str, names: Names) -> str:
    """The style sheet without the selectors that can match nothing, and without comments."""
    rules = tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True)
    return "".join(_rule(rule, names) for rule in rules)


def _rule(rule: Node, names: Names) -> str:
    if isinstance(rule, QualifiedRule):
        selectors = [part for part in _split(rule.prelude) if _possible(part, names)]
        if not selectors:
            return ""
        head = ",".join(tinycss2.serialize(part).strip() for part in selectors)
        return f"{head}{{{_body(rule.content)}}}\n"
    if isinstance(rule, AtRule) and rule.lower_at_keyword in NESTED and rule.content is not None:
        inner = tinycss2.parse_rule_list(rule.content, skip_comments=True, skip_whitespace=True)
        body = "".join(_rule(each, names) for each in inner)
        head = f"@{rule.at_keyword} {tinycss2.serialize(rule.prelude).strip()}"
        return f"{head}{{{body}}}\n" if body else ""
    return rule.serialize() + "\n"


def _body(content: list[Node]) -> str:
    return tinycss2.serialize([token for token in content if token.type != "comment"]).strip()


def _split(prelude: list[Node]) -> list[list[Node]]:
    """The selectors of a list; commas inside :is() are inside one token here."""
    parts: list[list[Node]] = [[]]
    for token in prelude:
        if isinstance(token, LiteralToken) and token.value == ",":
            parts.append([])
        elif token.type != "comment":
            parts[-1].append(token)
    return parts


def _possible(selector: list[Node], names: Names) -> bool:
    """False if a class or an id outside of brackets occurs nowhere."""
    for before, token in zip([None, *selector], selector, strict=False):
        if isinstance(token, HashToken) and token.value not in names:
            return False
        is_class = isinstance(before, LiteralToken) and before.value == "."
        if is_class and isinstance(token, IdentToken) and token.value not in names:
            return False
    return True


def read(sheet: Path, static: Path) -> str:
    """A sheet as it reads from the folder _static: imports put in place, addresses adapted."""
    css = sheet.read_text(encoding="utf-8")
    css = IMPORT.sub(lambda match: read((sheet.parent / match[1]).resolve(), static), css)

    def adapt(match: re.Match[str]) -> str:
        return f'url("{(sheet.parent / match[2]).resolve().relative_to(static.resolve()).as_posix()}")'

    return css if sheet.parent == static else ADDRESS.sub(adapt, css)


def shared_sheets(pages: Iterable[str]) -> list[str]:
    """The sheets for the screen that every page links, as paths below _static, in their order."""
    lists = [
        [match[2] for match in LINK.finditer(page) if "stylesheet" in match[0] and "media=" not in match[0]]
        for page in pages
    ]
    return [name for name in lists[0] if all(name in other for other in lists)]


def rewrite(page: str, shared: list[str], address: str, options: str) -> str:
    """The page with one link, to `address`, in the place of the first shared sheet; scripts that wait."""
    left = list(shared)

    def link(match: re.Match[str]) -> str:
        if match[2] not in left or "stylesheet" not in match[0]:
            return match[0]
        left.remove(match[2])
        if len(left) + 1 < len(shared):
            return ""
        return f'    <link rel="stylesheet" href="{match[1].removesuffix(match[2])}{address}" />\n'

    def script(match: re.Match[str]) -> str:
        if OPTIONS in match[2]:
            return f"<script>{options}</script>"
        return f'<script defer{match[1]} src="{match[2]}"></script>'

    return SCRIPT.sub(script, LINK.sub(link, PRELOAD.sub("", page)))


def slim_site(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.format != "html":
        return
    root, static = Path(app.outdir), Path(app.outdir, "_static")
    pages = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.html")}
    pages = {path: text for path, text in pages.items() if static not in path.parents and LINK.search(text)}
    shared = shared_sheets(pages.values())
    scripts = [path.read_text(encoding="utf-8") for path in static.rglob("*.js")]
    names = Names(pages.values(), scripts)
    sheets = "".join(slim(read(static / name, static), names) for name in shared)
    (static / SHEET).write_text(sheets, encoding="utf-8")
    address = f"{SHEET}?v={zlib.crc32(sheets.encode()):08x}"  # a new address when the sheet changes
    options = (static / OPTIONS).read_text(encoding="utf-8")
    for path, text in pages.items():
        path.write_text(rewrite(text, shared, address, options), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", slim_site, priority=900)  # after the icons, which write a sheet
    return {"parallel_read_safe": True, "parallel_write_safe": True}

r"""Turns LaTeX into MathML while the book is built, so that pages need no math script and no math font.

Every browser of the last years draws MathML by itself. The converter, latex2mathml, shows what it
does not know as plain text; here that is a warning, and so fails the build: `\foo` never reaches a
reader. Numbered and labelled equations work as in Sphinx; use `$$ ... $$ (label)` and {eq}`label`,
not `\tag`.
"""

import html
import re
import xml.etree.ElementTree as ET

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

# Environments that the converter lays out, and what it must be told instead of the usual names. It
# drops all others without a word.
ENVIRONMENTS = {
    **{name: name for name in ("matrix", "pmatrix", "bmatrix", "vmatrix", "Vmatrix", "smallmatrix")},
    **{name: name for name in ("array", "cases", "split", "align*")},
    **dict.fromkeys(("align", "aligned"), "align*"),
    **dict.fromkeys(("equation", "equation*"), ""),
}

# How many parts each of these must have; fewer means that an argument was left out.
PARTS = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2, "msubsup": 3, "munderover": 3}

# Traces in the result of something the converter did not understand or browsers do not draw.
UNKNOWN = {
    r">[^<]*\\": "an unknown command",
    r'linebreak="newline"': "a line break outside an environment such as aligned",
    r">&<": "an & outside an environment such as aligned",
    r"<menclose": "a box, which browsers do not draw in MathML",
    r"\shref=": "a link inside a formula",
}

# The first three are characters that the converter takes for letters or separators, and so spaces
# wrongly. The last two mark variables and braces for web/math.css, which draws both without a math font.
CORRECTIONS = {
    r"<mrow><mo>&#x0002C;</mo></mrow>": "<mn>,</mn>",  # 1{,}024
    r"<mi>&#x000B1;</mi>": "<mo>&#x000B1;</mo>",  # plus-minus
    r"<mi>&#x0007E;</mi>": "<mo>&#x0223C;</mo>",  # \sim
    r"<mi>([A-Za-z]|&#x003[BCDF].;)</mi>": r'<mi class="v">\1</mi>',
    r"<mo>(&#x23D[EF];)</mo>": r'<mo class="brace">\1</mo>',
}


def to_mathml(latex: str, display: str) -> str:
    """The MathML of a formula; `display` is `inline` or `block`. Raises ValueError on unknown LaTeX."""
    depth = 0
    for brace in re.findall(r"(?<!\\)(?:\\\\)*([{}])", latex):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            break
    if depth != 0:
        raise ValueError("the braces do not match")
    renamed = _rename_environments(latex.strip())
    try:
        result = convert(renamed, display=display)
    except Exception as error:  # the converter has a dozen exception classes without a common base
        raise ValueError(type(error).__name__) from error
    for pattern, meaning in UNKNOWN.items():
        if re.search(pattern, result):
            raise ValueError(meaning)
    try:
        elements = list(ET.fromstring(result).iter())
    except ET.ParseError as error:
        raise ValueError(str(error)) from error
    for element in elements:
        name = element.tag.rpartition("}")[2]
        if name in PARTS and len(element) != PARTS[name]:
            raise ValueError(f"{name} with {len(element)} parts")
    for wrong, right in CORRECTIONS.items():
        result = re.sub(wrong, right, result)
    return result.replace("<math ", f'<math alttext="{html.escape(latex.strip())}" ', 1)


def _rename_environments(latex: str) -> str:
    def rename(match: re.Match[str]) -> str:
        if match[2] not in ENVIRONMENTS:
            raise ValueError(f"the unknown environment {match[2]}")
        name = ENVIRONMENTS[match[2]]
        return rf"\{match[1]}{{{name}}}" if name else ""

    return re.sub(r"\\(begin|end)\{([^}]*)\}", rename, latex)


def _convert(node: nodes.Element, display: str) -> str:
    try:
        return to_mathml(node.astext(), display)
    except ValueError as error:
        logger.warning("math: %s in %r", error, node.astext(), location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_convert(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(self.starttag(node, "div", CLASS="math-block notranslate nohighlight"))
    self.body.append(f'<div class="math-scroll">{_convert(node, "block")}</div>')
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

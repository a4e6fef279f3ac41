"""The book's formulas become MathML, and whatever would come out wrong fails instead."""

import xml.etree.ElementTree as ET
from types import ModuleType

import pytest
from extensions import load_extension


@pytest.fixture(scope="module")
def mathml() -> ModuleType:
    """The Sphinx extension; it lies beside the site's files, not in a package."""
    return load_extension("mathml")


@pytest.mark.parametrize(
    "latex",
    [
        r"\frac{1}{K}\sum_{k=1}^{K} \nabla_\theta \ell_k",
        r"T = \underbrace{2(K-1)\alpha}_{\text{latency}} + 2\,\frac{K-1}{K}\cdot\frac{M}{B}",
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        r"\begin{cases} 1 & x > 0 \\ 0 & \text{else} \end{cases}",
        r"\left\lfloor \frac{n}{K} \right\rfloor \le 1{,}024",
        r"\{a\} \pm \hat{g}_k \sim \mathcal{O}(\log_2 K)",
    ],
)
def test_known_latex_is_well_formed(mathml: ModuleType, latex: str) -> None:
    for display in ("inline", "block"):
        root = ET.fromstring(mathml.to_mathml(latex, display))
        assert root.get("display") == display
        assert "\\" not in "".join(root.itertext())


@pytest.mark.parametrize(
    "latex",
    [
        r"\foo x",
        r"\text{a \foo b}",
        r"\frac{a}{b",
        r"a}{",
        r"\frac{1}",
        r"x_",
        r"a \\ b",
        r"a & b",
        r"\begin{tabbing}a\end{tabbing}",
        r"\left( x",
        r"\boxed{x}",
        r"\tag{1}",
        r"\href{x}{y}",
    ],
)
def test_unknown_latex_fails(mathml: ModuleType, latex: str) -> None:
    with pytest.raises(ValueError):
        mathml.to_mathml(latex, "inline")


def test_thousands_are_not_spaced(mathml: ModuleType) -> None:
    assert "<mn>1</mn><mn>,</mn><mn>024</mn>" in mathml.to_mathml("1{,}024", "inline")

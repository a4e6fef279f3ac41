"""The joined style sheet loses what can match nothing, and nothing else."""

from pathlib import Path
from types import ModuleType

import pytest
from extensions import load_extension


@pytest.fixture(scope="module")
def slim() -> ModuleType:
    """The Sphinx extension; it lies beside the site's files, not in a package."""
    return load_extension("slim")


@pytest.mark.parametrize(
    ("css", "kept"),
    [
        (".used{a:b}", ".used{a:b}"),
        (".gone{a:b}", ""),
        (".used,.gone{a:b}", ".used{a:b}"),
        (".used .gone{a:b}", ""),
        (".used:not(.gone){a:b}", ".used:not(.gone){a:b}"),
        ("#place,#nowhere{a:b}", "#place{a:b}"),
        (".bs-tooltip-top{a:b}", ".bs-tooltip-top{a:b}"),
        ("h1>p{a:b}", "h1>p{a:b}"),
        ("@media print{.gone{a:b}}", ""),
        ("@media (width>9px){.used{a:b}.gone{a:b}}", "@media (width>9px){.used{a:b}}"),
        ("@keyframes x{from{a:b}to{a:c}}", "@keyframes x{from{a:b}to{a:c}}"),
        (".shown{a:b}", ".shown{a:b}"),
        ("/* .used */", ""),
    ],
)
def test_only_what_cannot_match_goes(slim: ModuleType, css: str, kept: str) -> None:
    names = slim.Names(
        ['<p class="used" id="place">gone</p>'],
        ['e.classList.add("shown"); "bs-tooltip-" + side'],
    )
    assert "".join(slim.slim(css, names).split("\n")).replace(" ", "") == kept.replace(" ", "")


def test_addresses_and_imports_follow_the_sheet(slim: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "styles").mkdir()
    (tmp_path / "basic.css").write_text("p{a:b}")
    sheet = tmp_path / "styles" / "theme.css"
    sheet.write_text('@import "../basic.css";q{b:url(../vendor/font.woff2)}r{b:url("data:x")}')
    assert slim.read(sheet, tmp_path) == 'p{a:b}q{b:url("vendor/font.woff2")}r{b:url("data:x")}'


def test_pages_link_one_sheet_and_wait_for_no_script(slim: ModuleType) -> None:
    head = (
        '<link rel="preload" as="script" href="../_static/s.js" />\n'
        '<link rel="stylesheet" href="../_static/a.css?v=1" />\n'
        '<link rel="stylesheet" href="../_static/b.css" />\n'
        '<link rel="stylesheet" href="../_static/only-here.css" />\n'
        '<link media="print" rel="stylesheet" href="../_static/print.css" />\n'
        '<script src="../_static/documentation_options.js?v=1"></script>'
        '<script src="../_static/s.js"></script>'
    )
    assert slim.shared_sheets([head, head.replace("only-here", "other")]) == ["a.css", "b.css"]
    page = slim.rewrite(head, ["a.css", "b.css"], "site.css?v=2", "const X = 1;")
    assert page.count("stylesheet") == 3 and page.index("site.css?v=2") < page.index("only-here.css")
    assert 'href="../_static/site.css?v=2"' in page and "preload" not in page
    assert page.endswith('<script>const X = 1;</script><script defer src="../_static/s.js"></script>')

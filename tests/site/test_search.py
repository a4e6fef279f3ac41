"""Search finds every chapter by the words of its own title, over the network and from a folder."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from site_build import pages
from site_visit import Visit

Open = Callable[..., Visit]
TITLE = re.compile(r"<title>(.*?)(?: &#8212; | — |</title>)")
BEST = 1  # a chapter has to be the first result for its own title

chapters = [path for path in pages() if re.fullmatch(r"book/(?!back/)[\w-]+/[\w-]+\.html", path)]


def key_words(site: Path, path: str) -> str:
    """The longer words of a page's title: what a reader who half remembers it would type."""
    title = TITLE.search((site / path).read_text(encoding="utf-8"))
    assert title
    return " ".join(re.findall(r"[A-Za-z]{4,}", re.sub(r"&#?\w+;", " ", title[1])))


def test_there_are_chapters() -> None:
    assert chapters


@pytest.mark.parametrize("base", ["http", "file"])
@pytest.mark.parametrize("path", chapters)
def test_search_finds_the_chapter(visit: Open, address: str, site: Path, path: str, base: str) -> None:
    start = address if base == "http" else site.as_uri()
    words = key_words(site, path)
    seen = visit(f"{start}/search.html?q={words.replace(' ', '+')}")
    seen.page.wait_for_function(
        "document.querySelector('#search-results .search-summary')?.textContent.match(/found|match/)"
    )
    found = seen.page.locator("#search-results li > a").evaluate_all("all => all.map(a => a.href)")
    assert any(path in link for link in found[:BEST]), (words, found[:BEST])
    assert seen.foreign == [] and seen.complaints == []

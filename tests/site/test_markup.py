"""What can be read off the files of the site, without a browser."""

from collections import Counter
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from site_build import pages


class Markup(HTMLParser):
    """The tags of one page, with the ids it defines and the addresses it points at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.ids = Counter(attributes["id"] for _, attributes in self.tags if "id" in attributes)
        self.links = [
            attributes["href"] for tag, attributes in self.tags if tag == "a" and "href" in attributes
        ]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def find(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [a for name, a in self.tags if name == tag and wanted.items() <= a.items()]


@cache
def markup(path: Path) -> Markup:
    return Markup(path)


def test_page_has_icon_and_description(site: Path, page_path: str) -> None:
    page = markup(site / page_path)
    (icon,) = page.find("link", rel="icon")
    assert (site / page_path).parent.joinpath(urlsplit(icon["href"]).path).is_file()
    (description,) = page.find("meta", name="description")
    assert len(description["content"]) >= 30


def test_descriptions_differ(site: Path) -> None:
    texts = [markup(site / path).find("meta", name="description")[0]["content"] for path in pages()]
    assert [text for text, number in Counter(texts).items() if number > 1] == []


def test_every_image_says_what_it_shows(site: Path, page_path: str) -> None:
    for image in markup(site / page_path).find("img"):
        alt = image.get("alt") or ""
        assert len(alt.split()) >= 3 and not alt.endswith((".png", ".svg")), image["src"]


def test_ids_are_unique(site: Path, page_path: str) -> None:
    assert [name for name, number in markup(site / page_path).ids.items() if number > 1] == []


def test_links_inside_the_site_arrive(site: Path, page_path: str) -> None:
    dead = []
    for link in markup(site / page_path).links:
        parts = urlsplit(link)
        if parts.scheme:
            continue
        target = (
            (site / page_path).parent.joinpath(unquote(parts.path)).resolve()
            if parts.path
            else site / page_path
        )
        if not target.is_file():
            dead.append(link)
        elif parts.fragment and target.suffix == ".html":
            if unquote(parts.fragment) not in markup(target).ids:
                dead.append(link)
    assert dead == []


def test_site_needs_no_jekyll(site: Path) -> None:
    """GitHub Pages leaves out folders such as _static unless this file is there."""
    assert (site / ".nojekyll").is_file()


def test_chinese_words_say_so(site: Path) -> None:
    """Source A is written in simplified, source B in traditional signs; a screen reader has to know."""
    first = (site / "book/idea/unequal-tokens.html").read_text(encoding="utf-8")
    second = (site / "book/idea/one-step.html").read_text(encoding="utf-8")
    assert '<span lang="zh-Hans">梯度累积时，分母覆盖整个累积窗口及所有卡；使用</span>' in first
    assert '<span lang="zh-Hant">被均分給每個</span>' in second


def test_folded_breaks_have_a_name(site: Path) -> None:
    text = (site / "book/idea/unequal-tokens.html").read_text(encoding="utf-8")
    assert "Show the break of A-31" in text and "Show the proof of A-29" in text


def test_the_year_of_the_copyright_is_the_books(site: Path) -> None:
    """Sphinx replaces it by the year of SOURCE_DATE_EPOCH, and the first second of all is in 1970."""
    text = (site / "book/index.html").read_text(encoding="utf-8")
    assert "Copyright 2026" in text

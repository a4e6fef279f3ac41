"""What the site tests share: the built site, one browser for all of them, and what a visit noticed.

The tests look at the site as it lies there (`_build/html`, or the folder named in SITE); they build
nothing. Without a browser they do not pass in silence: the run ends with `browser checks NOT RUN (n)`,
and fails if REQUIRE_BROWSER is 1.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from browser import ARGUMENTS, MISSING, browser_path
from playwright.sync_api import Browser, sync_playwright
from site_build import NOT_BUILT, SITE, pages
from site_server import serve
from site_visit import Visit


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "page_path" in metafunc.fixturenames:
        metafunc.parametrize("page_path", pages())


NOT_RUN = "browser checks NOT RUN"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "alone: measures time, so nothing else may run beside it")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if browser_path() or os.environ.get("REQUIRE_BROWSER") == "1":
        return
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.skip(reason=f"{NOT_RUN}: {MISSING}"))


def pytest_unconfigure(config: pytest.Config) -> None:
    """The very last line of the run, below pytest's own summary. Workers have no summary to look at."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    number = sum(NOT_RUN in str(report.longrepr) for report in skipped)
    if number:
        print(f"{NOT_RUN} ({number})")


@pytest.fixture(scope="session")
def site() -> Path:
    if not (SITE / "book" / "index.html").is_file():
        pytest.fail(NOT_BUILT, pytrace=False)
    return SITE


@pytest.fixture(scope="session")
def address(site: Path) -> Iterator[str]:
    with serve(site) as address:
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = browser_path()
    if path is None:
        pytest.fail(MISSING, pytrace=False)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Open an address in a fresh context: `visit(url, width=360, scheme="dark")`."""
    contexts = []

    def open_page(
        url: str, *, width: int = 1280, scheme: str = "light", javascript: bool = True, settle: bool = False
    ) -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=javascript
        )
        contexts.append(context)
        return Visit(context.new_page(), url, settle=settle)

    yield open_page
    for context in contexts:
        context.close()

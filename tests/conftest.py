"""What a machine may lack: checks that need it are not run, counted in the last lines, and never forgotten.

REQUIRE_NAMESPACE=1 turns a check that could not run into a failure; continuous integration sets it.
"""

import os
import shutil

import pytest

from helpers.counting.private_network import NEEDED, NoPrivateNetwork, enter


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "namespace: needs a private network namespace (Linux, root or unshare -Ur)"
    )


def has_namespaces() -> bool:
    """Can this user make a network and host-name namespace?"""
    try:
        enter()
    except NoPrivateNetwork:
        return False
    return shutil.which("hostname") is not None


def pytest_runtest_setup(item):
    if item.get_closest_marker("namespace") and not has_namespaces():
        cure = f"namespace checks NOT RUN: {NEEDED}"
        if os.environ.get("REQUIRE_NAMESPACE"):
            pytest.fail(cure, pytrace=False)
        pytest.skip(cure)


def pytest_terminal_summary(terminalreporter):
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for kind in ("namespace", "GPU"):
        count = sum(f"{kind} checks NOT RUN" in reason for reason in reasons)
        if count:
            terminalreporter.write_line(f"{kind} checks NOT RUN ({count})")

"""What a machine may lack: checks that need it are not run, counted in the last lines, and never forgotten.

REQUIRE_NAMESPACE=1 turns a check that could not run into a failure; continuous integration sets it.
"""

import os
import shutil
import subprocess

import pytest


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "namespace: needs a private network namespace (Linux, root or unshare -Ur)"
    )


def has_namespaces() -> bool:
    """Can this user make a network and host-name namespace?"""
    if shutil.which("unshare") is None or shutil.which("ip") is None:
        return False
    flags = "-un" if os.geteuid() == 0 else "-Urun"
    tried = subprocess.run(
        ["unshare", flags, "sh", "-c", "ip link set lo up && hostname a-name"], capture_output=True
    )
    return tried.returncode == 0


def pytest_runtest_setup(item):
    if item.get_closest_marker("namespace") and not has_namespaces():
        cure = "namespace checks NOT RUN: needs Linux with iproute2, and root or unprivileged user namespaces"
        if os.environ.get("REQUIRE_NAMESPACE"):
            pytest.fail(cure, pytrace=False)
        pytest.skip(cure)


def pytest_terminal_summary(terminalreporter):
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    for kind in ("namespace", "GPU"):
        count = sum(f"{kind} checks NOT RUN" in reason for reason in reasons)
        if count:
            terminalreporter.write_line(f"{kind} checks NOT RUN ({count})")

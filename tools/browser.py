"""Where this machine's Chromium or Chrome is, and how it is started: the same for tests and reports."""

import os
import shutil

MISSING = "no Chromium or Chrome found; cure: apt install chromium, or set CHROMIUM to its path"

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def browser_path() -> str | None:
    found = (shutil.which(name) for name in NAMES)
    return os.environ.get("CHROMIUM") or next((path for path in found if path), None)

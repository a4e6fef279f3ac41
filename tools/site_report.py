"""Lighthouse's view of the built site from a phone: the median of several runs against the book's goals.

Prints one line a page and exits with 1 when a goal is missed. The site is served on loopback, compressed
and with the caching of a static host; Lighthouse simulates a slow phone on a slow network.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from browser import ARGUMENTS, MISSING, browser_path
from site_server import serve

LIGHTHOUSE = "lighthouse@12.8.2"  # the last line that runs on node 20
RUNS = 5
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
# Formulas cost a little time, everything else does not depend on the page.
GOALS = {
    "book/index.html": (0.90, 0.95, 0.95, 0.95),
    "book/idea/unequal-tokens.html": (0.85, 0.95, 0.95, 0.95),
}
AUDITS = {"first-contentful-paint": "FCP", "largest-contentful-paint": "LCP", "total-blocking-time": "TBT"}


def missing(site: Path) -> str | None:
    """The first thing that is missing, with its cure; None when all is there."""
    if shutil.which("npx") is None:
        return "npx not found; cure: apt install npm (node 18 or newer)"
    if browser_path() is None:
        return MISSING
    if not (site / "book" / "index.html").is_file():
        return f"the site is not built ({site}); cure: make book"
    return None


def measure(url: str, folder: Path) -> dict:
    """One run of Lighthouse with its defaults, which are those of a phone."""
    result = folder / "lighthouse.json"
    command = [
        "npx", "--yes", LIGHTHOUSE, url, "--quiet", "--output=json", f"--output-path={result}",
        f"--only-categories={','.join(CATEGORIES)}", f"--chrome-flags={' '.join(ARGUMENTS)}",
    ]  # fmt: skip
    subprocess.run(command, check=True, env={**os.environ, "CHROME_PATH": browser_path() or ""})
    return json.loads(result.read_text(encoding="utf-8"))


def scores(run: dict) -> tuple[float, ...]:
    return tuple(run["categories"][name]["score"] for name in CATEGORIES)


def faults(run: dict) -> list[str]:
    """The audits that cost points, outside performance."""
    wanted = {ref["id"] for name in CATEGORIES[1:] for ref in run["categories"][name]["auditRefs"]}
    return sorted(id_ for id_ in wanted if run["audits"][id_]["score"] not in (None, 1))


def report(site: Path, runs: int) -> bool:
    """Print the table; true when every page meets its goals."""
    print(f"{'page':32}{'perf (goal)':>13}{'a11y':>6}{'best':>6}{'seo':>6}   {'FCP, LCP, TBT':22}KiB")
    good = True
    with serve(site) as address, tempfile.TemporaryDirectory() as folder:
        for page, goals in GOALS.items():
            measured = [measure(f"{address}/{page}", Path(folder)) for _ in range(runs)]
            medians = [statistics.median(column) for column in zip(*map(scores, measured), strict=True)]
            middle = sorted(measured, key=lambda run: scores(run)[0])[runs // 2]
            met = all(got >= goal for got, goal in zip(medians, goals, strict=True))
            good &= met
            times = ", ".join(middle["audits"][audit]["displayValue"] for audit in AUDITS)
            weight = middle["audits"]["total-byte-weight"]["numericValue"] / 1024
            rest = "".join(f"{value:6.2f}" for value in medians[1:])
            first = f"{medians[0]:.2f} ({goals[0]:.2f})"
            print(f"{page:32}{first:>13}{rest}   {times:22}{weight:.0f}{'' if met else '  MISSED'}")
            for fault in faults(middle):
                print(f"    loses points: {fault}")
    return good


if __name__ == "__main__":
    site = Path(os.environ.get("SITE", "_build/html")).resolve()
    problem = missing(site)
    if problem:
        sys.exit(problem)
    sys.exit(0 if report(site, int(os.environ.get("RUNS", RUNS))) else 1)

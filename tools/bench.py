"""Measure what the book promises about itself; every figure is a ratio or a count, taken in one run.

python tools/bench.py            all
python tools/bench.py start-up   how much faster `run` starts four ranks than torchrun does
python tools/bench.py rounding   DDP on four ranks against one process, in units of eps
python tools/bench.py schedule   what simulating and pricing a ring costs
python tools/bench.py transport  the ring sent message by message against gloo's own AllReduce
python tools/bench.py page       compressed bytes of a first view of the built chapter (after make test)
"""

import subprocess
import sys
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch

from helpers.algorithms import ring_allreduce
from helpers.cost.price import price_flat
from helpers.page import EPS64
from helpers.processes import run
from helpers.ranks.equivalence import integer_gradient, mlp_gradient
from helpers.ranks.greet import add_ranks
from helpers.ranks.schedules import race
from helpers.simulate import simulate

ROOT = Path(__file__).resolve().parents[1]
REPEATS = 5


def start_up() -> None:
    """run() of 4 warm ranks and torchrun of the same function, in turn."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr=127.0.0.1"]
    command = [*torchrun, "--nproc_per_node=4", str(ROOT / "tools" / "under_torchrun.py")]
    start = time.monotonic()
    run(add_ranks, ranks=4, backend="gloo")
    first = time.monotonic() - start
    ours, theirs = [], []
    for _ in range(REPEATS):
        start = time.monotonic()
        assert run(add_ranks, ranks=4, backend="gloo") == [10] * 4
        ours.append(time.monotonic() - start)
        start = time.monotonic()
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        theirs.append(time.monotonic() - start)
    ratio = median(theirs) / median(ours)
    print(f"start-up, 4 ranks: run {median(ours):.2f} s warm ({first:.1f} s the first time)")
    print(f"start-up, 4 ranks: torchrun {median(theirs):.1f} s")
    print(f"start-up: run is {ratio:.0f} times faster than torchrun (goal: at least 10)")
    assert ratio >= 10


def rounding() -> None:
    """The equivalence of the whole book, graded."""
    replicas, (alone,) = (
        run(mlp_gradient, ranks=4, backend="gloo"),
        run(mlp_gradient, ranks=1, backend="gloo"),
    )
    same = all(torch.equal(replica, replicas[0]) for replica in replicas)
    error = float((replicas[0] - alone).norm() / alone.norm()) / EPS64
    integers = run(integer_gradient, ranks=4, backend="gloo") + run(integer_gradient, ranks=1, backend="gloo")
    exact = all(torch.equal(one, integers[0]) for one in integers)
    print(f"DDP on 4 ranks: replicas bitwise equal: {same}; ||d|| = {error:.2f} eps ||g|| (goal: at most 4)")
    print(f"with integer data: equal to one process bit for bit: {exact}")
    assert same and exact and error <= 4


def schedule() -> None:
    """A simulated ring of 256 ranks with 1 MiB each against a plain loop; 1,024 ranks priced by events."""
    ring, data = ring_allreduce(256), [np.ones(2**17) for _ in range(256)]
    ratios = []
    for _ in range(REPEATS):
        start = time.monotonic()
        simulate(ring, data)
        middle = time.monotonic()
        plain_ring(data)
        ratios.append((middle - start) / (time.monotonic() - middle))
    print(f"simulating a ring of 256 ranks: {median(ratios):.2f} times a plain loop (goal: at most 2)")
    start = time.monotonic()
    price_flat(ring_allreduce(1024), 1e9, 20e-6, 50e9)
    print(f"pricing a ring of 1,024 ranks by events: {time.monotonic() - start:.1f} s (goal: under 10)")
    assert median(ratios) <= 2


def plain_ring(data: list[np.ndarray]) -> list[np.ndarray]:
    """The same steps without Schedule and without masks."""
    K, held = len(data), [array.copy() for array in data]
    chunks = [np.split(array, K) for array in held]
    for first, adds in ((0, True), (1, False)):
        for t in range(K - 1):
            sent = [chunks[i][(i + first - t) % K].copy() for i in range(K)]
            for i in range(K):
                mine = chunks[(i + 1) % K][(i + first - t) % K]
                if adds:
                    mine += sent[i]
                else:
                    mine[:] = sent[i]
    return held


def transport() -> None:
    """A ring of point-to-point messages from Python and gloo's all_reduce, in turn."""
    for ranks, mib in ((2, 16), (2, 64), (4, 16), (4, 64)):
        told = run(race, ranks=ranks, backend="gloo", timeout=120, mib=mib)[0]
        ratio = told["ring in Python"] / told["gloo"]
        print(f"transport, {ranks} ranks, {mib} MiB: {ratio:.2f} times gloo's all_reduce (goal: 1.5)")


def page() -> None:
    """Compressed bytes of the first view of every chapter, as a browser receives them, images apart."""
    sys.path.insert(0, str(ROOT / "tests" / "site"))
    from browser import ARGUMENTS, MISSING, browser_path
    from playwright.sync_api import sync_playwright
    from site_server import serve
    from site_visit import Visit

    site = ROOT / "_build" / "stored" / "_build" / "html"
    if not site.exists() or browser_path() is None:
        sys.exit(MISSING if site.exists() else f"{site}: not built; cure: make test")
    with serve(site) as address, sync_playwright() as play:
        browser = play.chromium.launch(executable_path=browser_path(), args=ARGUMENTS)
        for path in sorted(site.glob("book/[!b]*/*.html")):
            visit = Visit(browser.new_page(), f"{address}/{path.relative_to(site)}", settle=True)
            weight = sum(visit.weights().values()) / 1e3
            print(f"{path.stem}: {weight:.0f} KB compressed, first view without images (goal: 350 KB)")
            assert weight <= 350
        browser.close()


if __name__ == "__main__":
    parts = {
        "start-up": start_up,
        "rounding": rounding,
        "schedule": schedule,
        "transport": transport,
        "page": page,
    }
    unknown = set(sys.argv[1:]) - set(parts)
    if unknown:
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    for name in sys.argv[1:] or parts:
        parts[name]()

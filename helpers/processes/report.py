"""Reads what the ranks left in a run's folder: results, output, and how each one ended."""

import json
import re
import signal
from pathlib import Path

from helpers.processes.failure import ABORTED, KILLED, RAISED, RETURNED, SILENT, TIMED_OUT, End

# Frames above the caller's own code that mean "in a collective", or in the backward that DDP waits in.
WAITS = re.compile(r"/torch/(distributed|autograd/graph)")
RANK = "helpers/processes/rank.py"
LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python3[^/]*/")


def results_and_output(folder: Path, ranks: int) -> tuple[dict, list[str]]:
    """The results of the ranks that finished, and what each rank wrote (stderr too if it failed)."""
    import torch

    results, output = {}, []
    for rank in range(ranks):
        path = folder / f"{rank}.result"
        if path.exists():
            results[rank] = torch.load(path, map_location="cpu", weights_only=False)
        output.append(
            _read(folder / f"{rank}.out") + ("" if path.exists() else _read(folder / f"{rank}.err"))
        )
    return results, output


def how_it_ended(rank: int, exitcode: int | None, late: bool, folder: Path) -> End:
    """Classify one rank by its files, its exit code and whether the clock ran out on it."""
    if (folder / f"{rank}.result").exists():
        return End(RETURNED)
    error = folder / f"{rank}.error"
    if error.exists():
        told = json.loads(error.read_text())
        details = {"consequence": told["consequence"], "order": told["time"]}
        return End(RAISED, told["error"], told["traceback"], **details)
    if late:
        where, waiting = _position(_read(folder / f"{rank}.stack"))
        return End(TIMED_OUT, where=where, waiting=waiting)
    order = _modified(folder / f"{rank}.err")
    if exitcode is not None and exitcode < 0:
        name = signal.Signals(-exitcode).name
        if name == "SIGABRT":
            return End(ABORTED, _reason(_read(folder / f"{rank}.err")), order=order)
        return End(KILLED, name, order=order)
    return End(SILENT, f"exit code {exitcode}", order=order)


def _position(stack: str) -> tuple[str, bool]:
    """Where a rank's main thread stands in the caller's code, and whether that is inside a collective."""
    for thread in stack.split("\n\n"):
        frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', thread)
        if not any(
            path.endswith("helpers/processes/rank.py") and name == "_work" for path, _, name in frames
        ):
            continue
        own = [f for f in frames if not LIBRARY.search(f[0])]
        above = frames[: frames.index(own[0])]
        path, line, name = own[0]
        waiting = name == "_wait_for_all" or any(WAITS.search(path) for path, _, _ in above)
        return f"{Path(path).name} line {line}, in {name}", waiting
    return "", False


def _reason(errors: str) -> str:
    """The one line of a C++ abort that says why."""
    what = re.search(r"what\(\):\s*(.+)", errors)
    text = what.group(1).strip() if what else (errors.strip().splitlines() or ["no message"])[-1]
    if "op.preamble.length" in errors:
        return (
            "gloo received a message of another size, so a neighbour brought another shape or dtype; "
            "TORCH_DISTRIBUTED_DEBUG=DETAIL in the environment names every rank's shape"
        )
    return text


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


def _modified(path: Path) -> float:
    return path.stat().st_mtime if path.exists() else 0.0

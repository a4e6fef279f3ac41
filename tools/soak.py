"""Every way to fail, many times over: each must end cleanly every time.

python tools/soak.py [times]      default: 20
"""

import itertools
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import test_ddp as training  # noqa: E402
import test_failures as failures  # noqa: E402


def soak(name: str, check, times: int) -> bool:
    """Run one check `times` times; print one line; True when none failed."""
    for done in range(times):
        try:
            check()
        except BaseException as error:
            print(f"{name:45} {done} of {times} clean, then: {type(error).__name__}: {error}", flush=True)
            return False
    print(f"{name:45} {times} of {times} clean", flush=True)
    return True


def in_a_folder(check):
    """Give a check a fresh folder each time, as pytest's tmp_path does."""

    def checked():
        with tempfile.TemporaryDirectory() as folder:
            check(Path(folder))

    return checked


seeds = itertools.count()


def kill_and_resume():
    """Another random kill each time; the resumed run has to end with the bits of one that nobody killed."""
    seed = next(seeds)
    assert training.kill_and_resume(seed), f"seed {seed}: other bits"


def killed_while_writing(moment: str, folder: Path):
    left, first, same = training.killed_while_writing(moment, folder)
    assert same and first == left + 1, f"{moment}: left {left}, went on with {first}, same bits: {same}"


if __name__ == "__main__":
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    rows = [
        (n, lambda row=row: failures.check_failure(*row))
        for n, row in zip(failures.NAMES, failures.ROWS, strict=True)
    ]
    rows += [
        ("parent killed", in_a_folder(failures.check_parent_killed)),
        ("kernel interrupted", in_a_folder(failures.check_kernel_interrupted)),
        ("hostname cannot be resolved", failures.test_hostname_cannot_be_resolved),
    ]
    rows += [("killed at random and resumed", kill_and_resume)]
    rows += [
        (f"killed, checkpoint {moment}", in_a_folder(partial(killed_while_writing, moment)))
        for moment in training.MOMENTS
    ]
    results = [soak(name, check, times) for name, check in rows]
    sys.exit(0 if all(results) else 1)

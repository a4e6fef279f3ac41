"""Every way in which a rank fails, run for real: the call ends in time, names the rank, leaves nothing."""

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest
from jupyter_client.manager import start_new_kernel

from helpers.counting.private_network import run_inside
from helpers.processes import RankFailure, run
from helpers.processes.watch import still_runs
from helpers.ranks import faults
from helpers.ranks.greet import add_ranks

TIMEOUT, START_UP = 3.0, 20.0  # seconds; start-up is a fraction of a second on an idle machine
CULPRIT = 2

# fault, what it is told, the rank named, the kind, words of the message, ranks whose results are kept
ROWS = [
    (faults.raises, {}, CULPRIT, "raised", "rank 2 raised ValueError: this batch is empty", []),
    (faults.is_killed, {}, CULPRIT, "killed", "rank 2 was killed by SIGKILL", []),
    (faults.skips, {}, CULPRIT, "skipped a collective", "rank 2 returned while ranks 0, 1 and 3", [2]),
    (faults.sleeps, {"seconds": 600}, CULPRIT, "timed out", "rank 2 did not finish within 3 s", []),
    (faults.sends_another_shape, {"size": 1}, CULPRIT, "aborted", "brought another shape or dtype", []),
    (faults.sends_another_shape, {"size": 2**18}, CULPRIT - 1, "aborted", "another shape or dtype", []),
    (faults.exits_silently, {}, CULPRIT, "exited without a result", "(exit code 0)", []),
    (faults.calls_sys_exit, {}, CULPRIT, "raised", "rank 2 raised SystemExit", []),
    (faults.one_raises_alone, {}, CULPRIT, "raised", "no need to meet", [0, 1, 3]),
    (faults.loses_a_download, {}, CULPRIT, "raised", "rank 2 raised OSError: Connection reset", []),
    (faults.wraps_the_loss_of_another, {}, CULPRIT, "raised", "rank 2 raised ValueError: this batch", []),
    (faults.raises_without_words, {}, CULPRIT, "raised", "rank 2 raised Mute: (its message", [0, 1, 3]),
    (
        faults.waits_alone,
        {},
        CULPRIT,
        "skipped a collective",
        "returned while rank 2 still waited",
        [0, 1, 3],
    ),
]
NAMES = [f"{fault.__name__}-{'-'.join(map(str, told.values()))}".strip("-") for fault, told, *_ in ROWS]


def descendants() -> set[int]:
    return {p.pid for p in psutil.Process().children(recursive=True)}


def alive(pids) -> list[int]:
    return [p for p in pids if psutil.pid_exists(p) and psutil.Process(p).status() != psutil.STATUS_ZOMBIE]


def check_failure(fault, told, rank, kind, words, kept):
    """One row: shared with the soak run, which repeats it."""
    run(add_ranks, ranks=4, backend="gloo")
    before, start = descendants(), time.monotonic()
    with pytest.raises(RankFailure) as caught:
        run(fault, ranks=4, backend="gloo", timeout=TIMEOUT, culprit=CULPRIT, **told)
    failure, took = caught.value, time.monotonic() - start
    assert took < TIMEOUT + START_UP, f"took {took:.1f} s"
    assert (failure.rank, failure.kind) == (rank, kind), failure
    assert words in str(failure)
    assert failure.results == {r: "finished" for r in kept}
    assert len(failure.output) == 4
    assert descendants() == before, "a process is left"
    assert run(add_ranks, ranks=4, backend="gloo") == [10] * 4, "the next run has to work"


@pytest.mark.parametrize(("fault", "told", "rank", "kind", "words", "kept"), ROWS, ids=NAMES)
def test_failure_row(fault, told, rank, kind, words, kept):
    check_failure(fault, told, rank, kind, words, kept)


def test_what_a_rank_started_ends_with_it(tmp_path):
    with pytest.raises(RankFailure):
        run(faults.starts_helpers_and_sleeps, ranks=2, backend="gloo", timeout=2, folder=str(tmp_path))
    assert alive(pids_of_ranks(tmp_path, ranks=2)) == []


def test_a_group_runs_until_its_last_member_is_dead():
    """A killed process lives until it next runs, on a busy machine a while: the run waits for that."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    assert still_runs(child.pid)
    child.kill()
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert not still_runs(child.pid), "a zombie is dead"
    child.wait()
    assert not still_runs(child.pid)


def test_a_rank_that_raises_shows_its_own_traceback():
    with pytest.raises(RankFailure) as caught:
        run(faults.raises, ranks=4, backend="gloo", culprit=CULPRIT)
    assert "faults.py" in str(caught.value.__cause__) and "this batch is empty" in str(caught.value.__cause__)
    assert "\n" not in str(caught.value), "one line, so that a page shows one line"


def test_a_failure_can_be_sent_to_another_process():
    failure = RankFailure("rank 1 raised", 1, "raised", {0: "finished"}, ["", "x"], [])
    again = pickle.loads(pickle.dumps(failure))
    assert str(again) == str(failure) and vars(again) == vars(failure)


def test_a_late_rank_is_named_with_its_line():
    with pytest.raises(RankFailure) as caught:
        run(faults.sleeps, ranks=4, backend="gloo", timeout=1, culprit=1, seconds=600)
    assert "faults.py line" in str(caught.value) and "in sleeps" in str(caught.value)
    assert "ranks 0, 2 and 3 waited for it" in str(caught.value)


def test_detail_names_the_shapes(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    with pytest.raises(RankFailure, match="TensorShape") as caught:
        run(faults.sends_another_shape, ranks=4, backend="gloo", culprit=CULPRIT)
    assert caught.value.kind == "raised"


WAITS = """
    import sys
    from helpers.processes import run
    from helpers.ranks.faults import tells_pid_and_sleeps
    run(tells_pid_and_sleeps, ranks=4, backend="gloo", timeout=300, folder=sys.argv[1], seconds=300)
"""


def pids_of_ranks(folder: Path, ranks: int = 4) -> list[int]:
    """Wait until every rank has told its process id."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        told = [p for p in folder.glob("*.pid") if p.read_text()]
        if len(told) == ranks:
            return [int(p.read_text()) for p in told]
        time.sleep(0.05)
    raise AssertionError("the ranks did not start")


def check_parent_killed(folder: Path):
    script = folder / "waits.py"
    script.write_text(textwrap.dedent(WAITS))
    temporary = folder / "tmp"
    temporary.mkdir()
    parent = subprocess.Popen([sys.executable, script, folder], env={**os.environ, "TMPDIR": str(temporary)})
    ranks = pids_of_ranks(folder)
    everyone = [p.pid for p in psutil.Process(parent.pid).children(recursive=True)]
    assert set(ranks) <= set(everyone)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    end = time.monotonic() + 20
    while alive(everyone) and time.monotonic() < end:
        time.sleep(0.1)
    assert alive(everyone) == [], "processes outlive their parent"
    assert list(temporary.glob("ranks-*")) == [], "the folder of the run is left"


def test_parent_killed(tmp_path):
    check_parent_killed(tmp_path)


def check_kernel_interrupted(folder: Path):
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        code = textwrap.dedent(WAITS).replace("sys.argv[1]", repr(str(folder)))
        asked = client.execute(code, stop_on_error=False)
        ranks = pids_of_ranks(folder)
        start = time.monotonic()
        manager.interrupt_kernel()
        while (message := client.get_shell_msg(timeout=30))["parent_header"]["msg_id"] != asked:
            pass  # a slow kernel still answers who it is
        reply = message["content"]
        assert reply["ename"] == "KeyboardInterrupt", reply
        assert time.monotonic() - start < 10
        assert alive(ranks) == []
        again = """
            from helpers.ranks.greet import add_ranks
            assert run(add_ranks, ranks=4, backend="gloo") == [10] * 4
        """
        reply = client.execute(textwrap.dedent(again), reply=True, timeout=60)["content"]
        assert reply["status"] == "ok", reply
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_kernel_interrupted(tmp_path):
    check_kernel_interrupted(tmp_path)


@pytest.mark.namespace
def test_hostname_cannot_be_resolved():
    code = """
        import socket
        from helpers.processes import run
        from helpers.ranks.greet import add_ranks
        try:
            socket.getaddrinfo(socket.gethostname(), None)
            raise SystemExit("the name resolves, so this checks nothing")
        except socket.gaierror:
            print(socket.gethostname(), run(add_ranks, ranks=4, backend="gloo"))
    """
    told = run_inside(code, before="hostname no-such-host-anywhere;")
    assert told == "no-such-host-anywhere [10, 10, 10, 10]\n"

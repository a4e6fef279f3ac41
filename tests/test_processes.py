"""run(): results, order, output, environment, and what it refuses."""

import os
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch

import helpers
from helpers.processes import RankFailure, run
from helpers.processes.backend import Machine
from helpers.ranks import faults
from helpers.ranks.greet import add_ranks, greet

ROOT = Path(__file__).resolve().parents[1]


def test_helpers_come_from_this_repository():
    assert Path(helpers.__file__).resolve().is_relative_to(ROOT)


@pytest.mark.parametrize("ranks", (1, 2, 3, 4, 8))
def test_results_come_in_rank_order_and_the_ranks_really_met(ranks):
    assert run(greet, ranks=ranks) == [f"rank {r} of {ranks}" for r in range(ranks)]
    assert run(add_ranks, ranks=ranks) == [ranks * (ranks + 1) // 2] * ranks


def test_without_a_number_four_ranks_run_on_gloo():
    results = run(greet)
    assert len(results) == 4 and results.backend == "gloo" and "no GPU" in results.reason


def test_output_is_kept_by_rank_and_not_shown(capfd):
    results = run(faults.prints, ranks=3)
    assert results.output == [f"rank {r}: first\nrank {r}: second, past Python\n" for r in range(3)]
    assert capfd.readouterr() == ("", "")


def test_the_environment_of_the_moment_reaches_the_ranks(monkeypatch):
    run(greet, ranks=2)  # the server that forks ranks has started, with another environment
    monkeypatch.setenv("A_VARIABLE_SET_LATE", "yes")
    assert run(faults.reads_environment, ranks=2, name="A_VARIABLE_SET_LATE") == ["yes", "yes"]
    monkeypatch.delenv("A_VARIABLE_SET_LATE")
    assert run(faults.reads_environment, ranks=2, name="A_VARIABLE_SET_LATE") == [None, None]
    assert run(faults.reads_environment, ranks=2, name="RANK") == ["0", "1"]


def test_a_changed_module_is_seen_by_the_next_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    module = tmp_path / "changing_ranks.py"
    module.write_text("def f(rank, world_size):\n    return 'old'\n")
    from changing_ranks import f

    assert run(f, ranks=2) == ["old", "old"]
    module.write_text("def f(rank, world_size):\n    return 'new one'\n")
    assert run(f, ranks=2) == ["new one", "new one"]


def test_nothing_touches_cuda_and_helpers_are_not_preloaded():
    code = "import helpers.processes, sys, torch; print(torch.cuda.is_initialized())"
    assert os.popen(f"{sys.executable} -c '{code}'").read().strip() == "False"
    from multiprocessing import forkserver

    assert not any(name.startswith("helpers") for name in forkserver._forkserver._preload_modules)


def test_ranks_run_on_one_thread_and_leave_no_process_or_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", None)
    run(greet, ranks=2)
    before = {p.pid for p in psutil.Process().children(recursive=True)}
    assert run(faults.threads, ranks=2) == [1, 1]
    assert {p.pid for p in psutil.Process().children(recursive=True)} == before
    with pytest.raises(TypeError):
        run(faults.reads_environment, ranks=2, name=(n for n in "ab"))
    assert list(tmp_path.glob("ranks-*")) == []


def test_a_fork_of_a_rank_does_not_answer_for_it():
    assert run(faults.forks_and_returns, ranks=2) == ["rank", "rank"]


def test_ranks_start_processes_as_any_program_does():
    import multiprocessing

    default = multiprocessing.get_context(None).get_start_method()
    assert run(faults.start_method, ranks=2) == [default, default]


def test_threads_may_run_at_the_same_time():
    main = sys.modules["__main__"]
    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(lambda ranks: run(add_ranks, ranks=ranks), [2, 3, 4, 2]):
            assert len(set(results)) == 1
    assert sys.modules["__main__"] is main


def test_numpys_whole_numbers_are_whole_numbers():
    assert run(add_ranks, ranks=np.int64(2)) == [3, 3]


def test_idle_gpus_are_told(monkeypatch):
    monkeypatch.setattr("helpers.processes.found", lambda: Machine(2, True))
    with pytest.warns(UserWarning, match="4 ranks but 2 GPUs"):
        run(greet, ranks=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(greet, ranks=4, backend="gloo")


def a_local_function():
    def inner(rank, world_size):
        return rank

    return inner


def from_a_cell(rank, world_size):
    return rank


from_a_cell.__module__ = "__main__"

REFUSED = [
    ({"f": greet, "ranks": 0}, ValueError, "ranks=0: expected a whole number of at least 1"),
    ({"f": greet, "ranks": 2, "backend": "mpi"}, ValueError, "backend='mpi': expected 'gloo', 'nccl'"),
    ({"f": greet, "ranks": 2, "backend": "nccl"}, ValueError, "leave backend out to use gloo"),
    ({"f": greet, "ranks": 2, "timeout": 0}, ValueError, "timeout=0: expected seconds"),
    ({"f": greet, "ranks": 2, "timeout": float("nan")}, ValueError, "timeout=nan"),
    ({"f": greet, "ranks": 2, "timeout": 1e9}, ValueError, "expected at most 1e+06 seconds"),
    ({"f": faults.wants_a_timeout, "ranks": 2}, TypeError, "run() keeps timeout for itself"),
    ({"f": greet, "ranks": 2, "timeout": "5"}, TypeError, "timeout='5'"),
    ({"f": greet, "ranks": 2, "steps": 3}, TypeError, "unexpected keyword argument 'steps'"),
    ({"f": faults.raises, "ranks": 2}, TypeError, "missing a required argument: 'culprit'"),
    ({"f": "greet", "ranks": 2}, TypeError, "f='greet': expected a function"),
    ({"f": torch.nn.ReLU(), "ranks": 2}, TypeError, "expected a function"),
    ({"f": lambda rank, world_size: rank, "ranks": 2}, ValueError, "%%writefile my_ranks.py"),
    ({"f": a_local_function(), "ranks": 2}, ValueError, "%%writefile my_ranks.py"),
    ({"f": from_a_cell, "ranks": 2}, ValueError, "can only import functions from a module"),
    (
        {"f": faults.reads_environment, "ranks": 2, "name": (n for n in "ab")},
        TypeError,
        "name=<generator",
    ),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED, ids=[words[:24] for _, _, words in REFUSED])
def test_what_cannot_work_is_refused_by_name_and_with_the_cure(call, error, words):
    with pytest.raises(error) as refused:
        run(**call)
    assert words in str(refused.value)


def test_a_result_that_cannot_be_saved_is_named():
    with pytest.raises(RankFailure) as failed:
        run(faults.returns_a_generator, ranks=2)
    assert "returns_a_generator returned a generator that can't be saved" in str(failed.value)
    assert "return tensors, numbers, strings" in str(failed.value)

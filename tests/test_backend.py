"""The choice of backend over its whole table, without a GPU."""

import pytest

from helpers.processes.backend import Machine, choose

GPUS = (0, 1, 2, 3, 8)
RANKS = (None, 1, 2, 3, 4, 8, 9)


def expected(ranks, gpus, nccl):
    """The design's two sentences, written down a second time."""
    if ranks is None:
        return ("nccl", gpus) if gpus >= 2 and nccl else ("gloo", 4)
    return ("nccl", ranks) if nccl and 1 <= ranks <= gpus else ("gloo", ranks)


@pytest.mark.parametrize("nccl", (False, True))
@pytest.mark.parametrize("gpus", GPUS)
@pytest.mark.parametrize("ranks", RANKS)
def test_backend_choice_over_its_whole_table(ranks, gpus, nccl):
    choice = choose(ranks, Machine(gpus, nccl))
    assert (choice.backend, choice.ranks) == expected(ranks, gpus, nccl)
    assert choice.backend.lower() in choice.reason.lower()
    if choice.backend == "gloo" and ranks is not None and gpus and nccl:
        assert f"{ranks} ranks but {gpus} GPUs" in choice.reason, "it has to say why the GPUs stay idle"


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("gpus", GPUS)
def test_gloo_asked_for_is_gloo(ranks, gpus):
    assert choose(ranks, Machine(gpus, True), "gloo")[:2] == ("gloo", ranks or 4)


@pytest.mark.parametrize(
    ("ranks", "gpus", "nccl", "words"),
    [
        (2, 0, True, "found 0"),
        (4, 2, True, "found 2"),
        (None, 0, True, "found 0"),
        (2, 2, False, "without NCCL"),
    ],
)
def test_nccl_without_enough_gpus_is_refused(ranks, gpus, nccl, words):
    with pytest.raises(ValueError, match=r"backend='nccl'") as refused:
        choose(ranks, Machine(gpus, nccl), "nccl")
    assert words in str(refused.value) and "gloo" in str(refused.value)


def test_nccl_asked_for_with_gpus():
    assert choose(None, Machine(4, True), "nccl")[:2] == ("nccl", 4)
    assert choose(2, Machine(4, True), "nccl")[:2] == ("nccl", 2)


@pytest.mark.parametrize(
    ("ranks", "error", "words"),
    [
        (0, ValueError, "ranks=0: expected a whole number of at least 1"),
        (-1, ValueError, "ranks=-1"),
        (2.0, TypeError, "ranks=2.0"),
        (True, TypeError, "ranks=True"),
        ("4", TypeError, "ranks='4'"),
    ],
)
def test_impossible_numbers_of_ranks_are_refused(ranks, error, words):
    with pytest.raises(error) as refused:
        choose(ranks, Machine(0, False))
    assert words in str(refused.value)


def test_unknown_backend_is_refused():
    with pytest.raises(ValueError, match="backend='mpi': expected 'gloo', 'nccl' or None"):
        choose(2, Machine(0, False), "mpi")

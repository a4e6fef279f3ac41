"""The guards that the book gives away: silent where all is well, and each names what is not."""

import pytest

from helpers.processes import RankFailure, run
from helpers.ranks import guarded, traps


def refused(f, **options) -> str:
    with pytest.raises(RankFailure) as caught:
        run(f, ranks=2, backend="gloo", timeout=10, **options)
    return str(caught.value)


def test_synchronised_gradients_pass_and_others_do_not():
    assert len(run(traps.accumulate, ranks=2, backend="gloo", inside=["neither"], guard=True)) == 2
    assert "gradient of weight: 1 rank(s) differ" in refused(traps.accumulate, inside=["both"], guard=True)
    assert "gradient of weight: 1 rank(s) differ" in refused(traps.lost_wrapper, keep=False, guard=True)


@pytest.mark.parametrize("rank", (0, 1))
def test_one_element_on_one_rank_is_enough(rank):
    assert run(guarded.replicas, ranks=2, backend="gloo", differs_on=None) == [True, True]
    assert "parameter weight: 1 rank(s) differ" in refused(guarded.replicas, differs_on=rank)


def test_a_gradient_that_only_one_rank_has():
    assert "gradient of weight: only 1 rank(s) have one" in refused(guarded.one_gradient)


def test_samples_drawn_twice():
    assert run(traps.epochs, ranks=2, backend="gloo", set_epoch=True, guard=True)
    told = refused(traps.epochs, set_epoch=True, shard=False, guard=True)
    assert "were drawn more than once" in told


def test_nan_everywhere_is_the_same_and_no_gradient_is_none():
    assert run(guarded.nan_everywhere, ranks=2, backend="gloo") == [True, True]
    assert "no parameter has a gradient" in refused(guarded.no_gradient)

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
    for how in dict(keep=False), dict(keep=True, inner=True):
        assert "gradient of weight: 1 rank(s) differ" in refused(traps.lost_wrapper, guard=True, **how)


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


def test_indices_that_a_data_loader_hands_out():
    assert run(guarded.loaded, ranks=2, backend="gloo", samples=8, shard=True) == [2, 2]
    told = refused(guarded.loaded, samples=8, shard=False)
    assert "samples [0, 1] were drawn more than once" in told


def test_what_a_sampler_repeats_is_seen_in_a_whole_epoch_only():
    assert run(guarded.loaded, ranks=2, backend="gloo", samples=7, shard=True) == [2, 2]
    told = refused(guarded.loaded, samples=7, shard=True, whole=True)
    assert "samples [0] were drawn more than once" in told


def test_one_batch_too_many_shifts_the_next_epoch():
    with pytest.raises(RankFailure) as caught:
        run(traps.uneven, ranks=2, backend="gloo", timeout=10, batches=[3, 2], join=False, epochs=2)
    # Rank 1's 21 meets rank 0's 13, and so on; with equal batches each meets its like.
    assert caught.value.results == {1: [(11, 11.0), (12, 12.0), (21, 17.0), (22, 21.5)]}


def test_nan_everywhere_is_the_same_and_no_gradient_is_none():
    assert run(guarded.nan_everywhere, ranks=2, backend="gloo") == [True, True]
    assert "no parameter has a gradient" in refused(guarded.no_gradient)

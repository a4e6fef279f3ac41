"""What the chapter on one step promises, held without the chapter."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from helpers.average.sampling import deal, epochs, tally
from helpers.controls import idea as controls
from helpers.processes import run
from helpers.ranks import one_step, replicas


def sets_of_bits(ranks, moment) -> int:
    return len({rank[moment].numpy().tobytes() for rank in ranks})


def test_the_constructor_makes_replicas_equal_and_they_stay_so():
    ranks = run(replicas.moments, ranks=3, backend="gloo", steps=2)
    found = {moment: sets_of_bits(ranks, moment) for moment in ranks[0]}
    assert found == {
        "before DDP": 3,
        "after DDP(model)": 1,
        "after step 1": 1,
        "after step 2": 1,
        "buffers": 3,
        "buffers at the next forward": 1,
    }
    rank_0 = ranks[0]["before DDP"]
    assert all(rank["after DDP(model)"].equal(rank_0) for rank in ranks), "rank 0's weights, not another's"


@pytest.mark.parametrize(
    ("options", "moment"),
    [
        ({"init_sync": False}, "after DDP(model)"),
        ({"pushed": True}, "after step 2"),
        ({"rotated": True}, "after step 1"),
    ],
)
def test_three_ways_to_part_replicas(options, moment):
    ranks = run(replicas.moments, ranks=3, backend="gloo", steps=2, **options)
    assert sets_of_bits(ranks, moment) > 1


@pytest.mark.parametrize("ranks", (1, 2, 4, 8))
def test_gloo_and_ddp_reach_the_exact_weights(ranks):
    draw = np.random.default_rng(1)
    X, y = draw.integers(-3, 4, (16, 2)).astype(float), draw.integers(-3, 4, 16).astype(float)
    w = [Fraction(0)] * 2
    for _ in range(3):
        errors = [
            sum(Fraction(a) * b for a, b in zip(row, w, strict=True)) - Fraction(t)
            for row, t in zip(X, y, strict=True)
        ]
        w = [
            v - Fraction(1, 8 * 64) * sum(Fraction(row[j]) * e for row, e in zip(X, errors, strict=True))
            for j, v in enumerate(w)
        ]
    for function in (one_step.with_gloo, one_step.with_ddp):
        for rank in run(function, ranks=ranks, backend="gloo", X=X, y=y, steps=3, lr=1 / 64):
            assert [Fraction(float(value)) for value in rank] == w, function.__name__


def test_stored_bytes():
    parameters = 64 * 64
    whole = run(one_step.stored_bytes, ranks=2, backend="gloo", sharded=False)
    assert (
        whole == [{"parameters": 4 * parameters, "gradients": 4 * parameters, "moments": 8 * parameters}] * 2
    )
    for ranks in (2, 4):
        parts = run(one_step.stored_bytes, ranks=ranks, backend="gloo", sharded=True)
        assert [sum(part.values()) for part in parts] == [16 * parameters // ranks] * ranks


def test_ddp_splits_nothing():
    assert run(one_step.rows_seen, ranks=3, backend="gloo", batch=9, split=False) == [9] * 3
    assert run(one_step.rows_seen, ranks=3, backend="gloo", batch=10, split=True) == [4, 3, 3]


def test_a_loss_is_the_ranks_own_unless_coupled():
    for counts, together, alone in run(one_step.losses_of_one_share, ranks=2, backend="gloo", coupled=False):
        assert together == alone and counts == [0, 2, 0], "DDP's own collectives, in the second forward"
    for _, together, alone in run(one_step.losses_of_one_share, ranks=2, backend="gloo", coupled=True):
        assert together != alone


def test_inside_no_sync_the_gradient_is_the_ranks_own():
    inside = run(one_step.gradient_and_own, ranks=2, backend="gloo", in_no_sync=True)
    outside = run(one_step.gradient_and_own, ranks=2, backend="gloo", in_no_sync=False)
    assert all(left == own and sent == 0 for left, own, sent in inside)
    mean = [(a + b) / 2 for a, b in zip(inside[0][1], inside[1][1], strict=True)]
    assert all(left == pytest.approx(mean) and sent == 1 for left, _, sent in outside)


def test_averages_of_noise():
    ring = run(one_step.average_of_noise, ranks=4, backend="gloo", elements=1000, own_order=False)
    own = run(one_step.average_of_noise, ranks=4, backend="gloo", elements=1000, own_order=True)
    assert all(rank.equal(ring[0]) for rank in ring) and not all(rank.equal(own[0]) for rank in own)
    assert torch.allclose(ring[0], own[0], atol=1e-6)


@pytest.mark.parametrize(
    ("samples", "ranks", "drop_last", "expected"),
    [
        (10, 4, False, {"drawn": 12, "again": 2, "never": 0}),
        (10, 4, True, {"drawn": 8, "again": 0, "never": 2}),
        (12, 4, False, {"drawn": 12, "again": 0, "never": 0}),
        (3, 8, False, {"drawn": 8, "again": 3, "never": 0}),
        (7, 1, False, {"drawn": 7, "again": 0, "never": 0}),
    ],
)
def test_what_the_sampler_deals(samples, ranks, drop_last, expected):
    dealt = deal(samples, ranks, drop_last)
    assert tally(dealt, samples) == expected
    assert len({len(share) for share in dealt}) == 1


def test_the_exercise_on_a_large_data_set():
    dealt = deal(1_000_001, 8)
    assert tally(dealt, 1_000_001) == {"drawn": 1_000_008, "again": 7, "never": 0}


def test_set_epoch_reshuffles_and_forgetting_it_does_not():
    told, forgotten = epochs(50, 2, 3, set_epoch=True), epochs(50, 2, 3, set_epoch=False)
    assert len({str(order) for order in told}) == 3 and len({str(order) for order in forgotten}) == 1
    assert forgotten[0] == told[0]


def test_seeds_of_ones_own_lose_samples():
    seen = {i for share in deal(100, 4, shuffle=True, seeds=[0, 1, 2, 3]) for i in share}
    assert len(seen) < 100 and tally(deal(100, 4, shuffle=True), 100)["never"] == 0


@pytest.mark.parametrize(("samples", "ranks", "name"), [(0, 2, "samples"), (5, 0, "ranks")])
def test_impossible_deals_are_refused(samples, ranks, name):
    with pytest.raises(ValueError, match=f"{name}=0: expected at least 1"):
        deal(samples, ranks)


def test_the_sampler_control_follows():
    control = controls.sampler()
    size, group, drop = control.widget.children[0].children
    shown = control.widget.children[1]
    assert "12 drawn of 10: 2 more than once" in shown.value and "<b>0</b>" in shown.value
    drop.value = True
    assert "8 drawn of 10: 0 more than once (bold), 2 never" in shown.value
    size.value, group.value = 12, 3
    assert "12 drawn of 12: 0 more than once (bold), 0 never" in shown.value

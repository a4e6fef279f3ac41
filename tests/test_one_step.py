"""What the chapter on one step promises, held without the chapter."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from helpers import controls
from helpers.processes import run
from helpers.ranks import one_step
from helpers.sampling import deal, tally


def sets_of_bits(ranks, moment) -> int:
    return len({rank[moment].numpy().tobytes() for rank in ranks})


def test_the_constructor_makes_replicas_equal_and_they_stay_so():
    ranks = run(one_step.moments, ranks=3, backend="gloo", steps=2)
    found = {moment: sets_of_bits(ranks, moment) for moment in ranks[0]}
    assert found == {
        "before DDP": 3,
        "after DDP(model)": 1,
        "after step 1": 1,
        "after step 2": 1,
        "buffers": 3,
    }
    apart = run(one_step.moments, ranks=3, backend="gloo", steps=2, init_sync=False)
    assert sets_of_bits(apart, "after step 2") == 3
    rank_0 = ranks[0]["before DDP"]
    assert all(rank["after DDP(model)"].equal(rank_0) for rank in ranks), "rank 0's weights, not another's"


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


def test_collectives_are_counted():
    assert run(one_step.collectives_in_forward, ranks=2, backend="gloo", coupled=False) == [0, 0]
    assert run(one_step.collectives_in_forward, ranks=2, backend="gloo", coupled=True) == [1, 1]
    assert run(one_step.buckets_sent, ranks=2, backend="gloo", in_no_sync=True) == [0, 0]
    assert run(one_step.buckets_sent, ranks=2, backend="gloo", in_no_sync=False) == [1, 1]


def test_averages_of_noise():
    ring = run(one_step.average_of_noise, ranks=4, backend="gloo", elements=1000, own_order=False)
    own = run(one_step.average_of_noise, ranks=4, backend="gloo", elements=1000, own_order=True)
    assert all(rank.equal(ring[0]) for rank in ring) and not all(rank.equal(own[0]) for rank in own)
    assert torch.allclose(ring[0], own[0], atol=1e-6)


@pytest.mark.parametrize(
    ("samples", "ranks", "drop_last", "expected"),
    [
        (10, 4, False, {"drawn": 12, "twice": 2, "never": 0}),
        (10, 4, True, {"drawn": 8, "twice": 0, "never": 2}),
        (12, 4, False, {"drawn": 12, "twice": 0, "never": 0}),
        (3, 8, False, {"drawn": 8, "twice": 3, "never": 0}),
        (7, 1, False, {"drawn": 7, "twice": 0, "never": 0}),
    ],
)
def test_what_the_sampler_deals(samples, ranks, drop_last, expected):
    dealt = deal(samples, ranks, drop_last)
    assert tally(dealt, samples) == expected
    assert len({len(share) for share in dealt}) == 1


def test_the_exercise_on_a_large_data_set():
    dealt = deal(1_000_001, 8)
    assert sum(map(len, dealt)) - 1_000_001 == 7


def test_set_epoch_reshuffles_and_forgetting_it_does_not():
    assert deal(50, 2, shuffle=True, epoch=0) != deal(50, 2, shuffle=True, epoch=1)
    assert deal(50, 2, shuffle=True) == deal(50, 2, shuffle=True) == deal(50, 2, shuffle=True, epoch=0)


@pytest.mark.parametrize(("samples", "ranks", "name"), [(0, 2, "samples"), (5, 0, "ranks")])
def test_impossible_deals_are_refused(samples, ranks, name):
    with pytest.raises(ValueError, match=f"{name}=0: expected at least 1"):
        deal(samples, ranks)


def test_the_sampler_control_follows():
    control = controls.sampler()
    size, group, drop = control.widget.children[0].children
    shown = control.widget.children[1]
    assert "12 drawn of 10: 2 twice" in shown.value and "<b>0</b>" in shown.value
    drop.value = True
    assert "8 drawn of 10: 0 twice (in bold), 2 never" in shown.value
    size.value, group.value = 12, 3
    assert "12 drawn of 12: 0 twice (in bold), 0 never" in shown.value

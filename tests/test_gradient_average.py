"""What the chapter on averaging gradients promises, held without the chapter."""

import pytest
import torch

from helpers.average.sync_batch_norm import SyncedBatchNorm
from helpers.controls import idea as controls
from helpers.page import EPS64, rounding_bound
from helpers.processes import run
from helpers.ranks import gradient_average as average


def error(layer="nothing", ranks=4, dtype="float64", cuts=None) -> float:
    """Relative error of DDP's gradient against one process; the replicas have to be equal bit for bit."""
    replicas = run(average.gradient, ranks=ranks, backend="gloo", layer=layer, dtype=dtype, cuts=cuts)
    (alone,) = run(average.gradient, ranks=1, backend="gloo", layer=layer, dtype=dtype)
    assert all(replica.equal(replicas[0]) for replica in replicas)
    return float((replicas[0] - alone).norm() / alone.norm())


@pytest.mark.parametrize("layer", ("nothing", "LayerNorm", "RMSNorm"))
@pytest.mark.parametrize("ranks", (2, 4, 8))
def test_layers_that_do_not_look_across_samples_agree_to_rounding(layer, ranks):
    assert error(layer, ranks) <= 4 * EPS64


def test_float32_has_its_own_yardstick():
    eps = torch.finfo(torch.float32).eps
    assert 1e3 * EPS64 < error(dtype="float32") <= 4 * eps


@pytest.mark.parametrize("ranks", (2, 4))
def test_batch_norm_is_another_function_and_synced_is_not(ranks):
    assert error("BatchNorm", ranks) > 0.1
    assert error("synced BatchNorm", ranks) <= rounding_bound(16)


def test_unequal_shares_are_wrong_in_any_precision():
    assert error(cuts=[1, 3, 6, 6]) > 0.1 and error(cuts=[4, 4, 4, 4]) <= 4 * EPS64


def test_the_synced_batch_norm_on_one_rank_is_torchs():
    (ours,) = run(average.gradient, ranks=1, backend="gloo", layer="synced BatchNorm")
    (torchs,) = run(average.gradient, ranks=1, backend="gloo", layer="BatchNorm")
    assert float((ours - torchs).norm() / torchs.norm()) <= rounding_bound(16)


def test_torchs_own_sync_batch_norm_refuses_the_cpu():
    """The reason for ours; when torch learns it, ours can go."""
    assert "GPU" in run(average.torchs_sync_batch_norm, ranks=2, backend="gloo")[0]
    assert isinstance(average.LAYERS["synced BatchNorm"](), SyncedBatchNorm)


def test_dropout_agrees_in_expectation_only():
    def off(draws, p=0.3):
        four = run(average.mean_gradient_over_draws, ranks=4, backend="gloo", draws=draws, p=p)[0]
        (one,) = run(average.mean_gradient_over_draws, ranks=1, backend="gloo", draws=draws)
        return float((four - one).norm() / one.norm())

    assert off(1) > 0.1 and off(16_384) < 0.015 < off(16_384, p=0.4)


def test_masks():
    same = run(average.masks, ranks=3, backend="gloo", seed_by_rank=False)
    assert same[0] == same[1] == same[2]
    own = run(average.masks, ranks=3, backend="gloo", seed_by_rank=True)
    assert len(set(map(tuple, own))) == 3


def test_the_order_of_additions_shows_from_three_ranks_on():
    def share(ranks):
        ring, in_order = run(average.ring_and_rank_order, ranks=ranks, backend="gloo", elements=10_000)[0]
        assert torch.allclose(ring, in_order, atol=1e-5)
        return float((ring != in_order).double().mean())

    assert share(2) == 0.0
    assert 0.1 < share(3) < share(4) < share(8) < 0.7


def test_clipping_after_and_before():
    gradients = [[3.0, 4.0], [0.0, 0.5]]
    options = {"ranks": 2, "backend": "gloo", "limit": 1.0}
    after, also = run(average.clipped, gradients=gradients, after=True, **options)
    before = run(average.clipped, gradients=gradients, after=False, **options)[0]
    assert after == also and after == pytest.approx([1.5 / 7.3125**0.5, 2.25 / 7.3125**0.5], rel=1e-5)
    assert before == pytest.approx([0.3, 0.65])
    short = [[0.3, 0.4], [0.0, 0.5]]
    assert run(average.clipped, gradients=short, after=True, **options)[0] == pytest.approx([0.15, 0.45])
    assert run(average.clipped, gradients=short, after=False, **options)[0] == pytest.approx([0.15, 0.45])


def test_ranks_and_micro_batches_are_interchangeable():
    (alone,) = run(average.gradient, ranks=1, backend="gloo")
    for ranks, micro_batches in ((4, 1), (2, 2), (1, 4), (2, 8)):
        got = run(average.accumulated_gradient, ranks=ranks, backend="gloo", micro_batches=micro_batches)[0]
        assert float((got - alone).norm() / alone.norm()) <= 4 * EPS64
    wrong = run(average.accumulated_gradient, ranks=2, backend="gloo", micro_batches=2, divide=False)[0]
    assert torch.allclose(wrong, 2 * alone)


def test_drift_and_its_cure():
    def apart(average_every, steps=200):
        options = {"steps": steps, "average_every": average_every}
        weights = torch.tensor(run(average.drift, ranks=4, backend="gloo", **options))
        return float((weights.max(0).values - weights.min(0).values).max())

    assert apart(None) == pytest.approx(3, abs=0.05), "each rank at its own optimum"
    assert apart(1) < apart(5) < 2, "just before the weights are averaged"


def test_the_place_in_the_buffer_decides_the_bits():
    first, again, moved = (
        run(average.ring_and_rank_order, ranks=4, backend="gloo", elements=10_000, offset=offset)[0][0]
        for offset in (0, 0, 5_000)
    )
    assert first.equal(again) and not first.equal(moved) and torch.allclose(first, moved, atol=1e-5)


def test_the_cut_control_follows():
    control = controls.cut_in_two()
    *samples, cut, shown = control.widget.children
    assert "they agree" in shown.value and "<b>2</b>" in shown.value
    cut.value = 1
    assert "mean of means <b>1.667</b>, mean of all <b>2</b>: they differ" in shown.value
    samples[0].value = 2
    samples[3].value = -2
    assert "they agree" in shown.value, "unequal shares that agree by luck"

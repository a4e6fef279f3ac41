"""The models of the chapter on scaling against hand computation, brute force, torch and real processes."""

from fractions import Fraction
from itertools import product
from math import inf, log, pi, sqrt

import numpy as np
import pytest
import torch

from helpers.controls.scaling import REGIMES, describe, scaling
from helpers.cost import price
from helpers.llama import mini as mini_llama
from helpers.models import LLAMA3_8B
from helpers.processes import run
from helpers.ranks import gradient_noise as noise_ranks
from helpers.ranks import periodic, server, trajectory
from helpers.scaling import conv_nets, gradient_noise, intensity, letters, staleness, stragglers, trust
from helpers.scaling import noisy_quadratic as quadratic
from helpers.scaling.speedup import amdahl, finish, gustafson, watch
from helpers.scaling.step_time import ONE_BUCKET, TOKENS, step


def test_one_bucket_hides_nothing_and_costs_one_ring():
    found = step(64, alpha=0, cap_mb=ONE_BUCKET)
    whole = price.ring(64, 2 * LLAMA3_8B.parameters, 0, 50e9)
    assert found.exposed == pytest.approx(whole) and found.sending == pytest.approx(whole)
    assert found.compute == pytest.approx(6 * LLAMA3_8B.parameters * TOKENS / 400e12)
    assert found.efficiency == pytest.approx(found.compute / (found.compute + whole))


@pytest.mark.parametrize("ranks", (2, 64, 1024))
def test_exposed_lies_between_what_is_left_over_and_everything(ranks):
    found = step(ranks)
    assert max(0, found.sending - 2 / 3 * found.compute) <= found.exposed <= found.sending


def test_one_card_waits_for_nobody():
    assert step(1).exposed == 0 and step(1).efficiency == 1


def test_what_a_ring_makes_slow_is_not_slow_by_halving_and_doubling():
    one = step(64, 8192, cost=price.halving_doubling)
    assert (one.exposed, one.sending) == (pytest.approx(0.0595, abs=1e-4), pytest.approx(0.6713, abs=1e-4))
    times = [step(K, TOKENS * 64 / K, cost=price.halving_doubling).seconds for K in (128, 256, 512, 1024)]
    assert times == pytest.approx([2.018, 1.067, 0.887, 0.800], abs=1e-3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (dict(ranks=0), "ranks=0"),
        (dict(ranks=2.5), "ranks=2.5"),
        (dict(ranks=2, tokens=0), "tokens=0"),
        (dict(ranks=2, B=0), "B=0"),
        (dict(ranks=2, alpha=-1), "alpha=-1"),
        (dict(ranks=2, backward=2), "backward=2"),
    ],
)
def test_a_step_that_cannot_be_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        step(**wrong)


def test_the_watched_cards_are_those_of_a_hand_count():
    found = watch([20] * 64, wait=5)
    assert (found.steps_a_tick, found.busy) == (Fraction(1, 25), Fraction(4, 5))
    throttled = watch([25] + [20] * 63, wait=0)
    assert throttled.busy == Fraction(25 + 63 * 20, 64 * 25) and throttled.steps_a_tick == Fraction(1, 25)
    for wrong, message in ((([], 0), "compute="), (([0], 0), "compute="), (([1], -1), "wait=-1")):
        with pytest.raises(ValueError, match=message):
            watch(*wrong)


def test_without_latency_the_embedding_is_what_sticks_out():
    found = step(64, 8192, alpha=0)
    rest = found.exposed - price.ring(64, 2 * LLAMA3_8B.vocabulary * LLAMA3_8B.width, 0, 50e9)
    assert found.exposed == pytest.approx(0.0456, abs=5e-5) and rest == pytest.approx(0.0043, abs=5e-5)


@pytest.mark.parametrize("workers", (1, 2, 5, 8))
def test_the_scheduler_keeps_both_laws(workers):
    alone, items = 3, 120
    one = alone + items
    assert Fraction(one, finish(alone, items, workers)) == amdahl(Fraction(alone, one), workers)
    more = items * workers
    parallel = finish(alone, more, workers)
    assert Fraction(alone + more, parallel) == gustafson(Fraction(alone, parallel), workers)
    assert Fraction(one, finish(alone, items + 1, workers)) != amdahl(Fraction(alone, one), workers)


@pytest.mark.parametrize("law", (amdahl, gustafson))
def test_a_law_without_workers_is_refused(law):
    for alone, workers in ((0.5, 0), (1.5, 2)):
        with pytest.raises(ValueError, match=f"alone={alone}, workers={workers}"):
            law(alone, workers)


def test_order_statistics_that_have_a_closed_form():
    assert stragglers.expected(2, 1.0) - 1 == pytest.approx(1 / sqrt(pi), rel=1e-12)
    assert stragglers.expected(3, 1.0) - 1 == pytest.approx(1.5 / sqrt(pi), rel=1e-12)
    assert stragglers.expected(5, 1.0, place=3) == pytest.approx(1)
    assert sum(stragglers.expected(64, 0.1, place=p) for p in range(1, 65)) == pytest.approx(64)
    with pytest.raises(ValueError, match="place=65"):
        stragglers.expected(64, 0.1, place=65)
    with pytest.raises(ValueError, match="sigma=-0.1"):
        stragglers.expected(64, -0.1)


def test_dropping_the_last_four_of_64_does_fewer_gradients():
    first_60, everybody = (stragglers.expected(64, 0.02, place) for place in (60, 64))
    assert 60 / first_60 == pytest.approx(58.3, abs=0.05) and 64 / everybody == pytest.approx(61.1, abs=0.05)


def test_a_replay_is_the_recursion_it_stands_for():
    order, lr = staleness.arrivals([1] * 4, 50), 0.3
    w = [1.0] * 4  # the value that the gradient of update n was read from is w[n]
    for n in range(50):
        w.append(w[-1] - lr * w[n])
    assert staleness.replay(order, lr) == w[4:]


@pytest.mark.parametrize("periods", ([1, 1], [3, 7, 11], [1] * 9 + [5]))
def test_the_mean_lag_does_not_depend_on_speeds(periods):
    lags = staleness.lags(staleness.arrivals(periods, 4000))
    assert np.mean(lags) == pytest.approx(len(periods) - 1, abs=0.05)


def test_clocks_and_workers_that_cannot_be_are_refused():
    for periods in ([], [0, 1]):
        with pytest.raises(ValueError, match="periods="):
            staleness.arrivals(periods, 3)
    with pytest.raises(ValueError, match="together=0"):
        staleness.lags([0, 1], together=0)
    with pytest.raises(ValueError, match="lag=-1"):
        staleness.limit(-1)


@pytest.mark.parametrize("lag", (0, 1, 3, 10))
def test_the_limit_separates_growing_from_settling(lag):
    limit = staleness.limit(lag)
    assert staleness.growth(lag, 0.999 * limit) < 1 < staleness.growth(lag, 1.001 * limit)
    assert staleness.searched(lag) == pytest.approx(limit, rel=1e-6)
    assert staleness.searched(lag) != pytest.approx(staleness.limit(lag + 1), rel=1e-6)  # K for K - 1


def test_staleness_costs_a_fifth_in_a_flat_direction_and_more_in_the_steep_one():
    assert 4 * staleness.limit(3) == pytest.approx(1.78, abs=5e-3)
    assert 64 * staleness.limit(63) == pytest.approx(1.58, abs=5e-3)
    left = {}
    for workers in (1, 64):
        order, rate = staleness.arrivals([1] * workers, 100 * workers), 0.9 * staleness.limit(workers - 1)
        left[workers] = {h: abs(staleness.replay(order, rate * h)[-1]) for h in (1, 0.01)}
    assert log(left[64][0.01]) / log(left[1][0.01]) == pytest.approx(0.8, abs=0.01)
    assert left[64][1] > 1e4 * left[1][1] and staleness.replay([0], lr=1.0) == [0.0]


def test_who_pushes_often_has_fresh_gradients_at_the_same_mean():
    order = staleness.arrivals([1, 9, 9, 9], updates=4000)
    lags = staleness.lags(order)
    first = {worker: order.index(worker) for worker in range(4)}
    used = [worker for number, worker in enumerate(order) if number > first[worker]]
    often = np.mean([lag for lag, worker in zip(lags, used, strict=True) if worker == 0])
    seldom = np.mean([lag for lag, worker in zip(lags, used, strict=True) if worker == 1])
    assert np.mean(lags) == pytest.approx(3, abs=0.02)
    assert often == pytest.approx(1 / 3, abs=0.01) and seldom == pytest.approx(11, abs=0.1)


def test_a_real_server_follows_any_order_to_the_bit():
    order = staleness.arrivals([2, 3, 3], 40)
    told = run(server.asynchronous, ranks=4, backend="gloo", lr=0.4, updates=40, order=order)
    assert told[0]["w"] == staleness.replay(order, 0.4) and told[0]["order"] == order
    assert sum(worker["pushed"] for worker in told[1:]) == 40 + 3


def test_a_race_is_replayed_in_the_order_in_which_it_came():
    options = dict(lr=0.2, updates=40, rest=[0.001, 0.002, 0.004])
    (told, *_) = run(server.asynchronous, ranks=4, backend="gloo", timeout=60, **options)
    assert told["w"] == staleness.replay(told["order"], 0.2) != staleness.replay([0] * 40, 0.2)


def test_two_norms_give_the_noise_exactly_in_expectation():
    """All batches of one and of two samples, drawn with replacement, in fractions."""
    samples = [(Fraction(1), Fraction(2)), (Fraction(-1), Fraction(4)), (Fraction(3), Fraction(0))]
    mean = [sum(g) / 3 for g in zip(*samples, strict=True)]
    square = sum(m**2 for m in mean)
    trace = sum(sum(x**2 for x in g) for g in samples) / 3 - square

    def norm(batch):
        drawn = list(product(samples, repeat=batch))
        return sum(sum((sum(g) / batch) ** 2 for g in zip(*b, strict=True)) for b in drawn) / len(drawn)

    found = gradient_noise.from_norms(norm(1), norm(2), batch=1, ranks=2)
    assert (found.trace, found.square) == (trace, square)
    with pytest.raises(ValueError, match="ranks=1"):
        gradient_noise.from_norms(1.0, 1.0, batch=1, ranks=1)
    with pytest.raises(ValueError, match="large=-1"):
        gradient_noise.from_norms(1.0, -1.0, batch=1, ranks=2)
    assert gradient_noise.from_norms(4.0, 1.0, batch=1, ranks=2).scale == inf


def test_the_hook_reads_the_noise_of_a_network_but_not_from_the_same_samples():
    exact = gradient_noise.exact(*noise_ranks.network()).scale
    options = dict(ranks=4, backend="gloo", timeout=60, what="network", batch=4, steps=100)
    found = gradient_noise.from_norms(*run(noise_ranks.norms, **options)[0], 4, 4)
    assert found.scale == pytest.approx(exact, rel=0.25)
    copies = run(noise_ranks.norms, same_samples=True, **{**options, "steps": 3})[0]
    assert abs(gradient_noise.from_norms(*copies, 4, 4).scale) < 1e-3 * exact


def test_estimates_of_the_noise_scale_spread_ever_more():
    off = {}
    for trained in (0, 20, 65):
        exact = letters.noise(letters.descend(trained)).scale
        found = gradient_noise.repeated(trained, batch=32, ranks=4, steps=100, repeats=30)
        off[trained] = sum(abs(each / exact - 1) > 0.1 for each in found)
    assert off[0] == 0 < off[20] < 15 <= off[65]


def test_counted_pairs_give_what_torch_gives():
    logits = letters.descend(3)
    first, second = (torch.from_numpy(each.copy()) for each in letters.pairs())
    weight = torch.from_numpy(logits.copy()).requires_grad_()
    loss = torch.nn.functional.cross_entropy(weight[first], second)
    loss.backward()
    assert float(letters.loss(logits)) == pytest.approx(loss.item(), rel=1e-12)
    assert np.allclose(letters.gradient(logits), weight.grad.numpy(), rtol=0, atol=1e-12)


def test_noise_of_the_letters_is_that_of_every_pair():
    logits = letters.descend(5)
    p, trace = letters.softmax(logits), 0.0
    mean = letters.gradient(logits)
    for (a, b), share in np.ndenumerate(letters.frequencies()):
        one = np.zeros_like(mean)
        one[a] = p[a]
        one[a, b] -= 1
        trace += share * ((one - mean) ** 2).sum()
    assert letters.noise(logits).trace == pytest.approx(trace, rel=1e-10)


def test_a_target_out_of_reach_is_said():
    with pytest.raises(ValueError, match="target=1.0"):
        letters.steps_to(target=1.0, batch=8, runs=1, most=3)
    with pytest.raises(ValueError, match="batch=0"):
        letters.steps_to(target=2.4, batch=0)


@pytest.mark.parametrize("seed", (1, 3))
def test_the_law_of_the_critical_batch_does_not_hang_on_the_seed(seed):
    steps = {batch: letters.steps_to(2.4, batch, seed) for batch in (16, 128, 512, 4096)}
    slope = (steps[16] - steps[4096]) / (1 / 16 - 1 / 4096)
    fewest = steps[4096] - slope / 4096
    bend = (steps[16] ** 2 - steps[4096] ** 2) / (16**-2 - 4096**-2)
    for batch in (128, 512):
        assert fewest + slope / batch == pytest.approx(steps[batch], rel=0.12)
    assert sqrt(steps[4096] ** 2 + bend * (512**-2 - 4096**-2)) < 0.88 * steps[512]
    assert 4096 * steps[4096] > 8 * 16 * steps[16]


def test_single_gradients_are_those_of_a_loop():
    model, inputs, labels = noise_ranks.network()
    inputs, labels = inputs[:12], labels[:12]
    each = []
    for line, label in zip(inputs, labels, strict=True):
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(line[None])[0], label).backward()
        each.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
    each = torch.stack(each)
    found = gradient_noise.exact(model, inputs, labels)
    assert found.square == pytest.approx(float(each.mean(0).square().sum()), rel=1e-10)
    assert found.trace == pytest.approx(float(each.var(0, correction=0).sum()), rel=1e-10)


def test_the_recursion_ends_in_the_stationary_variance():
    for lr, batch in ((0.01, 1), (0.16, 16), (1.5, 3)):
        assert quadratic.moments(lr, batch, 4000)[1] == pytest.approx(quadratic.stationary(lr, batch))
    with pytest.raises(ValueError, match="lr=2.0"):
        quadratic.stationary(2.0, 1)


def test_simulated_mean_and_variance_are_the_recursions():
    w = quadratic.simulated(0.2, batch=4, steps=15, runs=20_000, start=3.0, h=0.5, sigma=2.0)
    mean, variance = quadratic.moments(0.2, batch=4, steps=15, start=3.0, h=0.5, sigma=2.0)
    assert abs(w.mean() - mean) < 4 * sqrt(variance / w.size)
    assert abs(w.var() / variance - 1) < 4 * sqrt(2 / w.size)


def test_the_square_root_is_for_adam_what_linear_is_for_sgd():
    """Ground covered a sample, where the noise dominates, and size of an update, with 16 times the batch."""

    def moved(lr, batch, samples=3200):
        draw, w = torch.Generator().manual_seed(0), torch.zeros(5000, requires_grad=True)
        adam = torch.optim.Adam([w], lr=lr)
        for _ in range(samples // batch):
            before = w.detach().clone()
            w.grad = 0.03 + torch.randn(w.shape, generator=draw) / batch**0.5
            adam.step()
        return -float(w.detach().mean()) / samples, float((w.detach() - before).var())

    ground, size = moved(1e-3, batch=1)
    for lr, further, larger in ((1e-3, 0.25, 1), (4e-3, 1, 16), (16e-3, 4, 256)):
        found = moved(lr, batch=16)
        assert found[0] / ground == pytest.approx(further, rel=0.1), lr
        assert found[1] / size == pytest.approx(larger, rel=0.15), lr


def test_layerwise_rules_forget_the_size_of_the_gradient():
    weight, gradient = torch.full((4,), 3.0), torch.tensor([1.0, -2.0, 2.0, 0.5])
    assert torch.allclose(trust.lars(weight, gradient), trust.lars(weight, 100 * gradient))
    assert torch.allclose(trust.lamb(weight, gradient), trust.lamb(weight, 100 * gradient))
    assert not torch.allclose(trust.sgd(weight, gradient), trust.sgd(weight, 100 * gradient))


def test_flops_of_attention_are_counted_only_where_it_is_written_out():
    T = 32
    assert mini_llama.counted_flops(T) == mini_llama.formula(T) > mini_llama.formula(T, attention=False)


def test_the_three_networks_have_their_published_sizes():
    assert conv_nets.macs_and_parameters(conv_nets.vgg16)[1] == 138_357_544
    assert conv_nets.macs_and_parameters(conv_nets.resnet101)[1] == 44_549_160
    assert conv_nets.macs_and_parameters(conv_nets.inception_v3)[1] == 23_834_568


def test_a_layer_reads_its_weights_once_whatever_the_rows():
    flops, moved = intensity.counted(rows=16, width=4096)
    assert (flops, moved) == (2 * 16 * 4096**2, 2 * 4096**2 + 2 * 2 * 16 * 4096)
    assert intensity.utilisation(142) < 1 - 1e-9 < intensity.utilisation(143)
    with pytest.raises(ValueError, match="rows=0"):
        intensity.counted(0)


def test_dividing_the_rate_by_the_ranks_leaves_the_trajectory():
    ((one, samples),) = run(trajectory.trained, ranks=1, backend="gloo", timeout=60)
    told = run(trajectory.trained, ranks=2, backend="gloo", timeout=60, lr=0.05)
    assert sorted(told[0][1] + told[1][1]) == samples
    assert float((told[0][0] - one).abs().max()) > 1e-3


def test_averaging_parameters_at_every_step_is_ddp_for_sgd_and_seldom_still_learns():
    def train(**options):
        return run(periodic.train, ranks=2, backend="gloo", timeout=60, steps=24, **options)[0]

    off = {
        name: float(
            (train(every=1, optimizer=name, lr=lr) - train(every=None, optimizer=name, lr=lr)).abs().max()
        )
        for name, lr in (("SGD", 8.0), ("Adam", 0.1))
    }
    assert off["SGD"] < 1e-12 < 1e-3 < off["Adam"]
    assert float(letters.loss(train(every=8).numpy())) < 2.7


def test_moving_a_slider_changes_what_is_told():
    control = scaling(cards=64, regime=REGIMES[0])
    assert f"{step(64).seconds:.3f} s" in control.picture and "64 cards" in control.picture
    sliders, text = control.widget.children[:-1], control.widget.children[-1]
    sliders[0].value = 1024
    assert text.value == describe(1024, REGIMES[0]) != control.picture
    sliders[5].value = "halving-doubling"
    assert f"{step(1024, cost=price.halving_doubling).seconds:.3f} s" in text.value


def test_a_control_that_is_not_there_is_refused():
    for wrong in (dict(regime="x"), dict(regime=REGIMES[0], by="x")):
        with pytest.raises(ValueError, match="='x': expected one of"):
            describe(64, **wrong)

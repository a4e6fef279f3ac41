"""Grids, schedules and the planner: what they promise for all sizes, and what they refuse."""

from fractions import Fraction
from functools import partial
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.controls.hybrid import START, ask, control, describe
from helpers.hybrid import pipeline_schedule as pipelines
from helpers.hybrid import planner, traffic
from helpers.hybrid.planner import Job, Machine, plan
from helpers.hybrid.rank_grid import LLAMA3, MEGATRON, derived_dp, grid
from helpers.llama.kept_activations import followed, kept
from helpers.llama.shards import KEEP, chunk_layers, layer_activations, stage_layers, stage_parameters
from helpers.memory.needed import FP32_GRADIENTS, MIXED, state_bytes
from helpers.models import LLAMA3_8B, LLAMA3_70B, LLAMA3_405B, Llama3
from helpers.processes import run
from helpers.ranks import cut_model, experts, hybrid, sequence
from helpers.ranks.pipeline_parallel import run_stage

small = st.integers(1, 4)
giant = partial(Job, LLAMA3_405B, recipe=FP32_GRADIENTS, stage=1)


@given(tp=small, cp=small, pp=small, dp=small, order=st.sampled_from([MEGATRON, LLAMA3, "dp-tp-cp-pp"]))
def test_every_rank_has_one_place_and_one_group_an_axis(tp, cp, pp, dp, order):
    places = grid(order, tp=tp, cp=cp, pp=pp, dp=dp)
    shape = [size for _, size in reversed(places.axes)]
    for rank in range(places.size):
        at = list(places.coordinates(rank).values())[::-1]
        assert at == [int(i) for i in np.unravel_index(rank, shape)]
    for axis, size in places.axes:
        groups = {tuple(places.group(rank, axis)) for rank in range(places.size)}
        assert sorted(sum(groups, ())) == list(range(places.size))
        assert {len(group) for group in groups} == {size}
        for node in (1, 2, 8):
            across = any(len({rank // node for rank in group}) > 1 for group in groups)
            assert places.crosses(axis, node) == across
            shared = [sum(r // node == rank // node for r in group) for group in groups for rank in group]
            told = places.per_node(axis, node)
            assert told <= min(shared)
            if not {tp, cp, pp, dp} - {1, 2, 4}:  # nodes and groups lie in step
                assert {told} == set(shared)


def test_groups_are_those_of_the_sources():
    # The example in Megatron's parallel_state.py, and figure 5 of the Llama 3 paper.
    three = grid("tp-dp-pp", tp=2, dp=3, pp=4)
    assert (three.group(0, "dp"), three.group(23, "dp")) == ([0, 2, 4], [19, 21, 23])
    places = grid(LLAMA3, tp=2, cp=2, pp=2, dp=2)
    assert [places.group(0, axis) for axis in ("tp", "cp", "pp", "dp")] == [[0, 1], [0, 2], [0, 4], [0, 8]]


@given(p=st.integers(1, 9), m=st.integers(1, 12), f=st.integers(1, 5), b=st.integers(1, 5))
@settings(max_examples=60, deadline=None)
def test_both_schedules_have_the_bubble_of_the_formula(p, m, f, b):
    for write in (pipelines.gpipe, pipelines.one_f_one_b):
        rows = write(p, m)
        spans = pipelines.play(rows, f, b)
        assert len(spans) == 2 * p * m
        idle = pipelines.idle(spans)
        assert idle == [(p - 1) * (f + b)] * p
        assert Fraction(sum(idle), p * m * (f + b)) == Fraction(p - 1, m)
    assert pipelines.in_flight(rows) == [planner.in_flight(m, p, stage) for stage in range(p)]


@given(p=st.integers(2, 6), groups=st.integers(1, 3), v=st.integers(2, 4))
@settings(max_examples=30, deadline=None)
def test_interleaving_divides_the_bubble_and_keeps_more(p, groups, v):
    m = p * groups
    rows = pipelines.interleaved(p, m, v)
    idle = pipelines.idle(pipelines.play(rows))
    assert Fraction(sum(idle), p * m * v * 3) == Fraction(p - 1, m * v)
    assert pipelines.in_flight(rows) == [planner.in_flight(m, p, stage, v) for stage in range(p)]


def test_a_first_stage_takes_token_ids_and_leaves_its_inputs_alone():
    torch.manual_seed(0)
    stage, ids = torch.nn.Embedding(10, 4), [torch.tensor([1, 2]), torch.tensor([2, 3])]
    run_stage(pipelines.gpipe(1, 2)[0], stage, ids, lambda y, i: y.sum(), (2, 4))
    assert stage.weight.grad.sum(1).tolist() == [0, 4, 8, 4, 0, 0, 0, 0, 0, 0]
    rows, linear = [torch.ones(2, 4)], torch.nn.Linear(4, 4)
    run_stage(pipelines.gpipe(1, 1)[0], linear, rows, lambda y, i: y.sum(), (2, 4))
    assert not rows[0].requires_grad and rows[0].grad is None


def test_a_slow_stage_holds_up_all_others():
    spans = pipelines.play(pipelines.one_f_one_b(4, 6), [1, 1, 1, 2], [2, 2, 2, 4])
    idle = pipelines.idle(spans)
    assert idle[0] == idle[1] == idle[2] == idle[3] + 18


def test_a_schedule_in_which_everybody_waits_is_refused():
    with pytest.raises(ValueError, match="every stage waits"):
        pipelines.play([[("B", 0), ("F", 0)], [("F", 0), ("B", 0)]])


def test_the_405b_has_the_parameters_of_its_name():
    assert LLAMA3_405B.parameters == 405_853_388_800


@pytest.mark.parametrize("model", [LLAMA3_8B, LLAMA3_70B, LLAMA3_405B])
@pytest.mark.parametrize("pp", [1, 4, 16])
def test_stages_share_out_all_layers_and_parameters(model, pp):
    assert sum(stage_layers(model, pp)) == model.layers
    assert sum(stage_parameters(model, pp, tp=1)) == model.parameters


@pytest.mark.parametrize(("model", "pp", "v"), [(LLAMA3_405B, 16, 4), (LLAMA3_8B, 8, 2)])
def test_chunks_share_out_all_layers_and_parameters(model, pp, v):
    chunks = chunk_layers(model, pp, v)
    assert {len(each) for each in chunks} == {v} and sum(map(sum, chunks)) == model.layers
    assert sum(stage_parameters(model, pp, 1, v)) == model.parameters


@pytest.mark.parametrize(
    ("model", "tp", "pp", "dp", "zero"), [(LLAMA3_8B, 1, 1, 64, 0), (LLAMA3_70B, 8, 16, 4, 1)]
)
def test_planned_states_are_what_torch_cuts_to_the_byte(model, tp, pp, dp, zero):
    asked = dict(ranks=1, backend="gloo", timeout=120, model=model, tp=tp, pp=pp, dp=dp, zero=zero)
    counted = run(cut_model.states, **asked)[0]
    assert counted == [state_bytes(n, MIXED, dp, zero) for n in stage_parameters(model, pp, tp)]


@pytest.mark.parametrize("model", [LLAMA3_8B, LLAMA3_70B, LLAMA3_405B])
@pytest.mark.parametrize("tp", [1, 8])
@pytest.mark.parametrize("keep", KEEP)
def test_planned_activations_are_what_autograd_keeps(model, tp, keep):
    counted = kept(model, 8192, tp, keep)
    assert abs(layer_activations(model, 8192, tp, keep) / counted - 1) < 0.01


@pytest.mark.parametrize("keep", traffic.PASSES)
def test_planned_traffic_is_that_of_the_layer_that_was_followed(keep):
    seen, one = followed(LLAMA3_8B, 8192, 8, keep), 8192 * LLAMA3_8B.width * 2
    assert traffic.tensor(LLAMA3_8B, 8192, 1, 8, 1, keep) == seen["passes"] * one * 7 // 8
    sent = traffic.of_step(LLAMA3_8B, 8192, 1, MIXED, tp=8, pp=34)["pp"]
    assert sent == 2 * seen["out"]  # an activation on, a gradient back


def test_traffic_is_what_real_ranks_send():
    tiny = Llama3(layers=4, width=8, hidden=8, kv_width=8)
    made = partial(torch.ones, dtype=torch.float64)
    local = partial(run, backend="gloo", timeout=60)
    told = local(sequence.cut_attention, ranks=2, x=made(16, 8), weights=made(3, 8, 8))
    sent = {rank["passes"] * (2 - 1) // 2 * traffic.BF16 for rank in told}  # (K-1)/K of each pass
    assert sent == {traffic.context(tiny, 16, 1, 1, 2, 1)}
    asked = dict(order=MEGATRON, sizes=dict(tp=2, pp=2, dp=1), schedule=pipelines.one_f_one_b(2, 3))
    asked |= dict(weights=[(made(32, 8), made(8, 32))] * 2, inputs=made(3, 2, 8), targets=made(3, 2, 8))
    told = local(hybrid.three_axes, ranks=4, average_over="tp", **asked)
    assert {traffic.BF16 * rank["sent"] for rank in told} == {traffic.pipeline(tiny, 2, 3, 2)}
    assert traffic.pipeline(tiny, 2, 3, 2) == 2 * traffic.pipeline(tiny, 2, 3, 2, parts=2)


def test_attention_without_the_others_is_another():
    told = run(
        sequence.cut_attention,
        ranks=2,
        backend="gloo",
        timeout=60,
        x=torch.eye(8),
        weights=torch.ones(3, 8, 8),
        gather=False,
    )
    assert all(rank["y"].shape == (4, 8) and rank["passes"] == 0 for rank in told)


@pytest.mark.parametrize(("m", "v"), [(64, 1), (3, 1), (32, 2), (32, 4)])
def test_the_fullest_rank_is_the_fullest(m, v):
    job, tp, pp, dp = giant(8192, m * 64, interleaved=v), 8, 16, 64
    rows = pipelines.one_f_one_b(pp, m) if v == 1 else pipelines.interleaved(pp, m, v)
    one = layer_activations(LLAMA3_405B, 8192, tp)
    parts = zip(
        stage_parameters(LLAMA3_405B, pp, tp, v),
        pipelines.in_flight(rows),
        chunk_layers(LLAMA3_405B, pp, v),
        strict=True,
    )
    by_rank = [state_bytes(n, FP32_GRADIENTS, dp, 1) + most * max(layers) * one for n, most, layers in parts]
    assert sum(planner.fullest(job, m, tp, 1, pp, dp).values()) == max(by_rank)


def test_gradients_travel_over_dp_and_cp_together():
    places = grid(LLAMA3, tp=8, cp=2, dp=4)
    assert planner.speed("dp", places, Machine(64)) == Machine(64).across
    assert planner.speed("dp", grid("dp-cp-tp", dp=4, cp=2, tp=8), Machine(64)) == 450e9
    assert planner.speed("dp", grid("dp-cp-tp", dp=2, cp=8, tp=4), Machine(64)) == 400e9  # eight ports
    assert planner.speed("pp", grid("pp-tp", pp=16, tp=4), Machine(64)) == 50e9  # one


def innermost(job, gpus, **sizes):
    """Axes that are innermost in the best orders, and the axis that sends most."""
    orders = ["-".join(order) for order in permutations(axis for axis in sizes if sizes[axis] > 1)]
    found = {order: plan(job, Machine(gpus), order=order, **sizes) for order in orders}
    seconds = {order: sum(p.seconds.values()) for order, p in found.items()}
    best = {o.split("-")[0] for o, s in seconds.items() if s < 1.001 * min(seconds.values())}
    sent = next(iter(found.values())).sent
    return best, max(sent, key=sent.get), len({round(s, 6) for s in seconds.values()})


@pytest.mark.parametrize(("length", "axis"), [(1024, "dp"), (8192, "tp")])
def test_the_axis_that_sends_most_goes_inside(length, axis):
    assert innermost(Job(LLAMA3_8B, length, 8), 64, tp=8, dp=8) == ({axis}, axis, 2)


def test_the_sequence_axis_inside_serves_the_gradients_too():
    """DP sends most, but its gradients are averaged over the sequence axis as well, which is best inside."""
    third = innermost(giant(8192, 128), 16_384, tp=8, cp=16, pp=16, dp=8)
    small = innermost(Job(LLAMA3_8B, 8192, 8, recipe=FP32_GRADIENTS, stage=1), 512, tp=8, cp=8, dp=8)
    assert third[:2] == small[:2] == ({"cp"}, "dp")


def test_two_that_fit_side_by_side_are_no_matter_of_who_sends_most():
    found = innermost(Job(LLAMA3_8B, 8192, 64, stage=3), 64, tp=2, pp=4, dp=8)
    assert found == ({"tp"}, "dp", 4)


def test_another_axis_would_go_inside_if_it_sent_more(monkeypatch):
    long = (giant(131_072, 128), 16_384)
    assert innermost(*long, tp=8, cp=16, pp=16, dp=8)[:2] == ({"tp"}, "tp")
    context = traffic.context
    monkeypatch.setattr(traffic, "context", lambda *a: 100 * context(*a))
    assert innermost(*long, tp=8, cp=16, pp=16, dp=8)[:2] == ({"cp"}, "cp")


PUBLISHED = [
    (8192, 8192, 2048, dict(tp=8, cp=1, pp=16, dp=64)),
    (16_384, 8192, 2048, dict(tp=8, cp=1, pp=16, dp=128)),
    (16_384, 131_072, 128, dict(tp=8, cp=16, pp=16, dp=8)),
]


@pytest.mark.parametrize("chunks", [1, 4, 8])
@pytest.mark.parametrize(("gpus", "length", "batch", "axes"), PUBLISHED)
def test_the_published_grids_fit(gpus, length, batch, axes, chunks):
    found = plan(giant(length, batch, interleaved=chunks), Machine(gpus), **axes)
    assert found.fits and found.micro_batches == batch // axes["dp"]
    assert sum(found.memory.values()) < 80e9


REFUSED = [
    (Job(LLAMA3_8B, 8192, 64), 64, dict(), "memory: states alone are 128.5 GB of 80.0 GB"),
    (giant(8192, 2048, stage=0), 8192, dict(tp=8), "memory: states alone"),
    (giant(131_072, 128), 16_384, dict(tp=8, cp=16, pp=16, dp=4), "world size: .* = 8,192, not 16,384 GPUs"),
    (Job(LLAMA3_8B, 8192, 64), 64, dict(tp=3), "tp=3.*expected a product that divides 64"),
    (Job(LLAMA3_8B, 8192, 64), 64, dict(tp=16), "tp: 8 key/value heads can't be cut in 16"),
    (Job(LLAMA3_8B, 8192, 60), 64, dict(tp=8), "batch: 60 is no multiple of micro-batch 1 x dp 8"),
    (Job(LLAMA3_8B, 8192, 96, interleaved=2), 64, dict(pp=8), "12 micro-batches are no multiple of 8"),
    (Job(LLAMA3_8B, 131_072, 64), 64, dict(tp=4), "memory: states and activations"),
    (Job(LLAMA3_8B, 8192, 64), 64, dict(pp=64), "pp: 32 layers for 64 stages"),
    (Job(LLAMA3_8B, 8190, 64), 64, dict(cp=4, tp=8), "cp: 8,190 tokens can't be cut in 8 pieces"),
    (giant(8192, 2048, interleaved=2), 8192, dict(tp=8, pp=16), "states and activations are 85.9 GB"),
    (Job(LLAMA3_8B, 8192, 64, interleaved=3), 64, dict(pp=8), "chunks=3: 32 layers can't be cut in 8 x 3"),
    (Job(LLAMA3_8B, 8192, 64), 64, dict(tp=2, dp=32.0), "dp=32.0: expected a whole number"),
    (Job(LLAMA3_8B, 8192, 64), 64, dict(cp=2, order="tp-pp-dp"), "cp=2: expected an axis of tp-pp-dp"),
]


@pytest.mark.parametrize(("job", "gpus", "axes", "reason"), REFUSED)
def test_others_are_refused_with_a_reason(job, gpus, axes, reason):
    found = plan(job, Machine(gpus), **axes)
    assert not found.fits
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError("; ".join(found.reasons))


def test_zero_moves_the_passes_of_its_stages():
    moved = [traffic.data(1000, 1, 10, MIXED, stage) for stage in range(4)]
    assert moved == [3600, 3600, 3600, 5400]  # 2P, 2P, 2P, 3P of two bytes, times 9/10
    assert traffic.data(1000, 4, 10, MIXED, stage=2) == 9000  # scattered after each of four


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: grid(MEGATRON, tp=0), "tp=0"),
        (lambda: grid("tp-dp", pp=2), "pp=2: expected an axis of tp-dp"),
        (lambda: grid("tp-dp", tp=2).stride("pp"), "axis='pp'"),
        (lambda: grid("tp-dp", tp=2).crosses("pp", 8), "axis='pp'"),
        (lambda: grid("tp-tp", tp=2), "each axis once"),
        (lambda: derived_dp(64, tp=-8, pp=-1), "tp=-8"),
        (lambda: derived_dp(64.0, tp=8), "world_size=64.0"),
        (lambda: Job(LLAMA3_8B, 8192, 64, micro_batch=0), "micro_batch=0"),
        (lambda: Job(LLAMA3_8B, 8192, 64, interleaved=0), "interleaved=0"),
        (lambda: Job(LLAMA3_8B, 8192, 0), "batch=0"),
        (lambda: Machine(64, node=0), "node=0"),
        (lambda: traffic.tensor(LLAMA3_8B, 1, 1, 0, 1), "tp=0"),
        (lambda: traffic.tensor(LLAMA3_8B, 1, 1, 2, 1, keep="all"), "keep='all'"),
        (lambda: traffic.data(10, 1, 2, MIXED, 4), "stage=4"),
        (lambda: stage_parameters(LLAMA3_8B, 1, 3), "tp=3: expected a divisor of 1,024"),
        (lambda: layer_activations(LLAMA3_8B, 100, 3), "tp=3: expected a divisor of 100"),
        (lambda: pipelines.play(pipelines.gpipe(3, 2), (1, 2)), "expected one number, or 3"),
        (lambda: pipelines.interleaved(2, 3, 2), "micro_batches=3: expected a multiple of 2"),
        (lambda: hybrid.train_gpt(0, 1, axis="both", steps=1), "axis='both'"),
        (lambda: grid("tp-dp", tp=2).coordinates(2), "rank=2: expected 0 to 1"),
        (lambda: derived_dp(10, tp=4), "divides 10"),
        (lambda: pipelines.gpipe(0, 1), "stages=0"),
        (lambda: pipelines.one_f_one_b(1, 0), "micro_batches=0"),
        (lambda: stage_layers(LLAMA3_8B, 35), "pp=35: expected 1 to 34"),
        (lambda: layer_activations(LLAMA3_8B, 8, keep="all"), "keep='all'"),
        (lambda: kept(LLAMA3_8B, 8, 1, keep="all"), "keep='all'"),
        (lambda: planner.micro_batches(10, 1, 4), "batch=10"),
        (lambda: hybrid.called(0, 1, [1], how="always"), "how='always'"),
        (lambda: hybrid.cost(0, 1, how="pp"), "how='pp'"),
        (lambda: sequence.norm_between(0, 1, [], [], kind="row"), "kind='row'"),
        (lambda: experts.twice(0, 1, collective="barrier"), "collective='barrier'"),
    ],
)
def test_bad_input_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_the_control_says_what_the_planner_says():
    shown = control()._repr_mimebundle_()["text/html"]
    assert "It fits." in shown and "300.65" in shown
    refused = ask(**{**START, "pp": 1})
    assert "No. memory: states alone" in describe(refused, 80)

"""What prices are made of: model shapes, buckets, ports, NCCL's own estimate, fits, published tables."""

import csv

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.algorithms import (
    BY_RANKS,
    halving_doubling_allreduce,
    hierarchical_allreduce,
    in_network_allreduce,
    rails_allreduce,
    ring_allreduce,
)
from helpers.buckets import MIB, bucket_bytes
from helpers.cost import fit, nccl_model, price
from helpers.cost.clusters import FOLDER, measured
from helpers.cost.load import busiest_port, load
from helpers.cost.network import Link, Network, flat
from helpers.cost.pipeline import pipelined
from helpers.llama.like import arrival
from helpers.models import LLAMA3_8B, LLAMA3_70B
from helpers.simulate import check_complete, simulate

GRADIENT = 2 * LLAMA3_8B.parameters


def test_llama_has_the_parameters_of_the_source():
    assert LLAMA3_8B.parameters == 8_030_261_248 and LLAMA3_70B.parameters == 70_553_706_496
    assert len(LLAMA3_8B.shapes()) == 32 * 9 + 3


@pytest.mark.parametrize(
    ("model", "dtype", "buckets"),
    [(LLAMA3_8B, torch.bfloat16, 162), (LLAMA3_8B, torch.float32, 194), (LLAMA3_70B, torch.bfloat16, 482)],
)
def test_buckets_of_the_real_shapes(model, dtype, buckets):
    found = bucket_bytes(arrival(model), dtype)
    assert len(found) == buckets
    assert sum(found) == model.parameters * torch.empty(0, dtype=dtype).element_size()


def test_a_bucket_is_never_smaller_than_its_largest_tensor():
    assert bucket_bytes([("b", (MIB,)), ("a", (10,))], torch.float32, cap_mb=1) == [4 * MIB, 40]
    with pytest.raises(ValueError, match="cap_mb=0"):
        bucket_bytes([("a", (10,))], cap_mb=0)


def test_rings_keep_one_port_a_node_busy_and_rails_all():
    network = Network(Link(0, 50e9), Link(0, 450e9), gpus=8)
    one = load(ring_allreduce(16), 16.0, network)
    assert np.flatnonzero(one.across_out).tolist() == [7, 15]
    assert np.flatnonzero(one.across_in).tolist() == [0, 8]
    for rails in (1, 2, 4, 8):
        every = load(rails_allreduce(2, 8, rails), 16.0, network)
        assert (every.across_out > 0).sum() == 2 * rails
        assert every.across_out.sum() == pytest.approx(one.across_out.sum())


@settings(max_examples=30, deadline=None)
@given(n=st.integers(1, 4), g=st.integers(1, 4), M=st.floats(1, 1e12))
def test_events_never_beat_the_busiest_port(n, g, M):
    network = Network(Link(0, 50e9), Link(0, 450e9), gpus=g)
    for schedule in (hierarchical_allreduce(n, g), rails_allreduce(n, g, g), ring_allreduce(n * g)):
        assert price.price(schedule, M, network).seconds >= busiest_port(schedule, M, network) * (1 - 1e-12)


@pytest.mark.parametrize(("nodes", "gpus"), ((1, 1), (2, 1), (1, 3), (3, 2), (8, 8)))
def test_a_switch_that_adds_gives_the_sum_and_half_the_bytes_across(nodes, gpus):
    schedule = in_network_allreduce(nodes, gpus)
    arrays = [
        np.random.default_rng(rank).integers(-99, 100, 24).astype(float) for rank in range(nodes * gpus)
    ]
    done = simulate(schedule, arrays)
    check_complete(schedule, done.masks)
    assert all(np.array_equal(held, sum(arrays)) for held in done.arrays[: nodes * gpus])
    network = Network(Link(0, 50e9), Link(0, 450e9), gpus=gpus)
    across = load(schedule, 24.0, network).across_out[: nodes * gpus]
    assert across == pytest.approx([24 / gpus] * (nodes * gpus))


def test_a_switch_needs_nodes_and_gpus():
    with pytest.raises(ValueError, match="in-network-allreduce: nodes=0"):
        in_network_allreduce(0, 2)


def test_a_pipeline_goes_from_the_sum_of_its_phases_to_the_longest_resource():
    phases = [("NVLink", 1.0), ("network", 4.0), ("NVLink", 1.0)]
    assert pipelined(phases, 1) == 6
    assert pipelined(phases, 2) == pytest.approx(5.0)  # 0.5 + 2 + 2 + 0.5, worked out by hand
    assert 4 < pipelined(phases, 100) < 4.1
    assert pipelined([("NVLink", 3.0), ("network", 1.0), ("NVLink", 3.0)], 100) < 6.1
    with pytest.raises(ValueError, match="pieces=0"):
        pipelined(phases, 0)


def test_far_partners_first_send_the_largest_halves_across():
    network = Network(Link(0, 50e9), Link(0, 450e9), gpus=8)
    near = load(halving_doubling_allreduce(64), 64.0, network).across_out.max()
    far = load(halving_doubling_allreduce(64, far_first=True), 64.0, network).across_out.max()
    assert (near, far) == (2 * (4 + 2 + 1), 2 * (32 + 16 + 8))


def test_node_bound_holds_for_every_algorithm_that_ships():
    network = Network(Link(0, 50e9), Link(0, 450e9), gpus=4)
    bound = 2 * 3 / 4 * 1e9 / (4 * 50e9)
    for name, write in BY_RANKS.items():
        if "allreduce" in name:
            assert busiest_port(write(16), 1e9, network) >= bound * (1 - 1e-12), name


@settings(max_examples=30, deadline=None)
@given(K=st.integers(1, 30), alpha=st.floats(0, 1e-3), M=st.floats(0, 1e10))
def test_a_ring_of_equal_links_takes_as_long_wherever_alpha_is_spent(K, alpha, M):
    found = price.price(ring_allreduce(K), M, flat(alpha, 50e9), alpha_on_the_way=True).seconds
    assert found == pytest.approx(price.ring(K, M, alpha, 50e9), rel=1e-12, abs=1e-18)


def test_a_ring_of_unequal_hops_waits_for_its_longest_chain():
    """126 hops in a row round 64 ranks in 8 nodes: 16 of them across, added up by hand."""
    network = Network(Link(14e-6, 50e9), Link(3.4e-6, 450e9), gpus=8)
    chain = 16 * 14e-6 + 110 * 3.4e-6
    assert price.price(ring_allreduce(64), 0, network, alpha_on_the_way=True).seconds == pytest.approx(chain)
    assert price.price(ring_allreduce(64), 0, network).seconds == pytest.approx(126 * 14e-6)


def test_worlds_of_16384_are_priced_in_closed_form():
    assert price.ring(16_384, GRADIENT, 20e-6, 50e9) == pytest.approx(
        2 * 16_383 * (20e-6 + GRADIENT / 16_384 / 50e9)
    )
    network = Network(Link(20e-6, 50e9), Link(4e-6, 450e9), gpus=8)
    rails, tiers = price.rails(2048, 8, 8, GRADIENT, network), price.hierarchical(2048, 8, GRADIENT, network)
    assert tiers < rails, "2,047 hops across instead of 16,383"
    assert price.halving_doubling(16_384, 0, 20e-6, 50e9) == pytest.approx(28 * 20e-6)


def test_nccl_chooses_by_size():
    """The numbers of NCCL's formulas, worked out by hand for 64 GPUs in 8 nodes."""
    assert nccl_model.latency("ring", 8, 8) == pytest.approx(8.4 + 112 * 3.4 + 14 * 14)
    assert nccl_model.latency("tree", 8, 8) == pytest.approx(8.4 + 2 * (7 * 4 + 3 * 14))
    ring = nccl_model.estimate("ring", 8, 8, 25 * MIB, 384e9)
    assert ring.total == pytest.approx(1.4 * 585.2 + 25 * MIB / (384e3 * 64 / 126))
    tree = nccl_model.estimate("tree", 8, 8, 25 * MIB, 384e9)
    assert tree.total == pytest.approx(148.4 + 25 * MIB / (384e3 * 0.92 / 2 * 0.7))
    big = [nccl_model.estimate(name, 8, 8, GRADIENT, 384e9).total for name in ("ring", "tree")]
    assert tree.total < ring.total and big[0] < big[1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nccl_model.latency("star", 2, 8), "algorithm='star'"),
        (lambda: nccl_model.estimate("ring", 1, 8, 1, 1), "nodes=1: expected at least 2"),
        (lambda: measured("no-such-run"), "name='no-such-run': expected one of h100_10n_g1_ar"),
        (lambda: fit.hockney([5, 5], [1, 2]), "at least two different"),
    ],
)
def test_bad_input_is_refused_by_name(call, words):
    with pytest.raises(ValueError) as refused:
        call()
    assert words in str(refused.value)


@given(alpha=st.floats(1e-7, 1e-3), B=st.floats(1e8, 1e12))
def test_a_fit_finds_the_line_it_was_given(alpha, B):
    sizes = [8.0 * 8**k for k in range(10)]
    found = fit.hockney(sizes, [alpha + size / B for size in sizes])
    assert found == pytest.approx((alpha, B), rel=1e-6)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[!I]*.csv")), ids=lambda path: path.stem)
def test_published_tables_agree_with_themselves(path):
    """busbw as printed is the formula of nccl-tests on the size and time as printed: no digit was lost."""
    run = measured(path.stem)
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            told = float(row["busbw_GBps"])
            ours = run.bus_bandwidth(int(row["size_bytes"])) / 1e9
            assert ours == pytest.approx(told, rel=0.01, abs=0.006)
    assert run.url.startswith("https://github.com/") and run.ranks % run.nodes == 0

"""BF16 by bits, by torch and by fractions agree, along whole schedules and one chunk of them."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from helpers import algorithms
from helpers.compression.low_precision import (
    BF16,
    by_bits,
    in_fp32,
    one_chunk,
    partial_sums,
    reduced,
    relative_error,
    round_bits,
    round_fraction,
)
from helpers.count import count
from helpers.processes import RankFailure, run
from helpers.ranks import low_precision
from helpers.simulate import simulate


def noise(count: int, seed: int = 0) -> np.ndarray:
    """float32 of many sizes and both signs."""
    draw = np.random.default_rng(seed)
    return (draw.standard_normal(count) * 2.0 ** draw.integers(-20, 20, count)).astype(np.float32)


def test_rounding_is_torchs_and_that_of_fractions() -> None:
    halfway = np.arange(2**16, 2**17, dtype=np.float32) * np.float32(2**-8)  # every tie and every neighbour
    for numbers in (noise(5000), halfway):
        by_torch = torch.from_numpy(numbers).bfloat16().float().numpy()
        assert (round_bits(numbers) == by_torch).all()
        assert [float(round_fraction(Fraction(float(n)))) for n in numbers[:3000]] == by_torch[:3000].tolist()


def test_float32_and_then_bf16_rounds_a_sum_as_once() -> None:
    """24 bits are enough: rounding twice never differs from rounding once (Figueroa 1995)."""
    for seed in range(2):
        a, b = round_bits(noise(2000, seed)), round_bits(noise(2000, seed + 9))
        once = [
            float(round_fraction(Fraction(float(x)) + Fraction(float(y)))) for x, y in zip(a, b, strict=True)
        ]
        assert round_bits(a + b).tolist() == once


@pytest.mark.parametrize("write", [algorithms.ring_allreduce, algorithms.double_binary_tree_allreduce])
def test_one_chunk_does_what_it_does_in_the_whole(write) -> None:
    ranks = 9
    schedule = write(ranks)
    own = [noise(schedule.chunks, rank) for rank in range(ranks)]
    whole = simulate(schedule, [by_bits(numbers) for numbers in own]).arrays
    for chunk in range(schedule.chunks):
        for arithmetic in BF16.values():
            alone = reduced(write, [arithmetic(numbers[chunk : chunk + 1]) for numbers in own], chunk)
            assert {float(alone[0])} == {float(held[chunk]) for held in whole}


def test_a_chain_counts_to_256_and_a_tree_further() -> None:
    for ranks in (255, 256, 257, 300):
        ones = [by_bits([1])] * ranks
        assert float(reduced(algorithms.ring_allreduce, ones)[0]) == min(ranks, 256)
    assert float(reduced(algorithms.binomial_tree_allreduce, [by_bits([1])] * 1024)[0]) == 1024
    assert partial_sums([1.0] * 260)[-5:] == [256.0] * 5


def test_what_a_ring_that_divides_first_makes_of_ones() -> None:
    """256/K holds for powers of two; in between a stalled sum depends on where 1/K lies in its octave."""
    found = {}
    for ranks in (300, 384, 512, 640):
        own = [by_bits([Fraction(1, ranks)])] * ranks
        found[ranks] = float(reduced(algorithms.ring_allreduce, own)[0])
    assert found == {300: 1.0, 384: 1.0, 512: 0.5, 640: 0.5}


def test_gloo_adds_along_chains_and_the_owners_in_fp32() -> None:
    """On three ranks; and where FP32 itself rounds, the owners' sum is not the nearest BF16 number."""
    own = [np.random.default_rng(rank).standard_normal(3000) for rank in range(3)]
    parts = [np.split(by_bits(numbers), 3) for numbers in own]
    chains = [[parts[(chunk - 1 - k) % 3][chunk] for k in range(3)] for chunk in range(3)]
    expected = np.concatenate([reduced(algorithms.ring_allreduce, chain) for chain in chains]).tolist()
    added = round_bits(np.sum([by_bits(numbers) for numbers in own], axis=0)).tolist()
    for told in run(low_precision.sums, ranks=3, backend="gloo", vectors=[n.tolist() for n in own]):
        assert told["BF16 AllReduce"][0] == expected
        assert told["sent in BF16, added in FP32"][0] == added != expected
    small = [[256.0] * 4, [1.0] * 4, [2.0**-20] * 4, [0.0] * 4]
    told = run(low_precision.sums, ranks=4, backend="gloo", vectors=small)
    assert {*told[0]["sent in BF16, added in FP32"][0]} == {256.0}
    assert round_fraction(257 + Fraction(1, 2**20)) == 258
    with pytest.raises(RankFailure, match="tensor: 3 entries, expected a multiple of 2"):
        run(low_precision.sums, ranks=2, backend="gloo", vectors=[[1.0] * 3] * 2)


@pytest.mark.parametrize("nodes, each", [(8, 8), (2, 4), (4, 2)])
def test_what_crosses_between_nodes(nodes: int, each: int) -> None:
    """In gradients, counted along the schedules against arithmetic."""
    ranks = nodes * each

    def across(way) -> Fraction:
        links = count(way, way.chunks, 1).by_link.items()
        return Fraction(sum(size for (a, b), size in links if a // each != b // each), ranks)

    once_round = Fraction(nodes * (ranks - 1), ranks)
    assert across(algorithms.ring_allreduce(ranks)) == 2 * once_round
    assert across(algorithms.ring_all_gather(ranks)) == once_round
    assert across(algorithms.all_to_all(ranks)) == ranks - each


def test_autocast_leaves_gradients_in_float32() -> None:
    model = torch.nn.Linear(3, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = model(torch.ones(2, 3))
    assert out.dtype == torch.bfloat16
    out.float().sum().backward()
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}


def test_errors_follow_their_law_whatever_the_seed() -> None:
    for seed in (1, 2):
        draw = np.random.default_rng(seed)
        own = [draw.standard_normal(4096) for _ in range(256)]
        exact = np.sum(own, axis=0)
        once = np.sqrt(np.mean([relative_error(round_bits(n.astype(np.float32)), n) ** 2 for n in own[:16]]))
        for write, roundings in (
            (algorithms.ring_reduce_scatter, 128),
            (algorithms.binomial_tree_allreduce, 8),
        ):
            error = relative_error(reduced(write, [by_bits(n) for n in own]), exact)
            assert error == pytest.approx(once * (1 + roundings) ** 0.5, rel=0.15)
        kept = round_bits(reduced(algorithms.ring_reduce_scatter, [in_fp32(n) for n in own]))
        assert relative_error(kept, exact) == pytest.approx(once * 2**0.5, rel=0.1)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="float64, expected float32"):
        round_bits(np.ones(1))
    with pytest.raises(ValueError, match="chunk=4: expected 0 to 3"):
        one_chunk(algorithms.ring_allreduce(4), 4)
    with pytest.raises(ValueError, match="numbers: none"):
        partial_sums([])

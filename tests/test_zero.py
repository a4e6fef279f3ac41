"""ZeRO counted: what moves, on the wire too, and that the pieces behind the chapter are what they seem."""

import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from helpers.counting.private_network import run_inside
from helpers.counting.volume import Call, Volume, bytes_a_parameter, passes
from helpers.llama.blocks import SMALL, LlamaBlocks
from helpers.llama.like import LlamaLike
from helpers.memory.needed import MIXED, state_bytes
from helpers.page import rounding_bound
from helpers.processes import run
from helpers.ranks import one_of_512, zero_wire
from helpers.ranks.zero_by_hand import ZeroByHand


@pytest.mark.namespace
def test_the_wire_carries_what_was_counted():
    """With our own reduce-scatter (True); gloo's, made of AllReduces, moves one pass more (torch 2.13)."""
    expected = {
        ("DDP", False): 2,
        ("torch's ZeRO-1", False): 3,
        ("ZeRO-1 by hand", True): 2,
        ("ZeRO-1 by hand", False): 3,
        ("FSDP2, kept", True): 2,
        ("FSDP2, resharded", True): 3,
        ("FSDP2, resharded", False): 4,
    }
    options = dict(ranks=4, backend="gloo", ways=list(expected), scale=32)
    code = f"""
        from helpers.processes import run
        from helpers.ranks.zero_wire import step_bytes
        print(run(step_bytes, timeout=90, **{options!r})[0])
    """
    whole = 8 * sum(p.numel() for p in LlamaBlocks(SMALL, scale=32).parameters())
    found = [moved / whole / 3 for moved in json.loads(run_inside(code))]  # a pass is K - 1 times the vector
    assert found == pytest.approx(list(expected.values()), rel=0.01)


def test_blocks_compute_what_the_flat_module_computes():
    blocks, flat = LlamaBlocks(SMALL, scale=64), LlamaLike(SMALL, scale=64, dtype=torch.float64)
    weights = {name.replace(".", "_"): p for name, p in blocks.named_parameters()}
    flat.load_state_dict(weights)
    tokens = torch.arange(16)
    assert blocks(tokens).equal(flat(tokens))
    assert Counter(p.shape for p in blocks.parameters()) == Counter(p.shape for p in flat.parameters())


def test_who_pretends_keeps_the_same_bytes():
    alone = run(one_of_512.kept, ranks=1, backend="gloo", pretend=[4])[0]
    for rank in run(one_of_512.kept, ranks=4, backend="gloo", pretend=[None]):
        assert rank == alone
    numbers = alone[4, 1]["weights"] // 2
    for (ranks, stage), held in alone.items():
        assert sum(held.values()) == state_bytes(numbers, MIXED, ranks=ranks, stage=stage)


@pytest.fixture(scope="module")
def parts():
    return run(zero_wire.parts, ranks=4, backend="gloo", timeout=60)


def test_both_reduce_scatters_add_up(parts):
    total = np.sum([rank["scattered"][0] for rank in parts], axis=0)
    for piece, rank in zip(np.split(total, len(parts)), parts, strict=True):
        assert rank["scattered"][1:] == [piece.tolist()] * 3


def test_fsdp2_with_our_reduce_scatter_has_the_same_gradients(parts):
    for rank in parts:
        torchs, own = rank["gradients"]
        assert torchs.norm() > 0.1
        assert (own - torchs).norm() <= rounding_bound(4) * torchs.norm()


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("cut", "ValueError: vector of 5 elements: expected a multiple of 4 ranks"),
        ("twice", "RuntimeError: gradients twice, and no zero_grad() between"),
        ("maximum", "ValueError: op=RedOpType.MAX, async_op=False: expected SUM or AVG"),
        ("no waiting", "ValueError: op=RedOpType.SUM, async_op=True: expected SUM or AVG, and False"),
        ("full_tensor", "RuntimeError: _c10d_functional::all_gather_into_tensor: no rule"),
        ("total norm", "RuntimeError: _c10d_functional::all_reduce: no rule"),
        ("clipping", "RuntimeError: _c10d_functional::all_reduce: no rule"),
    ],
)
def test_what_the_pieces_do_not_do_they_refuse(parts, what, said):
    for rank in parts:
        assert rank["refused"][what].startswith(said)


def test_stage_1_adds_up_the_gradients_of_two_backward_passes_and_drops_them(parts):
    for rank in parts:
        assert rank["added"] == ([3.0] * 4, True)


def test_a_step_without_zero_grad_before_the_next_is_refused_too(parts):
    for rank in parts:
        assert rank["refused"]["no zero_grad"] == rank["refused"]["twice"]


def test_an_update_of_four_micro_batches_takes_twelve_passes_or_nine(parts):
    """The solution of the chapter's exercise."""
    for rank in parts:
        assert rank["accumulated"] == [{"all-gather": 8, "reduce-scatter": n} for n in (4, 1)]


def test_on_a_2d_mesh_fsdp_does_call_allreduce(parts):
    for rank in parts:
        assert rank["on a 2D mesh"] == ["all-gather", "reduce-scatter", "AllReduce"]


def test_a_collective_without_a_rule_is_refused():
    unknown = SimpleNamespace(_schema=SimpleNamespace(name="c10d::gather_"))
    with pytest.raises(RuntimeError, match="c10d::gather_: no rule"):
        Volume().__torch_dispatch__(unknown, ())


def test_bad_input_is_named():
    for measure in (passes, bytes_a_parameter):
        with pytest.raises(ValueError, match="numbers=0: expected"):
            measure([Call("AllReduce", 6)], numbers=0)
    with pytest.raises(ValueError, match="scale=7: expected a divisor"):
        LlamaBlocks(SMALL, scale=7)
    with pytest.raises(ValueError, match="stage=3: expected 1 or 2"):
        ZeroByHand(torch.nn.Linear(2, 2), stage=3, lr=0.1)

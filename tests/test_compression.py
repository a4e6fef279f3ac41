"""Compressors, error feedback, and what is handed to collectives against what the wire carries."""

import json

import pytest
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState

from helpers import algorithms
from helpers.compression.compressors import Feedback, OneBit, TopK
from helpers.count import count
from helpers.counting.handed import handed, sent_by_a_ring
from helpers.counting.private_network import run_inside
from helpers.processes import run
from helpers.ranks import compression, hooks
from helpers.text import sentences


def integers(length: int, seed: int) -> torch.Tensor:
    return torch.randint(-99, 100, (length,), generator=torch.Generator().manual_seed(seed)).double()


@pytest.mark.parametrize("share", [0.01, 0.3, 1.0])
def test_the_largest_entries_arrive_unchanged_and_nothing_else(share: float) -> None:
    vector = integers(200, 0)
    sent = TopK(share).unpack(TopK(share).pack(vector), 200)
    kept = sent != 0
    assert sent[kept].equal(vector[kept])
    assert int(kept.sum()) <= round(share * 200)
    left = (vector - sent).abs().max()
    assert left <= sent[kept].abs().min()


@pytest.mark.parametrize("length", [1, 7, 8, 9, 1000])
def test_one_bit_an_entry(length: int) -> None:
    vector = integers(length, 1)
    parts = OneBit().pack(vector)
    assert sum(part.nbytes for part in parts) == -(-length // 8) + 4
    sent = OneBit().unpack(parts, length)
    assert ((sent >= 0) == (vector >= 0)).all()
    assert sent.abs().unique().tolist() == [float(vector.abs().mean().float())]


def test_sent_and_owed_are_all_there_was() -> None:
    """Whole numbers, so exactly; the memory is what makes it so."""
    for keep in (True, False):
        feedback, sent, brought = Feedback(TopK(0.1), keep), 0.0, 0.0
        for step in range(50):
            gradient = integers(40, step)
            sent = sent + TopK(0.1).unpack(feedback.pack(gradient), 40)
            brought = brought + gradient
        assert (sent + feedback.residual).equal(brought) == keep


@pytest.mark.parametrize("share", [0, -0.1, 1.01])
def test_impossible_shares_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match="share=.*expected"):
        TopK(share)


def test_bad_gradients_are_named() -> None:
    for compressor in (TopK(0.5), OneBit()):
        for vector in (torch.zeros(0), torch.ones(2, 2)):
            with pytest.raises(ValueError, match="vector: shape .*, expected one dimension"):
                compressor.pack(vector)
            with pytest.raises(ValueError, match="vector: shape"):
                Feedback(compressor).pack(vector)
    feedback = Feedback(OneBit())
    feedback.pack(torch.ones(4))
    for other in (torch.ones(3), torch.ones(1), torch.ones(2, 4)):
        with pytest.raises(ValueError, match=r"gradient: shape .*, expected \(4,\) as before"):
            feedback.pack(other)


def test_a_debt_is_float64_whatever_the_gradient() -> None:
    for compressor in (TopK(0.5), OneBit()):
        feedback = Feedback(compressor)
        sent = compressor.unpack(feedback.pack(torch.tensor([3.0, -1.0, 0.1])), 3)
        assert sent.dtype == feedback.residual.dtype == torch.float64
        assert (sent + feedback.residual).equal(torch.tensor([3.0, -1.0, 0.1]).double())


def test_the_late_entry_comes_when_its_debt_is_the_largest() -> None:
    feedback, sent = Feedback(TopK(0.5)), []
    for _ in range(60):
        sent.append(TopK(0.5).unpack(feedback.pack(torch.tensor([101.0, 2.0], dtype=torch.float64)), 2)[1])
    assert next((step, float(x)) for step, x in enumerate(sent, start=1) if x) == (51, 102.0)


def test_every_call_is_counted_or_refused(monkeypatch) -> None:
    """By place and by keyword; what this rank brings counts, not what it gets."""
    own, all_of_it = torch.ones(3), torch.ones(12)
    calls = {
        "all_reduce": [((own,), {}), ((), {"tensor": own})],
        "all_gather": [(([], own), {}), ((), {"tensor": own, "tensor_list": []})],
        "all_gather_into_tensor": [
            ((all_of_it, own), {}),
            ((), {"input_tensor": own, "output_tensor": all_of_it}),
        ],
        "all_to_all_single": [((all_of_it, own), {}), ((all_of_it,), {"input": own})],
        "reduce_scatter_tensor": [((all_of_it, own), {}), ((), {"output": all_of_it, "input": own})],
    }
    for name in calls:
        monkeypatch.setattr(dist, name, lambda *arguments, **options: "done")
    for name, each in calls.items():
        for arguments, options in each:
            with handed() as counted:
                assert getattr(dist, name)(*arguments, **options) == "done"
            assert counted == dict.fromkeys(calls, 0) | {name: 12}
    broadcast = dist.broadcast
    with handed(), pytest.raises(RuntimeError, match="broadcast: not counted"):
        dist.broadcast(own, src=0)
    assert dist.broadcast is broadcast


def test_rules_of_the_ring_are_those_of_its_schedules() -> None:
    ranks, size = 6, 6 * 100
    schedules = {
        "all_reduce": algorithms.ring_allreduce(ranks),
        "all_gather_into_tensor": algorithms.ring_all_gather(ranks),
        "reduce_scatter_tensor": algorithms.ring_reduce_scatter(ranks),
    }
    for name, schedule in schedules.items():
        own = size // ranks if name.startswith("all_gather") else size
        assert sent_by_a_ring({name: own}, ranks) == count(schedule, size, 1).sent.max()
    assert sent_by_a_ring({"all_gather": size}, ranks) == (ranks - 1) * size
    assert sent_by_a_ring({"all_to_all_single": size}, ranks) == (ranks - 1) * 100
    with pytest.raises(ValueError, match="broadcast"):
        sent_by_a_ring({"broadcast": 1}, ranks)


def test_every_method_ends_on_the_same_bits_everywhere() -> None:
    lines = [b"a line of text", b"and another one", b"a third", b"the fourth of them"] * 3
    methods = ["FP32", "BF16", "PowerSGD", "1 bit", "top 1 %", "top 1 %, forgetting"]
    told = run(
        compression.train, ranks=3, backend="gloo", methods=methods, lines=lines, held=lines[:2], steps=4
    )
    for method in methods:
        for other in told[1:]:
            assert other[method]["end"].equal(told[0][method]["end"]), method
    assert told[0]["FP32"]["bytes"] == pytest.approx(2 * 2 / 3 * 4 * 41_280)


@pytest.mark.parametrize("seed", [1, 2])
def test_feedback_is_what_matters_whatever_the_seed(seed: int) -> None:
    lines = [line[:64] for line in sentences() if len(line) >= 40]
    methods = ["FP32", "1 bit", "top 1 %", "top 0.1 %", "1 bit, forgetting", "top 1 %, forgetting"]
    data = dict(lines=lines[:-32], held=lines[-32:], steps=80, report=80, seed=seed)
    told = run(compression.train, ranks=2, backend="gloo", timeout=120, methods=methods, **data)[0]
    bound = told["FP32"]["losses"][80] + 0.1
    assert [m for m in methods if told[m]["losses"][80] < bound] == ["FP32", "1 bit", "top 1 %"]


@pytest.mark.parametrize(
    ("cuda", "nccl", "said"),
    [
        (None, (2, 28, 9), "refused"),
        ("13.0", None, "refused"),
        ("13.0", (2, 9, 0), "refused"),
        ("13.0", (2, 10, 0), "accepted, gradient 1.5"),
    ],
)
def test_torch_asks_how_it_was_built_before_it_takes_its_bf16_hook(cuda, nccl, said: str) -> None:
    told = run(hooks.registered, ranks=2, backend="gloo", cuda=cuda, nccl=nccl)
    assert all(each.startswith(said) for each in told)


def test_a_hook_that_waits_needs_a_thread_for_each_bucket_and_one_order() -> None:
    cases = {"starved": dict(patience=0.5), "three": dict(threads=3), "turned": dict(threads=4, turned=0)}
    told = run(hooks.reduced_twice, ranks=2, backend="gloo", cases=cases)
    for held in told:
        assert held["three"] == [4.0, 40.0]
        assert held["turned"] == [22.0, 22.0]
    assert told[0]["starved"] == [2.0, 20.0]


def test_torch_refuses_to_keep_debts_over_the_step_that_arranges_the_buckets() -> None:
    with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
        PowerSGDState(None, start_powerSGD_iter=1)
    PowerSGDState(None, start_powerSGD_iter=1, use_error_feedback=False, warm_start=False)


@pytest.mark.namespace
def test_what_is_counted_is_what_the_wire_carries() -> None:
    code = """
        import json
        from helpers.processes import run
        from helpers.ranks.low_precision import wire_bytes
        print(json.dumps(run(wire_bytes, ranks=4, timeout=60, backend="gloo", elements=2**20)[0]))
    """
    told = json.loads(run_inside(code))
    assert len(told) == 5
    for name, (moved, counted) in told.items():
        assert moved == pytest.approx(counted, rel=0.03), name
    assert told["sent in BF16, added in FP32"][1] == told["BF16 AllReduce"][1]
    assert told["FP32 AllReduce"][1] == 2 * told["BF16 AllReduce"][1]

"""The timeline against hand computation, and against real DDP in slow motion."""

import pytest

from helpers.buckets import bucket_bytes
from helpers.llama.like import arrival
from helpers.models import LLAMA3_8B
from helpers.overlap import exposed, llama_timeline, ready_times, timeline
from helpers.processes import run
from helpers.ranks import buckets, slow_motion


def test_a_bucket_waits_for_its_gradients_and_for_the_link():
    sent = timeline([1.0, 2.0, 9.0], [1, 1, 1], [3.0, 1.0, 2.0])
    assert [(s.start, s.end) for s in sent] == [(1, 4), (4, 5), (9, 11)]
    assert exposed(sent, backward=10) == 1 and exposed(sent, backward=12) == 0 and exposed([], 1) == 0
    with pytest.raises(ValueError, match="2 times, 1 sizes and 1 costs"):
        timeline([1.0, 2.0], [1], [1.0])


def test_a_bucket_is_ready_with_its_last_gradient():
    assert ready_times([1, 3, 0], [[0], [1], [2]], backward=8) == [2, 8, 8]
    assert ready_times([1, 1, 2], [[0, 2], [1]], backward=4) == [4, 2]


def test_only_the_embedding_sticks_out():
    sent = llama_timeline(arrival(LLAMA3_8B), lambda size: size / 25e9, backward=2.6)
    assert len(sent) == 162 and sent[-1].size == 2 * (128_256 + 1) * 4096
    assert sent[-1].ready == pytest.approx(2.6)
    assert exposed(sent, 2.6) == pytest.approx(sent[-1].size / 25e9, rel=0.06)


LAYERS, SLOW, FAST = 6, 0.08, 0.04  # seconds a layer computes, or its bucket is sent


@pytest.mark.parametrize(("compute", "send"), ((SLOW, FAST), (FAST, SLOW)))
def test_real_ddp_in_slow_motion_keeps_to_the_timeline(compute, send):
    ready = [compute * (i + 1) for i in range(LAYERS)]
    expected = timeline(ready, [1] * LAYERS, [send] * LAYERS)[-1].end
    options = dict(ranks=2, backend="gloo", layers=LAYERS, compute=compute, send=send)
    both = run(slow_motion.backward_pass, **options)
    apart = run(slow_motion.backward_pass, overlap=False, **options)
    together = run(slow_motion.backward_pass, cap_mb=1000, **options)
    assert [told["buckets"] for told in (both[0], together[0])] == [LAYERS, 1]
    assert 1 <= max(told["seconds"] for told in both) / expected < 1.15
    assert max(told["seconds"] for told in both) < 0.8 * min(told["seconds"] for told in apart)
    assert min(told["seconds"] for told in together) > 1.15 * expected, "one bucket hides nothing"
    # Rank r's input is r + 1: the gradient of either alone would be 64 * 64 or twice that.
    assert {told["gradient"] for told in both + together} == {1.5 * slow_motion.WIDTH**2}


def test_looking_for_unused_parameters_rearranges_nothing():
    steps = run(buckets.watched, ranks=2, backend="gloo", timeout=120, find_unused_parameters=True)[0]
    assert [len(sizes) for sizes in steps] == [162, 162, 162]
    # Widths are divided by 16, so matrices by 256 and vectors by 16: times 256 the vectors count 16-fold.
    vectors = 2 * 65 * 4096
    assert sum(steps[2]) * 256 == 2 * LLAMA3_8B.parameters + 15 * vectors


def test_another_order_has_other_buckets_of_the_same_number_and_bytes():
    registered = LLAMA3_8B.shapes()
    sent, turned = bucket_bytes(registered)[::-1], bucket_bytes(registered[::-1])
    assert (len(sent), sum(sent)) == (len(turned), sum(turned)) and sent != turned
    assert run(buckets.one_of_many, ranks=1, backend="gloo", timeout=120)[0][0] == sent

"""The timeline against hand computation, and against real DDP in slow motion."""

import pytest

from helpers.models import LLAMA3_8B
from helpers.overlap import exposed, llama_timeline, ready_times, timeline
from helpers.processes import run
from helpers.ranks import buckets, slow_motion

LAYERS, COMPUTE, SEND = 6, 0.05, 0.05  # seconds a layer computes, and a bucket is sent


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
    sent = llama_timeline(LLAMA3_8B.shapes(), lambda size: size / 25e9, backward=2.6)
    assert len(sent) == 162 and sent[-1].size == 2 * 128_256 * 4096
    assert sent[-1].ready == pytest.approx(2.6)
    assert exposed(sent, 2.6) == pytest.approx(sent[-1].size / 25e9, rel=0.06)


def test_real_ddp_in_slow_motion_keeps_to_the_timeline():
    ready = [COMPUTE * (i + 1) for i in range(LAYERS)]
    expected = timeline(ready, [1] * LAYERS, [SEND] * LAYERS)[-1].end
    options = dict(ranks=2, backend="gloo", layers=LAYERS, compute=COMPUTE, send=SEND)
    both = max(run(slow_motion.backward_seconds, **options))
    apart = min(run(slow_motion.backward_seconds, overlap=False, **options))
    assert 1 <= both / expected < 1.15
    assert both < 0.8 * apart


def test_looking_for_unused_parameters_rearranges_nothing():
    steps = run(buckets.watched, ranks=2, backend="gloo", timeout=120, find_unused_parameters=True)[0]
    assert [len(sizes) for sizes in steps] == [162, 162, 162]
    # Widths are divided by 16, so matrices by 256 and vectors by 16: times 256 the vectors count 16-fold.
    vectors = 2 * 65 * 4096
    assert sum(steps[2]) * 256 == 2 * LLAMA3_8B.parameters + 15 * vectors

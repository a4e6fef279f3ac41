"""The same functions on GPUs and NCCL: `make test-gpu` on a machine with at least two.

They are not part of `make test`, which runs everywhere and says in its last lines that these were not run.
"""

import pytest
import torch

from helpers.average.token_loss import OWN_MEAN, TOKEN_MEAN, spread
from helpers.processes import RankFailure, found, run
from helpers.ranks import faults, unequal_tokens
from helpers.ranks.equivalence import integer_gradient
from helpers.ranks.greet import add_ranks
from helpers.ranks.training import train

pytestmark = pytest.mark.skipif(
    found().gpus < 2 or not found().nccl,
    reason=f"GPU checks NOT RUN: needs two GPUs and NCCL, found {found().gpus}",
)


def test_without_a_number_every_gpu_is_a_rank():
    results = run(add_ranks, timeout=120)
    assert results.backend == "nccl" and len(results) == found().gpus
    assert results == [len(results) * (len(results) + 1) // 2] * len(results)


def test_ddp_computes_2_25_and_2_125_on_gpus():
    shards = [spread(100, 250), spread(300, 600)]
    for recipe, expected in ((OWN_MEAN, 2.25), (TOKEN_MEAN, 2.125)):
        results = run(
            unequal_tokens.gradient, ranks=2, backend="nccl", timeout=120, shards=shards, recipe=recipe
        )
        assert results == [expected] * 2


def test_integers_agree_bit_for_bit_with_one_gpu():
    alone, *replicas = run(integer_gradient, ranks=1, timeout=120) + run(
        integer_gradient, ranks=2, timeout=120
    )
    assert all(torch.equal(replica, alone) for replica in replicas)


def test_a_rank_that_raises_is_named_and_survivors_are_ended():
    with pytest.raises(RankFailure) as caught:
        run(faults.one_raises_alone, ranks=2, backend="nccl", timeout=60, culprit=1)
    assert (caught.value.rank, caught.value.kind) == (1, "raised")


def test_training_keeps_replicas_equal_and_resumes_to_the_same_bits(tmp_path):
    options = {"backend": "nccl", "timeout": 300, "checkpoint_every": 10}
    whole = run(train, steps=20, checkpoint=str(tmp_path / "whole.pt"), **options)
    run(train, steps=10, checkpoint=str(tmp_path / "cut.pt"), **options)
    resumed = run(train, steps=20, checkpoint=str(tmp_path / "cut.pt"), resume=True, **options)
    assert len({result["digest"] for result in whole + resumed}) == 1

"""The promise: DDP's gradient on K ranks is the gradient of one process on the global batch."""

import pytest
import torch

from helpers.page import EPS64
from helpers.processes import run
from helpers.ranks.equivalence import integer_gradient, mlp_gradient


def check_equivalence(ranks: int) -> float:
    """Replicas equal bit for bit, one process to rounding; returns the relative error in units of eps."""
    replicas = run(mlp_gradient, ranks=ranks, backend="gloo")
    (alone,) = run(mlp_gradient, ranks=1, backend="gloo")
    assert all(torch.equal(replica, replicas[0]) for replica in replicas), "replicas hold different bits"
    error = float((replicas[0] - alone).norm() / alone.norm()) / EPS64
    assert error <= 4, f"||d|| is {error:.1f} eps ||g||, at most 4 are rounding"
    return error


@pytest.mark.parametrize("ranks", (2, 4, 8))
def test_gradient_equivalence_through_real_ddp(ranks):
    check_equivalence(ranks)


@pytest.mark.parametrize("ranks", (2, 4, 8))
def test_with_integers_not_one_bit_differs(ranks):
    replicas = run(integer_gradient, ranks=ranks, backend="gloo")
    (alone,) = run(integer_gradient, ranks=1, backend="gloo")
    assert alone.abs().sum() > 0
    assert all(torch.equal(replica, alone) for replica in replicas)


def test_the_check_can_fail(monkeypatch):
    """Three ranks get 6, 5 and 5 samples: the mean of their means is another gradient."""
    with pytest.raises(AssertionError, match="eps"):
        check_equivalence(3)

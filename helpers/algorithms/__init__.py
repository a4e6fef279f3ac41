"""The writers: each algorithm is a short function that writes a Schedule and knows nothing else."""

from collections.abc import Callable

from helpers.algorithms.all_to_all import all_to_all
from helpers.algorithms.halving_doubling import halving_doubling_allreduce
from helpers.algorithms.in_network import in_network_allreduce
from helpers.algorithms.parameter_server import parameter_server
from helpers.algorithms.rails import hierarchical_allreduce, rails_allreduce
from helpers.algorithms.ring import (
    bidirectional_ring_allreduce,
    ring_all_gather,
    ring_allreduce,
    ring_reduce_scatter,
    unchunked_ring_allreduce,
)
from helpers.algorithms.trees import binomial_tree_allreduce, double_binary_tree_allreduce

# Those that need only the number of ranks, by the name of their schedule.
BY_RANKS: dict[str, Callable] = {
    "ring-allreduce": ring_allreduce,
    "ring-reduce-scatter": ring_reduce_scatter,
    "ring-all-gather": ring_all_gather,
    "bidirectional-ring-allreduce": bidirectional_ring_allreduce,
    "unchunked-ring-allreduce": unchunked_ring_allreduce,
    "parameter-server": parameter_server,
    "halving-doubling-allreduce": halving_doubling_allreduce,
    "binomial-tree-allreduce": binomial_tree_allreduce,
    "double-binary-tree-allreduce": double_binary_tree_allreduce,
    "all-to-all": all_to_all,
}

__all__ = [
    "BY_RANKS",
    "hierarchical_allreduce",
    "in_network_allreduce",
    "rails_allreduce",
    *(f.__name__ for f in BY_RANKS.values()),
]

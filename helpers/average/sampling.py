"""Who gets which samples: torch's DistributedSampler, asked as every rank would ask it."""

from collections import Counter

from torch.utils.data import DistributedSampler


def samplers(
    samples: int, ranks: int, drop_last: bool = False, shuffle: bool = False, seeds: list[int] | None = None
) -> list[DistributedSampler]:
    """The sampler of each rank. samples: size of the data set. seeds: one a rank, else 0 everywhere.

    Raises ValueError for less than one sample or rank.
    """
    for name, value in (("samples", samples), ("ranks", ranks)):
        if value < 1:
            raise ValueError(f"{name}={value}: expected at least 1")
    options = {"num_replicas": ranks, "shuffle": shuffle, "drop_last": drop_last}
    return [
        DistributedSampler(range(samples), rank=rank, seed=seeds[rank] if seeds else 0, **options)
        for rank in range(ranks)
    ]


def deal(samples: int, ranks: int, drop_last: bool = False, **options) -> list[list[int]]:
    """The indices that each rank draws in one epoch, in rank order."""
    return [list(sampler) for sampler in samplers(samples, ranks, drop_last, **options)]


def epochs(samples: int, ranks: int, number: int, set_epoch: bool) -> list[list[int]]:
    """The order of rank 0's shuffled samples in `number` epochs of one sampler, with or without set_epoch."""
    sampler = samplers(samples, ranks, shuffle=True)[0]
    orders = []
    for epoch in range(number):
        if set_epoch:
            sampler.set_epoch(epoch)
        orders.append(list(sampler))
    return orders


def tally(dealt: list[list[int]], samples: int) -> dict[str, int]:
    """How many indices were drawn, how many samples came up more than once, and how many never."""
    times = Counter(index for share in dealt for index in share)
    return {
        "drawn": times.total(),
        "again": sum(n > 1 for n in times.values()),
        "never": samples - len(times),
    }

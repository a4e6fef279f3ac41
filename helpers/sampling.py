"""Who gets which samples: torch's DistributedSampler, asked as every rank would ask it."""

from torch.utils.data import DistributedSampler


def deal(
    samples: int, ranks: int, drop_last: bool = False, shuffle: bool = False, epoch: int | None = None
) -> list[list[int]]:
    """The indices that each rank draws in one epoch, in rank order.

    samples: size of the data set. epoch: what set_epoch is told; None leaves the call out.
    Raises ValueError for less than one sample or rank.
    """
    for name, value in (("samples", samples), ("ranks", ranks)):
        if value < 1:
            raise ValueError(f"{name}={value}: expected at least 1")
    dealt = []
    for rank in range(ranks):
        options = {"shuffle": shuffle, "drop_last": drop_last, "seed": 0}
        sampler = DistributedSampler(range(samples), num_replicas=ranks, rank=rank, **options)
        if epoch is not None:
            sampler.set_epoch(epoch)
        dealt.append(list(sampler))
    return dealt


def tally(dealt: list[list[int]], samples: int) -> dict[str, int]:
    """How many indices were drawn, how many samples came up more than once, and how many never."""
    drawn = [index for share in dealt for index in share]
    return {
        "drawn": len(drawn),
        "twice": sum(drawn.count(index) > 1 for index in range(samples)),
        "never": sum(index not in drawn for index in range(samples)),
    }

"""Where each rank stands in a grid of parallel axes: coordinates, groups, strides.

An order such as "tp-cp-ep-dp-pp" names the axes from the innermost, whose ranks are neighbours, to the
outermost, as Megatron-Core writes it. Left out: Megatron's second grid for experts, and making the groups.
"""

from dataclasses import dataclass
from math import prod

from helpers.arguments import whole_numbers

MEGATRON = "tp-cp-ep-dp-pp"  # parallel_state.py, the default of initialize_model_parallel
LLAMA3 = "tp-cp-pp-dp"  # Dubey et al. 2024, section 3.3.2


@dataclass(frozen=True)
class RankGrid:
    """Axes and their sizes, innermost first. Raises ValueError for a size below 1, and for an axis twice."""

    axes: tuple[tuple[str, int], ...]

    def __post_init__(self):
        names = [name for name, _ in self.axes]
        if len(set(names)) < len(names):
            raise ValueError(f"axes={'-'.join(names)!r}: expected each axis once")
        whole_numbers(**dict(self.axes))

    @property
    def size(self) -> int:
        """Number of places: the world size that this grid needs."""
        return prod(size for _, size in self.axes)

    def stride(self, axis: str) -> int:
        """Distance in ranks between neighbours along `axis`. Raises ValueError for an axis it has not."""
        names = [name for name, _ in self.axes]
        if axis not in names:
            raise ValueError(f"axis={axis!r}: expected one of {', '.join(names)}")
        return prod(size for _, size in self.axes[: names.index(axis)])

    def coordinates(self, rank: int) -> dict[str, int]:
        """Where `rank` stands on each axis. Raises ValueError for a rank outside.

        >>> grid(MEGATRON, tp=2, dp=4, pp=2).coordinates(11)
        {'tp': 1, 'cp': 0, 'ep': 0, 'dp': 1, 'pp': 1}
        """
        if not 0 <= rank < self.size:
            raise ValueError(f"rank={rank}: expected 0 to {self.size - 1}")
        return {name: rank // self.stride(name) % size for name, size in self.axes}

    def group(self, rank: int, axis: str) -> list[int]:
        """The ranks that differ from `rank` on `axis` only, itself included, in order."""
        stride, at = self.stride(axis), self.coordinates(rank)[axis]
        first = rank - at * stride
        return [first + i * stride for i in range(dict(self.axes)[axis])]

    def crosses(self, axis: str, gpus: int) -> bool:
        """Does a group along `axis` reach beyond a node of `gpus` ranks? Raises ValueError as `stride`.

        >>> [grid(LLAMA3, tp=8, dp=4).crosses(axis, gpus=8) for axis in ("tp", "dp")]
        [False, True]
        """
        whole_numbers(gpus=gpus)
        whole, size = self.stride(axis), dict(self.axes)[axis]
        whole *= size  # a group lies within `whole` ranks, a multiple of that from 0
        return size > 1 and self.size > gpus and gpus % whole != 0

    def per_node(self, axis: str, gpus: int) -> int:
        """How many of a group along `axis` are together on a node of `gpus` ranks.

        Where groups and nodes are not aligned, 1, which is fewer than there are on some nodes.

        >>> [grid(LLAMA3, tp=2, dp=16).per_node(axis, gpus=8) for axis in ("tp", "dp")]
        [2, 4]
        """
        stride, size = self.stride(axis), dict(self.axes)[axis]
        if not self.crosses(axis, gpus):
            return size
        aligned = gpus % stride == 0 and stride * size % gpus == 0
        return gpus // stride if aligned else 1


def grid(order: str, **sizes: int) -> RankGrid:
    """The grid of this order; an axis without a size has 1.

    Raises ValueError for a size above 1 without an axis, an axis that is named twice, a size below 1.
    """
    names = str(order).split("-")
    if unknown := [name for name, size in sizes.items() if name not in names and size != 1]:
        raise ValueError(f"{unknown[0]}={sizes[unknown[0]]}: expected an axis of {order}")
    return RankGrid(tuple((name, sizes.get(name, 1)) for name in names))


def derived_dp(world_size: int, tp: int = 1, pp: int = 1, cp: int = 1) -> int:
    """What Megatron-LM makes of the ranks that are left (arguments.py): nobody sets it.

    Raises ValueError for what is no whole number of 1 or more, and where tp * pp * cp does not divide the
    world size.

    >>> derived_dp(4096, tp=8, pp=4)
    128
    """
    whole_numbers(world_size=world_size, tp=tp, pp=pp, cp=cp)
    model = tp * pp * cp
    if world_size % model:
        raise ValueError(f"tp={tp}, pp={pp}, cp={cp}: expected a product that divides {world_size}")
    return world_size // model

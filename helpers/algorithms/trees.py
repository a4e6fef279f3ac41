"""Trees: steps grow with log K. Binomial (Thakur et al. 2005) and double binary (Sanders et al. 2009)."""

from collections import defaultdict

from helpers.schedule import ADD, COPY, Builder, Schedule


def binomial_tree_allreduce(ranks: int) -> Schedule:
    """Reduce to rank 0 and broadcast: 2 ceil(log2 K) steps of the whole vector."""
    build = Builder("binomial-tree-allreduce", ranks, 1)
    distances = [1 << j for j in range(max(ranks - 1, 0).bit_length())]
    for d in distances:
        build.step(((r, r - d, 0, ADD) for r in range(d, ranks, 2 * d)), "reduce")
    for d in reversed(distances):
        build.step(((r - d, r, 0, COPY) for r in range(d, ranks, 2 * d)), "broadcast")
    return build.finish()


def in_order_tree(ranks: int) -> list[int | None]:
    """Parent of every rank in a binary tree of depth log2 K; None is the root.

    Numbered from left to right, odd ranks are inner nodes and even ranks leaves.

    >>> in_order_tree(7)
    [1, 3, 1, None, 5, 3, 5]
    """
    parents: list[int | None] = [None] * ranks

    def grow(low: int, high: int) -> int | None:
        if high <= low:
            return None
        left = 2 ** ((high - low).bit_length() - 1) - 1  # a complete tree on the left
        root = low + left
        for child in (grow(low, root), grow(root + 1, high)):
            if child is not None:
                parents[child] = root
        return root

    grow(0, ranks)
    return parents


def second_tree(first: list[int | None]) -> list[int | None]:
    """The same tree under other numbers, leaves become inner nodes: mirrored, or shifted for odd K."""
    K = len(first)
    plays = [K - 1 - r if K % 2 == 0 else (r - 1) % K for r in range(K)]
    who = {part: rank for rank, part in enumerate(plays)}
    return [None if first[plays[r]] is None else who[first[plays[r]]] for r in range(K)]


def double_binary_tree_allreduce(ranks: int, segments: int = 1) -> Schedule:
    """Two trees, half of the vector each: leaves of one are inner nodes of the other.

    segments: parts of each half that follow each other through the tree (pipelining).
    """
    build = Builder("double-binary-tree-allreduce", ranks, 2 * segments)
    by_time: dict[int, list] = defaultdict(list)
    first = in_order_tree(ranks)
    for half, parents in enumerate((first, second_tree(first))):
        _tree(parents, half * segments, segments, by_time)
    for _, transfers in sorted(by_time.items()):
        kinds = {transfer[3] for transfer in transfers}
        build.step(transfers, "both" if len(kinds) == 2 else "reduce" if ADD in kinds else "broadcast")
    return build.finish()


def _tree(parents: list[int | None], first: int, segments: int, by_time: dict) -> None:
    """Put every edge, up and down, at the earliest time at which its segment can be there."""

    def depth(rank: int) -> int:
        return 0 if parents[rank] is None else 1 + depth(parents[rank])

    deepest = max(map(depth, range(len(parents))))
    for rank, parent in enumerate(parents):
        for s in range(segments if parent is not None else 0):
            by_time[deepest - depth(rank) + s].append((rank, parent, first + s, ADD))
            by_time[deepest + depth(rank) - 1 + s].append((parent, rank, first + s, COPY))

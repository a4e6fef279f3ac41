"""Recursive halving and doubling (Rabenseifner 2004): log K steps, and the ring's bytes."""

from helpers.schedule import ADD, COPY, Builder, Schedule


def halving_doubling_allreduce(ranks: int, far_first: bool = False) -> Schedule:
    """Exchange halves with partners at distance 1, 2, 4, ...; then give the sums back in reverse order.

    far_first: halve with the farthest partners first; the first halves are the largest.

    For K that is no power of two, the ranks beyond the largest one below add into a partner first and
    get the result last, at the price of two more steps of the whole vector.
    """
    power = 1 << (ranks.bit_length() - 1) if ranks > 0 else 1
    build = Builder("halving-doubling-allreduce", ranks, power)
    extra = range(power, ranks)
    build.step(((r, r - power, c, ADD) for r in extra for c in range(power)), "fold in")

    def exchange(distances: list[int], phase: str, add: bool) -> None:
        """Each rank sends the chunks its partner is responsible for (halving), or all it has (doubling)."""
        moves = []
        # Once it has halved at `distances`, rank r answers for the chunks that share these bits with r.
        mask = sum(distances)
        for r in range(power):
            partner = r ^ distances[-1]
            owner = partner if add else r
            moves += [(r, partner, c, add) for c in range(power) if c & mask == owner & mask]
        build.step(moves, phase)

    order = [1 << j for j in range(power.bit_length() - 1)]
    order = order[::-1] if far_first else order
    for step in range(len(order)):
        exchange(order[: step + 1], "halving", ADD)
    for step in reversed(range(len(order))):
        exchange(order[: step + 1], "doubling", COPY)
    build.step(((r - power, r, c, COPY) for r in extra for c in range(power)), "hand out")
    return build.finish()

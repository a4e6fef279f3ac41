"""Recursive halving and doubling (Rabenseifner 2004): log K steps, and the ring's bytes."""

from helpers.schedule import ADD, COPY, Builder, Schedule


def halving_doubling_allreduce(ranks: int) -> Schedule:
    """Exchange halves with partners at distance 1, 2, 4, ...; then give the sums back the same way.

    For K that is no power of two, the ranks beyond the largest one below add into a partner first and
    get the result last, at the price of two more steps of the whole vector.
    """
    power = 1 << (ranks.bit_length() - 1) if ranks > 0 else 1
    build = Builder("halving-doubling-allreduce", ranks, power)
    extra = range(power, ranks)
    build.step(((r, r - power, c, ADD) for r in extra for c in range(power)), "fold in")

    def exchange(distance: int, phase: str, add: bool) -> None:
        """Each rank sends the chunks its partner is responsible for (halving), or all it has (doubling)."""
        moves = []
        for r in range(power):
            partner = r ^ distance
            owner = partner if add else r
            mask = 2 * distance - 1
            # After the halving at `distance`, rank r answers for chunks that share r's bits up to it.
            moves += [(r, partner, c, add) for c in range(power) if c & mask == owner & mask]
        build.step(moves, phase)

    distances = [1 << j for j in range(power.bit_length() - 1)]
    for distance in distances:
        exchange(distance, "halving", ADD)
    for distance in reversed(distances):
        exchange(distance, "doubling", COPY)
    build.step(((r - power, r, c, COPY) for r in extra for c in range(power)), "hand out")
    return build.finish()

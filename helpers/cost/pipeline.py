"""What pipelining gains: pieces that go through the same phases, one after the other."""


def pipelined(phases: list[tuple[str, float]], pieces: int) -> float:
    """Seconds until `pieces` equal pieces have gone through all `phases` in order.

    phases: (resource, seconds for the whole) in the order in which every piece needs them; a resource works
    on one piece at a time, on the one that is farthest along if several wait. Latency is not counted.
    Raises ValueError for fewer than 1 piece.

    >>> pipelined([("network", 2.0), ("NVLink", 1.0)], 1), pipelined([("network", 2.0), ("NVLink", 1.0)], 4)
    (3.0, 2.25)
    """
    if pieces < 1:
        raise ValueError(f"pieces={pieces}: expected at least 1")
    free = {resource: 0.0 for resource, _ in phases}
    ready, done = (
        [0.0] * pieces,
        [0] * pieces,
    )  # when each piece can go on, and how many phases it has behind it
    while min(done) < len(phases):
        waiting = [piece for piece in range(pieces) if done[piece] < len(phases)]
        starts = {p: max(ready[p], free[phases[done[p]][0]]) for p in waiting}
        piece = min(waiting, key=lambda p: (starts[p], -done[p], p))
        resource, seconds = phases[done[piece]]
        ready[piece] = free[resource] = starts[piece] + seconds / pieces
        done[piece] += 1
    return max(ready)

"""What gloo really puts on the wire: every byte of a loopback interface that nobody else uses."""

import pytest

from helpers.counting.private_network import wire_bytes
from helpers.ranks import on_the_wire

ELEMENTS = 4 * 2**20  # float32 a rank: 16 MiB, so that headers and hand-shakes are under one per cent


def measured(ranks: int, *operations: str) -> dict[str, float]:
    """Bytes on the wire, all ranks together, in units of one rank's vector."""
    moved = wire_bytes(list(operations), ranks, ELEMENTS)
    return {operation: bytes_ / (4 * ELEMENTS) for operation, bytes_ in moved.items()}


@pytest.mark.namespace
def test_two_ranks_move_what_the_ring_says():
    assert measured(2, "all_reduce")["all_reduce"] == pytest.approx(2, rel=0.01)


@pytest.mark.namespace
def test_halves_move_half_of_it_but_for_reduce_scatter():
    """gloo's reduce-scatter is made of AllReduces: twice the bytes that a ring needs (torch 2.13)."""
    moved = measured(4, "all_reduce", "all_gather", "reduce_scatter")
    assert moved["all_reduce"] == pytest.approx(6, rel=0.01)
    assert moved["all_gather"] == pytest.approx(3, rel=0.01)
    assert moved["reduce_scatter"] == pytest.approx(6, rel=0.01)


@pytest.mark.parametrize(
    ("carried", "resent", "told"),
    [([9], [0], 9), ([12, 9], [1, 0], 9), ([12, 11], [2, 1], 11), ([11, 12], [1, 1], 11)],
)
def test_a_packet_sent_twice_is_not_counted(monkeypatch, carried, resent, told):
    """Each try moves so many bytes and sends so many packets again; tries end with the first clean one."""
    reads, packets, calls = [], [], []
    for bytes_, again in zip(carried, resent, strict=True):
        reads += [100, 100 + bytes_]
        packets += [7, 7 + again]
    monkeypatch.setattr(on_the_wire, "QUIET", 0)
    monkeypatch.setattr(on_the_wire.dist, "barrier", lambda: None)
    monkeypatch.setattr(on_the_wire.dist, "broadcast_object_list", lambda told: None)
    monkeypatch.setattr(on_the_wire, "loopback_bytes", lambda: reads.pop(0))
    monkeypatch.setattr(on_the_wire, "packets_sent_again", lambda: packets.pop(0))
    assert on_the_wire.carried(lambda: calls.append(1), tries=len(carried)) == told
    assert len(calls) == len(carried) and not reads

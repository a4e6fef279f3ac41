"""What gloo really puts on the wire: every byte of a loopback interface that nobody else uses."""

import json
import shutil
import subprocess
import sys
import textwrap

import pytest
from test_failures import namespace_command

ELEMENTS = 4 * 2**20  # float32 a rank: 16 MiB, so that headers and hand-shakes are under one per cent


def measured(operation: str, ranks: int) -> float:
    """Bytes on the wire, all ranks together, in units of one rank's vector."""
    code = f"""
        import json
        from helpers.processes import run
        from helpers.ranks.ring import wire_bytes

        options = dict(ranks={ranks}, backend="gloo", elements={ELEMENTS}, operation={operation!r})
        print(json.dumps(run(wire_bytes, timeout=60, **options)[0]))
    """
    script = f"ip link set lo up; exec {shutil.which(sys.executable)} -"
    command = [*namespace_command(), "sh", "-c", script]
    done = subprocess.run(command, input=textwrap.dedent(code), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) / (4 * ELEMENTS)


@pytest.mark.namespace
@pytest.mark.parametrize("ranks", (2, 4))
def test_allreduce_moves_what_the_ring_says(ranks):
    assert measured("all_reduce", ranks) == pytest.approx(2 * (ranks - 1), rel=0.01)


@pytest.mark.namespace
def test_all_gather_moves_half_of_it_and_reduce_scatter_does_not():
    """gloo's reduce-scatter is an AllReduce inside: twice the bytes that the ring needs (torch 2.13)."""
    assert measured("all_gather", 4) == pytest.approx(3, rel=0.01)
    assert measured("reduce_scatter", 4) == pytest.approx(6, rel=0.01)

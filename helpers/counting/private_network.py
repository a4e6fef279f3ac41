"""A network of one's own, with nobody else on it, so that every byte counted is ours (Linux)."""

import json
import os
import shutil
import subprocess
import sys
import textwrap


class NoPrivateNetwork(RuntimeError):
    """This machine or this user may not make one; the message says what it takes."""


NEEDED = "needs Linux with iproute2, and root or unprivileged user namespaces"


def enter() -> list[str]:
    """The command that starts another one in a private network and host name.

    Raises NoPrivateNetwork where that is not allowed or not there.
    """
    if not (shutil.which("unshare") and shutil.which("ip")):
        raise NoPrivateNetwork(NEEDED)
    command = ["unshare", "-un"] if os.geteuid() == 0 else ["unshare", "-Urun"]
    tried = subprocess.run([*command, "ip", "link", "set", "lo", "up"], capture_output=True)
    if tried.returncode:
        raise NoPrivateNetwork(NEEDED)
    return command


def run_inside(code: str, before: str = "", timeout: float = 120) -> str:
    """What a Python program prints in a private network whose loopback is up.

    before: shell commands to run first, ended by a semicolon. Raises NoPrivateNetwork, and RuntimeError
    with the program's own words where it fails.
    """
    script = f"{before} ip link set lo up; exec {shutil.which(sys.executable)} -"
    done = subprocess.run(
        [*enter(), "sh", "-c", script],
        input=textwrap.dedent(code),
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    if done.returncode or done.stderr:
        raise RuntimeError(f"in the private network: {done.stderr.strip() or done.returncode}")
    return done.stdout


def wire_bytes(operations: list[str], ranks: int, elements: int) -> dict[str, int]:
    """Bytes that each of gloo's collectives on float32 vectors puts on the wire, all ranks together.

    operations: all_reduce, all_gather, reduce_scatter, as in helpers.ranks.ring.wire_bytes.
    """
    options = dict(ranks=ranks, backend="gloo", elements=elements, operations=operations)
    code = f"""
        from helpers.processes import run
        from helpers.ranks.ring import wire_bytes
        print(run(wire_bytes, timeout=60, **{options!r})[0])
    """
    return dict(zip(operations, json.loads(run_inside(code)), strict=True))

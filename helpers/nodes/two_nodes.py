"""Two computers that do not exist, each with a name, an address and a hosts file, joined by a cable (Linux).

A node is a network, a host name and a view of /etc/hosts of its own, and the cable a veth pair. Both have
this machine's files and processes. Needs root, or the right to be root in a user namespace.
Left out: a third node, a switch, delays, and names from anywhere else than /etc/hosts.
"""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from typing import NamedTuple

from helpers.counting.private_network import NEEDED, NoPrivateNetwork, enter

ADDRESSES = ("10.77.0.1", "10.77.0.2")
LOCALHOST = "127.0.0.1 localhost\n"
# No name server: it would be asked for names that are in no hosts file, and answer late.
# The namespaces last as long as somebody is in them: this shell is, until its input is closed.
NODE = """
hostname "$0" && ip link set lo up && mount -t tmpfs none /mnt && printf "$1" >/mnt/hosts &&
mount --bind /mnt/hosts /etc/hosts && : >/mnt/none && mount --bind /mnt/none /etc/resolv.conf &&
echo up && read end
"""
CABLE = """
ip link add eth0 type veth peer name eth1 && ip link set eth1 netns "$0" &&
ip addr add "$1/24" dev eth0 && ip link set eth0 up && nsenter -t "$0" -n sh -c '
ip link set eth1 name eth0 && ip addr add "$0/24" dev eth0 && ip link set eth0 up' "$2"
"""


class Node(NamedTuple):
    """name: of the host. address: of its eth0. enter: the command that runs another one there."""

    name: str
    address: str
    enter: list[str]

    def on(self, *command: str) -> list[str]:
        """The command that runs this one on the node, in the caller's folder."""
        return [*self.enter, *command]


@contextlib.contextmanager
def two_nodes(
    names: tuple[str, str] = ("alpha", "beta"), hosts: str | None = None
) -> Iterator[tuple[Node, Node]]:
    """Two nodes with these host names. What is started on them should have ended when the context is left.

    hosts: what both have as /etc/hosts; None for one that knows localhost and both names.
    Raises NoPrivateNetwork where this user may not make them.
    """
    enter()
    if hosts is None:
        known = zip(ADDRESSES, names, strict=True)
        hosts = LOCALHOST + "".join(f"{address} {name}\n" for address, name in known)
    become = [] if os.geteuid() == 0 else ["-U", "--preserve-credentials"]
    shells: list[subprocess.Popen] = []

    def node(command: list[str], name: str, address: str) -> Node:
        pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        shell = subprocess.Popen([*command, "sh", "-c", NODE, name, hosts], text=True, **pipe)
        shells.append(shell)
        if shell.stdout.readline() != "up\n":
            raise NoPrivateNetwork(f"{NEEDED}: {shell.stderr.read().strip()}")
        inside = ["nsenter", "-t", str(shell.pid), *become, "-n", "-u", "-m", "-w"]
        return Node(name, address, inside)

    try:
        alpha = node(["unshare", "-Urnum"] if become else ["unshare", "-num"], names[0], ADDRESSES[0])
        beta = node(alpha.on("unshare", "-num"), names[1], ADDRESSES[1])
        cable = alpha.on("sh", "-c", CABLE, str(shells[1].pid), *ADDRESSES)
        done = subprocess.run(cable, capture_output=True, text=True)
        if done.returncode:
            raise NoPrivateNetwork(f"{NEEDED}: {done.stderr.strip()}")
        yield alpha, beta
    finally:
        for shell in shells:
            shell.communicate()

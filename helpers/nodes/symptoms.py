"""What torch 2.13 says when nodes fail to meet, what it means, and what helps.

Every row is provoked in tests/test_many_nodes.py, by torchrun on two nodes, and cured.
Left out: NCCL's words, which need GPUs; and failures that say nothing, like two worlds instead of one.
"""

import re
from textwrap import indent, wrap
from typing import NamedTuple


class Symptom(NamedTuple):
    """says: words of the message, "..." for what differs. cause and cure: a few words each."""

    says: str
    cause: str
    cure: str

    def search(self, text: str) -> re.Match | None:
        """Where the text says so."""
        begin, *rest = self.says.split("...")
        pattern = re.escape(begin)
        for part in rest:
            pattern += ".+?" + re.escape(part) if part else r"\S+"
        return re.search(pattern, text)


NO_ADDRESS = (
    "a name without an address",
    "by address: --master-addr and --node-rank, and GLOO_SOCKET_IFNAME for gloo; "
    "with c10d --local-addr and --rdzv-conf=is_host=1 (others is_host=0)",
)
# The first that is found counts. The first of all is a warning: see explain.
SYMPTOMS = (
    Symptom("addresses of (...) cannot be retrieved", *NO_ADDRESS),
    Symptom("socket.gaierror:", *NO_ADDRESS),
    Symptom(
        "EADDRINUSE, message: address already in use",
        "a busy port",
        "give every job a port of its own, made of its number",
    ),
    Symptom(
        "Unable to find address for: ...",
        "an interface that is not there",
        "GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME: name one that `ip -br a` shows",
    ),
    Symptom(
        "Gloo connectFullMesh failed",
        "an interface that leads to nobody",
        "GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME: the one that others can reach; "
        "after a restart TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1",
    ),
    Symptom(
        "wait timeout after ...ms, keys: ...role_info/...",
        "two nodes with one node rank",
        "number the nodes: SLURM_NODEID or JOB_COMPLETION_INDEX, read on each",
    ),
    Symptom(
        "waiting for clients. .../... clients joined",
        "fewer nodes than --nnodes",
        "look at those that are missing: did they start, what do they say?",
    ),
    Symptom(
        "timed out after ...ms while trying to connect to (...)",
        "nobody at the master's address",
        "did that node start? is it 127.0.0.1, or behind a firewall? "
        "with c10d: does the host know that it is (is_host=1)?",
    ),
    Symptom(
        "RendezvousTimeoutError",
        "nodes that wait for others",
        "the same --nnodes, --rdzv-id and --rdzv-endpoint on all",
    ),
)


def explain(text: str) -> Symptom | None:
    """The first symptom in what one node wrote, or None where there is none.

    That a name has no address is a warning, and may be over when something else goes wrong: it counts only
    where the log has no other symptom than a time-out at such a name.

    >>> explain("RuntimeError: Unable to find address for: ib0").cause
    'an interface that is not there'
    """
    first, *others = [symptom for symptom in SYMPTOMS if symptom.search(text)] or [None]
    if first is not SYMPTOMS[0]:
        return first
    names = set(re.findall(r"addresses of \(([^,)]+)", text))
    for other in others:
        at = re.search(r"connect to \(([^,)]+)", other.search(text).group())
        if other.cause != first.cause and not (at and at[1] in names):
            return other
    return first


def words(text: str) -> str:
    """The words that `explain` goes by, without the number of the port; "" where there are none.

    >>> words("The client socket has timed out after 1000ms while trying to connect to (a, 29500).")
    'timed out after 1000ms while trying to connect to (a, PORT)'
    """
    found = explain(text)
    return re.sub(r", \d+\)", ", PORT)", found.search(text).group()) if found else ""


def sheet() -> str:
    """All symptoms to read: what the log says, the cause, what helps."""
    told = []
    for each in SYMPTOMS:
        told += [each.says, *(indent(line, "    ") for line in (each.cause, *wrap(each.cure, 80)))]
    return "\n".join(told)

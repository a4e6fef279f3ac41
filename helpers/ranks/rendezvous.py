"""Rank functions that make the calls by which torchrun's nodes meet, each into a trap.

Each returns what a log would have: what the C++ side wrote to stderr, then the error's type and words.
Nothing here asks a name server: the names are no names, or are not looked up.
Left out: traps that take two networks or two torchruns; tests/test_many_nodes.py has those.
"""

import contextlib
import os
import pickle
import socket
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import timedelta

import torch.distributed as dist

HERE, PATIENCE = "127.0.0.1", timedelta(seconds=1)
MEET = timedelta(seconds=20)  # for nodes that are meant to find each other


def error_of(call: Callable, *arguments) -> str:
    """What the call writes to stderr, and type and words of what it raises."""
    told = ""
    with tempfile.TemporaryFile("w+") as log:
        kept = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            call(*arguments)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        log.seek(0)
        return log.read() + told


def busy_port(rank: int, world_size: int) -> str:
    """Be the master of two nodes on a port that somebody holds."""
    held = dist.TCPStore(
        HERE, 0, None, True, wait_for_workers=False
    )  # as the first job's master holds it
    return error_of(dist.TCPStore, HERE, held.port, 2, True, PATIENCE)


def nobody_there(rank: int, world_size: int) -> str:
    """Go to a master that does not exist."""
    with socket.socket() as bound:  # nobody else gets the port, and nobody listens
        bound.bind((HERE, 0))
        port = bound.getsockname()[1]
        return error_of(dist.TCPStore, HERE, port, 2, False, PATIENCE)


def too_few(rank: int, world_size: int) -> str:
    """Be the master of two nodes, the second of which never comes."""
    return error_of(dist.TCPStore, HERE, 0, 2, True, PATIENCE)


def unknown_name(rank: int, world_size: int) -> str:
    """Be the master under a name that has no address, as torchrun --standalone is."""
    name = "alpha..invalid"  # an empty label: no resolver sends this out
    return error_of(dist.TCPStore, name, 0, None, True, PATIENCE)


def no_interface(rank: int, world_size: int) -> str:
    """Talk through an interface that no computer has under this name."""
    return error_of(lambda: dist.ProcessGroupGloo.create_device(interface="ib-none"))


def another_job(rank: int, world_size: int) -> str:
    """Wait in job a, while the other node waits in job b at the same address."""
    store = dist.HashStore()
    nodes = [_node(store, job, HERE, 2, PATIENCE * 2)[0] for job in ("a", "b")]
    other = threading.Thread(target=_quietly, args=(nodes[1].next_rendezvous,))
    other.start()
    told = error_of(nodes[0].next_rendezvous)
    other.join()
    return told


# The traps by what they should be called; the words are those of helpers.nodes.symptoms.
TRAPS = {
    "a name without an address": unknown_name,
    "a busy port": busy_port,
    "an interface that is not there": no_interface,
    "fewer nodes than --nnodes": too_few,
    "nobody at the master's address": nobody_there,
    "nodes that wait for others": another_job,
}


def every_trap(rank: int, world_size: int) -> str:
    """Each rank goes into another trap, so that they wait at the same time. Needs len(TRAPS) ranks."""
    return list(TRAPS.values())[rank](rank, world_size)


def node_ranks(rank: int, world_size: int, orders: list[list[str]]) -> dict[str, int]:
    """The node rank that c10d gives to nodes known by these names, which come in the order orders[rank].

    They meet in a store of this process: there is no endpoint. Raises what a node raised.
    """
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # names without addresses do
    names, store, told, failed = orders[rank], dist.HashStore(), {}, []
    met = threading.Barrier(len(names))

    def join(name: str, node) -> None:
        try:
            told[name] = node.next_rendezvous().rank
            met.wait(10)  # who leaves closes the rendezvous for all
            node.shutdown()
        except Exception as error:
            failed.append(error)
            met.abort()

    threads = []
    for number, name in enumerate(names):
        node, backend = _node(store, "job", name, len(names), MEET)
        threads.append(threading.Thread(target=join, args=(name, node)))
        threads[-1].start()
        while not failed and _arrived(backend) <= number:
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return {name: told[name] for name in names}


def _arrived(backend) -> int:
    """How many nodes have joined so far."""
    state = backend.get_state()
    return len(pickle.loads(state[0]).participants) if state else 0


def _quietly(call: Callable) -> None:
    with contextlib.suppress(Exception):
        call()


def _node(store, job: str, name: str, count: int, patience: timedelta):
    """One of `count` nodes, known by this name, and what it reads the others from."""
    from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend
    from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic

    backend = c10d_rendezvous_backend.C10dRendezvousBackend(store, job)
    limits = dynamic.RendezvousTimeout(join=patience)
    make = dynamic.DynamicRendezvousHandler.from_backend
    return make(job, store, backend, count, count, name, limits), backend

"""Who am I, and who told me? Prints what a launcher wrote into the environment, then runs another program.

torchrun ... -m helpers.nodes.who                       # only says who it is, without importing torch
torchrun ... -m helpers.nodes.who helpers.ddp --steps 20
"""

import os
import runpy
import socket
import sys

# GROUP_RANK is torchrun's name for the node rank.
TOLD = ("GROUP_RANK", "LOCAL_RANK", "RANK", "WORLD_SIZE", "MASTER_ADDR")


def line() -> str:
    """The host and the variables, in one line; "-" for what nobody told."""
    return " ".join([socket.gethostname(), *(f"{name}={os.environ.get(name, '-')}" for name in TOLD)])


if __name__ == "__main__":
    print(line() + "\n", end="", flush=True)  # one write, so that lines of several ranks don't mix
    if sys.argv[1:]:
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)

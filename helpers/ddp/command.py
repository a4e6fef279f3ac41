"""The command line: every option with its default and unit; mistakes told once, in one line."""

import argparse
import os

from helpers.ddp.group import BACKENDS
from helpers.ddp.options import CHECKPOINT_EVERY, PRECISIONS, STEPS, Options

PROGRAM = "python -m helpers.ddp"
DESCRIPTION = """Train a small GPT on the bytes of Alice's Adventures in Wonderland with DistributedDataParallel.

Alone it is one rank. Under torchrun it is as many as you start, on one node or several:
  torchrun --standalone --nproc_per_node=4 -m helpers.ddp --steps 200
A step sees (ranks x --accumulate x --batch) windows of 32 bytes."""
EPILOG = "Exit status: 0 when trained, 2 for an option that can't work (said in one line), else 1."


class Parser(argparse.ArgumentParser):
    """argparse that answers a mistake with one line, and speaks on one rank of a node only."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n")

    def _print_message(self, message, file=None):
        if os.environ.get("LOCAL_RANK", "0") == "0":
            super()._print_message(message, file)


def parser() -> Parser:
    """All options; what a value may be is left to Options.check(), which a notebook calls as well."""
    told = Options()
    parser = Parser(
        prog=PROGRAM,
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )

    def number(name: str, kind: type, words: str, default=...):
        default = getattr(told, name) if default is ... else default
        shown = "" if default is None else f" (default: {default})"
        flag = "--" + name.replace("_", "-")
        parser.add_argument(
            flag, type=kind, default=default, metavar="N", help=words + shown
        )

    number("steps", int, f"optimizer steps in all (default: {STEPS})")
    number("epochs", int, "passes over the text, instead of --steps")
    number("batch", int, "windows a rank and micro-batch, not of all ranks together")
    number("accumulate", int, "micro-batches a step, with one AllReduce at the end")
    parser.add_argument(
        "--precision",
        default=told.precision,
        metavar="NAME",
        help=f"{', '.join(PRECISIONS)}; bf16 is autocast with float32 parameters "
        f"(default: {told.precision})",
    )
    number("learning_rate", float, "of AdamW")
    number("clip", float, "largest L2 norm of the averaged gradient, inf for none")
    number("dropout", float, "probability; above 0 the result depends on the ranks")
    number("seed", int, "of parameters, order of the data and dropout")
    parser.add_argument(
        "--checkpoint", metavar="PATH", help="file to write, on the machine of rank 0"
    )
    number(
        "checkpoint_every",
        int,
        f"steps between two checkpoints; one at the end too (default: {CHECKPOINT_EVERY})",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="go on from --checkpoint, to the same bits; from the start if it isn't there",
    )
    number("report_every", int, "steps between two reported losses")
    parser.add_argument(
        "--backend",
        default="auto",
        metavar="NAME",
        help=f"{', '.join(BACKENDS)}; auto takes nccl where every rank of the node has a "
        "GPU, else gloo on the CPU (default: auto)",
    )
    number("expect_ranks", int, "refuse to train in a world of another size", None)
    number("timeout", float, "seconds to wait for another rank in a collective", 120.0)
    return parser

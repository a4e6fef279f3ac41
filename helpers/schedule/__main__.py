"""Price one algorithm from the command line.

python -m helpers.schedule ring-allreduce --ranks 4 --length 10 --alpha 20e-6 --bandwidth 50e9
"""

import argparse
import json
import sys

from helpers.algorithms import BY_RANKS
from helpers.count import count
from helpers.price import FORMULAS, price_flat


class Parser(argparse.ArgumentParser):
    """argparse that answers a mistake with one line."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n")


def report(name: str, ranks: int, length: int, itemsize: int, alpha: float, bandwidth: float) -> dict:
    """Steps, bytes and times of one algorithm, ready for JSON."""
    schedule = BY_RANKS[name](ranks)
    moved = count(schedule, length, itemsize)
    formula = FORMULAS.get(name)
    return {
        "algorithm": name,
        "steps": len(schedule.steps),
        "bytes sent by rank": moved.sent.tolist(),
        "bytes by phase": moved.by_phase,
        "seconds by events": price_flat(schedule, length * itemsize, alpha, bandwidth),
        "seconds by formula": formula and formula(ranks, length * itemsize, alpha, bandwidth),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = Parser(prog="python -m helpers.schedule", description=__doc__.splitlines()[0])
    parser.add_argument("algorithm", nargs="?", help="a name that --list shows")
    parser.add_argument("--list", action="store_true", help="name the algorithms")
    parser.add_argument("--ranks", type=int, default=4, help="world size K (default: 4)")
    parser.add_argument(
        "--length", type=int, default=1_000_000, help="elements of the vector (default: 1000000)"
    )
    parser.add_argument("--itemsize", type=int, default=4, help="bytes an element (default: 4)")
    parser.add_argument("--alpha", type=float, default=20e-6, help="seconds a message (default: 20e-6)")
    parser.add_argument("--bandwidth", type=float, default=50e9, help="bytes a second (default: 50e9)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = vars(parser.parse_args(arguments))
    if options.pop("list"):
        print("\n".join(BY_RANKS))
        return 0
    name, as_json = options.pop("algorithm"), options.pop("json")
    if name not in BY_RANKS:
        parser.error(f"algorithm {name!r}: expected one of {', '.join(BY_RANKS)}")
    try:
        told = report(name, **options)
    except ValueError as error:
        parser.error(str(error))
    print(
        json.dumps(told) if as_json else "\n".join(f"{key + ':':20} {value}" for key, value in told.items())
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Price one algorithm from the command line.

python -m helpers.schedule ring-allreduce --ranks 4 --length 10 --alpha 20e-6 --bandwidth 50e9
"""

import argparse
import json
import sys
from contextlib import suppress

from helpers.algorithms import BY_RANKS
from helpers.cost.price import FORMULAS, price_flat
from helpers.count import count

PROGRAM = "python -m helpers.schedule"
LISTED = 16  # nodes whose bytes are printed one by one; JSON has them all
LARGEST = 10**15  # bytes of a vector: sums over ranks and steps still fit in 64 bits
EPILOG = f"example:\n  {__doc__.splitlines()[2]}\n\nBytes are counted for chunks as even as whole elements "
EPILOG += "allow; seconds are priced for equal chunks."


class Parser(argparse.ArgumentParser):
    """argparse that answers a mistake with one line."""

    def error(self, message: str):
        self.exit(2, f"{self.prog}: {message}\n")


def whole(text: str) -> int:
    """A whole number, also written as 1e6."""
    for read in (int, float):
        with suppress(ValueError):
            if read(text) % 1 == 0:
                return int(read(text))
    raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number")


def report(name: str, ranks: int, length: int, itemsize: int, alpha: float, bandwidth: float) -> dict:
    """Steps, bytes and times of one algorithm, ready for JSON. Raises ValueError for what has no price."""
    if itemsize < 1:
        raise ValueError(f"itemsize={itemsize}: expected a whole number of bytes, at least 1")
    if length * itemsize > LARGEST:
        raise ValueError(f"length={length}: expected at most {LARGEST:.0e} bytes in all")
    schedule = BY_RANKS[name](ranks)
    moved = count(schedule, length, itemsize)
    formula = FORMULAS.get(name)
    sent = moved.sent.tolist()
    return {
        "algorithm": name,
        "steps": len(schedule.steps),
        "bytes sent by rank": sent[:ranks],
        **({"bytes sent by server": sent[ranks:]} if sent[ranks:] else {}),
        "bytes by phase": moved.by_phase,
        "seconds by events": price_flat(schedule, length * itemsize, alpha, bandwidth),
        "seconds by formula": formula and formula(ranks, length * itemsize, alpha, bandwidth),
    }


def in_words(value: object) -> str:
    """A value of the report as text: six digits, and of many ranks the least and the most."""
    if isinstance(value, list) and len(value) > LISTED:
        return f"{min(value)} to {max(value)}"
    return f"{value:.6g}" if isinstance(value, float) else "none" if value is None else str(value)


def main(arguments: list[str] | None = None) -> int:
    about = {"description": __doc__.splitlines()[0], "epilog": EPILOG}
    parser = Parser(prog=PROGRAM, formatter_class=argparse.RawDescriptionHelpFormatter, **about)
    parser.add_argument("algorithm", nargs="?", help="a name that --list shows")
    parser.add_argument("--list", action="store_true", help="name the algorithms; takes no algorithm")
    parser.add_argument("--ranks", type=whole, default=4, help="world size K (default: 4)")
    length = "elements of each rank's vector; for all-to-all, of all blocks together (default: 1000000)"
    parser.add_argument("--length", type=whole, default=1_000_000, help=length)
    parser.add_argument("--itemsize", type=whole, default=4, help="bytes an element (default: 4)")
    parser.add_argument("--alpha", type=float, default=20e-6, help="seconds a message (default: 20e-6)")
    parser.add_argument("--bandwidth", type=float, default=50e9, help="bytes a second (default: 50e9)")
    parser.add_argument("--json", action="store_true", help="print JSON, with every rank and all digits")
    options = vars(parser.parse_args(arguments))
    name, as_json, names = (options.pop(key) for key in ("algorithm", "json", "list"))
    if names:
        if name is not None:
            parser.error(f"--list and algorithm {name!r}: expected one of the two")
        print("\n".join(BY_RANKS))
        return 0
    if name is None:
        parser.error(f"usage: {PROGRAM} ALGORITHM [options]; see --list and --help")
    if name not in BY_RANKS:
        parser.error(f"algorithm {name!r}: expected one of {', '.join(BY_RANKS)}")
    try:
        told = report(name, **options)
    except ValueError as error:
        parser.error(str(error))
    print(json.dumps(told) if as_json else "\n".join(f"{k + ':':21} {in_words(v)}" for k, v in told.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What `helpers.processes.run` refuses, each with the argument's name, its value and the cure."""

import importlib
import inspect
import math
import pickle
import sys
from collections.abc import Callable

LONGEST = 1e6  # seconds; more than a wait can be told to last
OWN = {"f", "ranks", "timeout", "backend"}  # names of run's own parameters


def check_call(f: Callable, ranks: int, timeout: float, arguments: dict) -> None:
    """Refuse what cannot work before any process starts.

    Raises TypeError or ValueError that names the argument, its value and what was expected.
    """
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout={timeout!r}: expected seconds, a number above 0")
    if not (timeout > 0 and math.isfinite(timeout)):
        raise ValueError(f"timeout={timeout}: expected seconds, a finite number above 0")
    if timeout > LONGEST:
        raise ValueError(f"timeout={timeout:g}: expected at most {LONGEST:g} seconds")
    if not inspect.isfunction(f):
        raise TypeError(
            f"f={f!r}: expected a function f(rank, world_size, ...) of a module, not a {type(f).__name__}"
        )
    if f.__module__ == "__main__" or "<" in f.__qualname__:
        raise ValueError(
            f"f={f.__qualname__}: a rank is a new process and can only import functions from a module. "
            "Write it to a file with %%writefile my_ranks.py, then `from my_ranks import ...`"
        )
    found = sys.modules.get(f.__module__) or importlib.import_module(f.__module__)
    for part in f.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not f:
        raise ValueError(
            f"f={f.__qualname__}: {f.__module__} has another function of this name; import it again"
        )
    try:
        inspect.signature(f).bind(0, ranks, **arguments)
    except TypeError as error:
        taken = OWN & set(inspect.signature(f).parameters)
        hint = f"; run() keeps {', '.join(sorted(taken))} for itself: rename" if taken else ""
        raise TypeError(
            f"{f.__qualname__}{inspect.signature(f)} does not fit the arguments: {error}{hint}"
        ) from None


def pickled(arguments: dict) -> bytes:
    """The arguments as bytes for another process; raises TypeError naming the one that cannot be sent."""
    for name, value in arguments.items():
        try:
            pickle.dumps(value)
        except Exception as error:
            raise TypeError(
                f"{name}={value!r}: can't be sent to another process ({error}); "
                "pass numbers, strings or tensors"
            ) from None
    return pickle.dumps(arguments)

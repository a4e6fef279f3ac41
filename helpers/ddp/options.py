"""What a training run can be told, with defaults, units and what is refused.

The names are those of the command line (`--learning-rate` is `learning_rate`). Left out: what belongs to the
process group, its backend and its patience, because in a notebook `run()` decides on them.
"""

import math
import os
from dataclasses import dataclass, fields
from numbers import Integral, Real

import torch

STEPS, CHECKPOINT_EVERY = 200, 50  # where nothing is said
# The dtype of parameters, gradients and sums; bf16 keeps them in float32 and multiplies in bfloat16.
PRECISIONS = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bf16": torch.float32,
}
# Change one of these and the same step gives other bits, so a checkpoint can't go on.
BINDING = (
    "batch",
    "accumulate",
    "precision",
    "learning_rate",
    "clip",
    "dropout",
    "seed",
)


class SettingError(ValueError):
    """A setting that can't work: its name, its value and what was expected, in one line."""


@dataclass(frozen=True)
class Options:
    """Settings of one training run.

    steps or epochs: how long; 200 steps when neither is given. batch: windows of text a rank and micro-batch.
    accumulate: micro-batches a step, so that a step sees ranks x accumulate x batch windows.
    precision: "float64", "float32" or "bf16" (autocast, float32 parameters).
    learning_rate: of AdamW. clip: largest norm of the averaged gradient, math.inf for none. dropout: a
    probability; above 0 the result depends on the number of ranks. seed: of parameters, order and dropout.
    checkpoint: path of a file. checkpoint_every: steps between two, 50 when not given; the last step has one
    too. resume: go on from it, if it is there. report_every: steps between two reported losses.
    """

    steps: int | None = None
    epochs: int | None = None
    batch: int = 8
    accumulate: int = 1
    precision: str = "float64"
    learning_rate: float = 3e-3
    clip: float = 1.0
    dropout: float = 0.0
    seed: int = 0
    checkpoint: str | os.PathLike | None = None
    checkpoint_every: int | None = None
    resume: bool = False
    report_every: int = 25

    def check(self) -> None:
        """Raise SettingError, naming the first setting that can't work."""
        for name in ("steps", "epochs", "checkpoint_every"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        for name in ("batch", "accumulate", "report_every"):
            _whole(name, getattr(self, name), 1)
        _whole("seed", self.seed, 0)
        if self.seed >= 2**32:
            raise SettingError(f"seed {self.seed}: expected less than {2**32}")
        if self.steps is not None and self.epochs is not None:
            raise SettingError(
                f"steps {self.steps} and epochs {self.epochs}: expected one of them"
            )
        if self.precision not in PRECISIONS:
            names = ", ".join(PRECISIONS)
            raise SettingError(f"precision {self.precision}: expected one of {names}")
        _number("learning rate", self.learning_rate, 0, math.inf)
        if self.clip != math.inf:
            _number("clip", self.clip, 0, math.inf)
        if self.dropout != 0:
            _number("dropout", self.dropout, 0, 1)
        path = self.checkpoint
        if path is not None and not (isinstance(path, str | os.PathLike) and str(path)):
            raise SettingError(f"checkpoint {path!r}: expected a path")
        for name in ("resume", "checkpoint_every"):
            if path is None and getattr(self, name):
                words = name.replace("_", " ")
                raise SettingError(f"{words} without checkpoint: expected its path too")

    def total_steps(self, per_epoch: int) -> int:
        """Steps of the whole run, when an epoch has `per_epoch` of them."""
        return self.epochs * per_epoch if self.epochs else self.steps or STEPS

    def binding(self, world_size: int, backend: str) -> dict:
        """The settings that a checkpoint and the run that goes on from it must share."""
        shared = {"ranks": world_size, "backend": backend}
        return shared | {name: _plain(getattr(self, name)) for name in BINDING}


def options_of(told: dict) -> Options:
    """Options from names and values; raises SettingError for an unknown name or an impossible value."""
    known = [field.name for field in fields(Options)]
    for name in told:
        if name not in known:
            raise SettingError(f"option {name}: expected one of {', '.join(known)}")
    options = Options(**told)
    options.check()
    return options


def _plain(value):
    """Numpy's numbers as Python's: a checkpoint is read without knowing numpy."""
    if isinstance(value, Integral):
        return int(value)
    return float(value) if isinstance(value, Real) else value


def _whole(name: str, value, least: int) -> None:
    name = name.replace("_", " ")
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(
            f"{name} {value}: expected a whole number of at least {least}"
        )


def _number(name: str, value, above: float, below: float) -> None:
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not (number and above < value < below):
        end = f" and below {below}" if math.isfinite(below) else ""
        zero = "0, or " if name == "dropout" else ""
        raise SettingError(
            f"{name} {value}: expected {zero}a number above {above}{end}"
        )

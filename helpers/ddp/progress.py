"""What rank 0 says while it trains, and how fast it goes.

Lines with losses; a bar as well where tqdm is installed and somebody watches.
"""

import os
import sys
import time

import torch


class Progress:
    """Says lines and moves a bar on rank 0; silent on every other rank.

    The bar needs tqdm and a terminal; TQDM_DISABLE=1 switches it off.
    """

    def __init__(self, rank: int, steps: int, done: int):
        self.rank, self.bar = rank, None
        if rank == 0 and os.environ.get("TQDM_DISABLE") != "1" and sys.stderr.isatty():
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=steps, initial=done, unit="step")

    def say(self, line: str) -> None:
        """Print one line on rank 0."""
        if self.bar is not None:
            self.bar.write(line)
        elif self.rank == 0:
            print(line, flush=True)

    def advance(self) -> None:
        """One more step is done."""
        if self.bar is not None:
            self.bar.update()

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.bar is not None:
            self.bar.close()


class Clock:
    """Steps a second from the end of the first step on: that one also warms up the machine."""

    def __init__(self, device: torch.device):
        self.device, self.steps, self.begin = device, -1, time.perf_counter()

    def tick(self) -> None:
        """One more step is done."""
        self.steps += 1
        if self.steps == 0:
            self.begin = self._now()

    def rate(self) -> float:
        """Steps a second; nan with fewer than two steps."""
        return (
            self.steps / (self._now() - self.begin) if self.steps > 0 else float("nan")
        )

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

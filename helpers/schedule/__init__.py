"""A collective algorithm as data: steps of transfers. Writers make it, readers run, count and price it."""

from helpers.schedule.core import ADD, COPY, Builder, Schedule, Step, Transfer, chunk_sizes

__all__ = ["ADD", "COPY", "Builder", "Schedule", "Step", "Transfer", "chunk_sizes"]

"""The references: which entries there are, how each was checked, and which of them a ledger row names.

`book/data/references.bib` holds one entry a source. Besides its key the ledger may know an entry by other
names (field `ledger`), because a source file is better named than keyed: `reducer.cpp rebuild_buckets`.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pybtex.database import parse_file

from helpers.ledger.claims import ROOT

BIBLIOGRAPHY = Path("book", "data", "references.bib")
NO_SOURCE = ("-", "document itself")
STATES = ("checked", "unchecked")


@dataclass(frozen=True)
class Reference:
    """One entry; `state` is `checked` or `unchecked`, `how` says against what, or why not."""

    key: str
    names: tuple[str, ...]
    state: str
    how: str


@dataclass(frozen=True)
class Part:
    """A source as a ledger row names it: the name that leads to `key`, and where in the source."""

    name: str
    place: str
    key: str


@cache
def references(root: Path = ROOT) -> dict[str, Reference]:
    """All entries by key; raises ValueError for one that does not say whether it was checked."""
    found = {}
    for key, entry in parse_file(str(root / BIBLIOGRAPHY)).entries.items():
        states = [state for state in STATES if entry.fields.get(state)]
        if len(states) != 1:
            raise ValueError(f"{BIBLIOGRAPHY}, {key}: needs one of the fields {' and '.join(STATES)}")
        names = tuple(filter(None, entry.fields.get("ledger", "").split(" | ")))
        found[key] = Reference(key, (key, *names), states[0], entry.fields[states[0]])
    return found


def parts(primary_source: str, root: Path = ROOT) -> list[Part]:
    """The sources named in a row, in its order; `key` is empty where no entry has such a name.

    >>> parts("dubey2024llama3 3.3.2; reducer.cpp rebuild_buckets")[1]
    Part(name='reducer.cpp', place=' rebuild_buckets', key='pytorch-reducer')
    """
    if primary_source in NO_SOURCE:
        return []
    return [_part(text.strip(), root) for text in primary_source.split(";")]


def _part(text: str, root: Path) -> Part:
    for name, key in _names(root):
        if re.match(rf"{re.escape(name)}(?![\w.-])", text):
            return Part(name, text[len(name) :], key)
    return Part("", text, "")


@cache
def _names(root: Path) -> list[tuple[str, str]]:
    """(name, key), the longest names first: `nccl-tests issue 212` must not end at `nccl-tests`."""
    pairs = [(name, entry.key) for entry in references(root).values() for name in entry.names]
    return sorted(pairs, key=lambda pair: -len(pair[0]))

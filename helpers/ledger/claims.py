"""The ledger: which claims the book examines, and which of them the chapters prove.

`book/data/claims.csv` says what is claimed and what holds; the chapters say, by cell tags and
targets, where it is proven. This file reads both and compares them. It runs no notebook: that the
stored outputs are true is what nbval and the book build check.

A claim is stated at a MyST target `(A-27)=`, proven by a cell with the tags `claim` and `A-27`, and
broken by a cell with the tags `break`, `A-27` and `raises-exception`.
"""

import csv
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEDGER = Path("book", "data", "claims.csv")

ID = re.compile(r"[A-Z]-\d{2,3}")
TARGET = re.compile(r"^\(([A-Z]-\d{2,3})\)=[ \t]*$", re.MULTILINE)
ANSI = re.compile(r"\x1b\[[0-9;]*m")

VERDICTS = ("right", "right with condition", "loose", "wrong")
TOLD_KINDS = ("historical", "narrative")
KINDS = ("theorem", "algorithm", "arithmetic", "API behaviour", "empirical", *TOLD_KINDS)
STATUSES = ("proven", "told", "open")
SOURCES = ("A 7.1", "B")
CHAPTERS = (
    "one-step", "gradient-average", "unequal-tokens",
    "ring-allreduce", "alpha-beta", "rails-and-trees", "real-clusters", "your-machine",
    "ddp-run", "buckets-and-overlap", "traps", "many-nodes",
    "scaling", "memory", "zero", "hybrid", "precision-and-compression",
    "history", "landscape", "misreadings", "learning-path",
)  # fmt: skip


class LedgerError(ValueError):
    """A row of the ledger that cannot be right; the message names the row and the column."""


@dataclass(frozen=True)
class Row:
    """One claim of one source, as the columns of claims.csv have it."""

    id: str
    chapter: str
    source: str
    section: str
    kind: str
    claim: str
    verdict: str
    correct_statement: str
    primary_source: str
    proof: str
    expected_value: str
    falsification: str
    check: str

    @property
    def checks(self) -> tuple[str, ...]:
        """The exact strings that the proof must print; the column separates them by ` | `."""
        return tuple(part for part in self.check.split(" | ") if part)


@dataclass
class Proof:
    """What the chapters hold for one id. Cells are (chapter, cell) pairs as read from the file."""

    claims: list[tuple[str, dict]] = field(default_factory=list)
    breaks: list[tuple[str, dict]] = field(default_factory=list)
    targets: list[str] = field(default_factory=list)

    @property
    def chapters(self) -> set[str]:
        return {name for name, _ in self.claims + self.breaks} | set(self.targets)


def ledger(root: Path = ROOT) -> list[Row]:
    """All rows of claims.csv in file order; raises LedgerError on the first that cannot be right."""
    columns = [column.name for column in fields(Row)]
    with (root / LEDGER).open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if reader.fieldnames != columns:
            raise LedgerError(f"claims.csv has the columns {reader.fieldnames}, expected {columns}")
        rows = [_row(line, f"claims.csv, line {reader.line_num}") for line in reader]
    seen: set[str] = set()
    for row in rows:
        if row.id in seen:
            raise LedgerError(f"row {row.id}, column id: the id is used twice")
        seen.add(row.id)
    return rows


def _row(line: Mapping[str | None, str | None], place: str) -> Row:
    if None in line or None in line.values():
        raise LedgerError(f"{place}: the row has too many or too few columns")
    row = Row(**line)  # type: ignore[arg-type]
    if not ID.fullmatch(row.id):
        raise LedgerError(f"{place}, column id: {row.id!r} is not a letter, a dash, two or three digits")
    known = {"verdict": VERDICTS, "kind": KINDS, "chapter": CHAPTERS, "source": SOURCES}
    for column, allowed in known.items():
        if getattr(row, column) not in allowed:
            raise LedgerError(f"row {row.id}, column {column}: {getattr(row, column)!r} is not in {allowed}")
    for column in ("section", "claim", "correct_statement"):
        if not getattr(row, column).strip():
            raise LedgerError(f"row {row.id}, column {column}: empty")
    return row


def pages(root: Path = ROOT) -> list[tuple[str, list[dict]]]:
    """Every page of the book as (name, cells); a Markdown page is one Markdown cell."""
    found = []
    for path in sorted((root / "book").rglob("*")):
        if path.suffix == ".ipynb" and ".ipynb_checkpoints" not in path.parts:
            found.append((path.stem, json.loads(path.read_text(encoding="utf-8"))["cells"]))
        elif path.suffix == ".md" and path.parent != root / "book" / "data":
            text = path.read_text(encoding="utf-8")
            found.append((path.stem, [{"cell_type": "markdown", "source": text, "metadata": {}}]))
    return found


def proofs(root: Path = ROOT) -> dict[str, Proof]:
    """What the pages hold for each id they mention, whether or not the ledger knows that id."""
    found: dict[str, Proof] = {}
    for name, cells in pages(root):
        for cell in cells:
            for id_ in ids_of(cell):
                proof = found.setdefault(id_, Proof())
                if "claim" in tags_of(cell):
                    proof.claims.append((name, cell))
                if "break" in tags_of(cell):
                    proof.breaks.append((name, cell))
            if cell["cell_type"] == "markdown":
                for id_ in TARGET.findall("".join(cell["source"])):
                    found.setdefault(id_, Proof()).targets.append(name)
    return found


def status(row: Row, found: Mapping[str, Proof]) -> str:
    """`proven` (a claim cell and a break cell), `told` (a row of history or opinion), or `open`."""
    proof = found.get(row.id, Proof())
    if proof.claims and proof.breaks:
        return "proven"
    if row.kind in TOLD_KINDS and proof.targets:
        return "told"
    return "open"


def tags_of(cell: Mapping) -> list[str]:
    return cell["metadata"].get("tags", [])


def ids_of(cell: Mapping) -> list[str]:
    return [tag for tag in tags_of(cell) if ID.fullmatch(tag)]


def printed(cells: Iterable[Mapping]) -> str:
    """The text that the cells' stored outputs show, colour codes removed."""
    parts = []
    for cell in cells:
        for output in cell.get("outputs", []):
            parts += output.get("text", [])
            parts += output.get("data", {}).get("text/plain", [])
            parts += ["\n".join(output.get("traceback", [])), "\n"]
    return ANSI.sub("", "".join(parts))

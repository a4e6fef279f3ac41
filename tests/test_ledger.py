"""The ledger is sound, the chapters keep it, and breaking either shows."""

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from notebooks import chapters

from helpers.ledger.check import problems
from helpers.ledger.claims import LEDGER, ROOT, LedgerError, ids_of, ledger, proofs, status
from helpers.ledger.terms import terms, terms_of

Edit = Callable[[list[dict]], None]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the book that a test may damage."""
    shutil.copytree(ROOT / "book", tmp_path / "book", ignore=shutil.ignore_patterns(".*", "_build"))
    return tmp_path


def proven(root: Path = ROOT) -> list[str]:
    found = proofs(root)
    return [row.id for row in ledger(root) if status(row, found) == "proven"]


def edit_rows(root: Path, edit: Edit) -> None:
    path = root / LEDGER
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    edit(rows)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def edit_cells(root: Path, edit: Edit) -> None:
    """Apply `edit` to the cell list of every chapter."""
    for path in chapters(root / "book"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        edit(notebook["cells"])
        path.write_text(json.dumps(notebook), encoding="utf-8")


def test_chapters_keep_the_ledger() -> None:
    assert problems() == []


def test_something_is_proven() -> None:
    assert proven(), "no row of the ledger has both a claim cell and a break cell"


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("id", "A-02", "row A-02, column id"),
        ("id", "A27", "column id: 'A27'"),
        ("verdict", "mostly right", "row A-01, column verdict"),
        ("kind", "guess", "row A-01, column kind"),
        ("chapter", "no-such-chapter", "row A-01, column chapter"),
        ("source", "C", "row A-01, column source"),
        ("claim", " ", "row A-01, column claim"),
    ],
)
def test_bad_row_is_named(copy: Path, column: str, value: str, message: str) -> None:
    edit_rows(copy, lambda rows: rows[0].update({column: value}))
    with pytest.raises(LedgerError, match=message):
        ledger(copy)


def test_missing_column_is_named(copy: Path) -> None:
    edit_rows(copy, lambda rows: [row.pop("check") for row in rows] and None)
    with pytest.raises(LedgerError, match="expected .*check"):
        ledger(copy)


@pytest.mark.parametrize("role", ["claim", "break"])
def test_removed_cell_shows(copy: Path, role: str) -> None:
    def remove(cells: list[dict]) -> None:
        cells[:] = [cell for cell in cells if role not in cell["metadata"].get("tags", [])]

    ids = proven()
    edit_cells(copy, remove)
    lines = problems(copy)
    for id_ in ids:
        assert f"{id_}: has a {'break' if role == 'claim' else 'claim'} cell but no {role} cell" in lines
    assert proven(copy) == []


def test_removed_target_shows(copy: Path) -> None:
    def remove(cells: list[dict]) -> None:
        for cell in cells:
            cell["source"] = [line for line in cell["source"] if not line.startswith("(")]

    edit_cells(copy, remove)
    lines = problems(copy)
    assert [
        id_ for id_ in proven() if f"{id_}: needs exactly one target ({id_})=, found 0" not in lines
    ] == []


def tag_first_claim(**change: str) -> Edit:
    """Replace one tag by another in the first claim cell with an id, e.g. `id="A-999"`."""

    def edit(cells: list[dict]) -> None:
        claims = [cell for cell in cells if "claim" in cell["metadata"].get("tags", []) and ids_of(cell)]
        if not claims:
            return  # a chapter that owns no row
        cell = claims[0]
        tags = cell["metadata"]["tags"]
        old = "claim" if "role" in change else ids_of(cell)[0]
        tags[tags.index(old)] = next(iter(change.values()))

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (tag_first_claim(id="A-999"), "A-999: used in"),
        (tag_first_claim(id="B-128"), "B-128: belongs to learning-path"),
        (tag_first_claim(role="proof"), "a cell with claim ids is either"),
    ],
)
def test_wrong_tag_shows(copy: Path, edit: Edit, message: str) -> None:
    edit_cells(copy, edit)
    assert any(message in line for line in problems(copy)), problems(copy)


def test_break_that_passes_shows(copy: Path) -> None:
    def pass_all(cells: list[dict]) -> None:
        for cell in cells:
            if "break" in cell["metadata"].get("tags", []):
                cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["passed\n"]}]

    edit_cells(copy, pass_all)
    assert any("must be one AssertionError" in line for line in problems(copy))


def test_check_string_must_be_printed(copy: Path) -> None:
    id_ = proven()[0]

    def demand(rows: list[dict]) -> None:
        next(row for row in rows if row["id"] == id_)["check"] = "no cell prints this"

    edit_rows(copy, demand)
    assert f"{id_}: no claim cell prints 'no cell prints this', which the column check demands" in problems(
        copy
    )


def test_terms_are_found_as_words() -> None:
    known = terms()
    names = {row.id: [term.english for term in terms_of(row, known)] for row in ledger()}
    assert {"ring", "AllReduce", "chunk"} <= set(names["A-47"])
    assert "denominator" in names["A-25"]
    assert not any(term.pattern.search("supports, string, alphabet") for term in known)


def test_terms_follow_the_script_of_the_source() -> None:
    term = next(term for term in terms() if term.english == "data parallelism")
    assert term.chinese("A 7.1") == ("zh-Hans", "数据并行")
    assert term.chinese("B") == ("zh-Hant", "資料並行")

"""The suite turns red when it should: each mutation is made on a copy, and nbval must find it there."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from notebooks import ROOT, text_of

CHAPTER = Path("book/idea/unequal-tokens.ipynb")
CELLS = 40  # at least; the chapter's code cells that a mutation must leave green, less the ones it turns red
TRAINING = ("train", "curves-figure")  # half of the chapter's time; nothing else needs them


@pytest.fixture
def copy(tmp_path):
    for name in ("book", "helpers"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    notebook = nbformat.read(tmp_path / CHAPTER, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.id not in TRAINING]
    (tmp_path / CHAPTER).write_text(text_of(notebook), encoding="utf-8")
    return tmp_path


def replace_once(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{path.name} holds {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def failing_cells(copy: Path) -> tuple[set[int], int]:
    """Run strict nbval on the copy's chapter: numbers of the cells that fail, and how many pass."""
    options = ["--nbval", "--nbval-current-env", "-q", "-rf", "--no-header", "--color=no"]
    command = [sys.executable, "-m", "pytest", *options, str(CHAPTER)]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, timeout=300)
    failed = {int(n) for n in re.findall(r"^FAILED \S+::Cell (\d+)", done.stdout, re.MULTILINE)}
    passed = re.search(r"(\d+) passed", done.stdout)
    return failed, int(passed.group(1)) if passed else 0


def cell_number(copy: Path, cell_id: str) -> int:
    """nbval's number of a code cell: they are counted from 0."""
    code = [cell for cell in nbformat.read(copy / CHAPTER, 4).cells if cell.cell_type == "code"]
    return [cell.id for cell in code].index(cell_id)


def test_a_changed_digit_and_a_removed_assertion_are_found(copy):
    replace_once(copy / CHAPTER, "all tokens: [2.125, 2.125]\\n", "all tokens: [2.126, 2.125]\\n")
    text = (copy / CHAPTER).read_text(encoding="utf-8")
    found = re.findall(r'^\s*"        assert Fraction\(value\) == expected, words.*\n', text, re.MULTILINE)
    assert len(found) == 1
    replace_once(copy / CHAPTER, found[0], '    "        pass"\n')
    failed, passed = failing_cells(copy)
    digit = {cell_number(copy, "proof-a27")}  # its output still differs, the assertion being gone or not
    broken = ("break-a27", "break-a28", "break-a34", "break-a36", "break-wrapper", "break-a32")
    assert failed == digit | {cell_number(copy, name) for name in broken}
    assert passed >= CELLS - len(broken)


def test_a_changed_operator_in_a_helper_is_found(copy):
    replace_once(
        copy / "helpers/average/token_loss.py",
        "world_size * loss_sum / all_tokens",
        "world_size + loss_sum / all_tokens",
    )
    failed, _ = failing_cells(copy)
    assert {cell_number(copy, name) for name in ("proof-a27", "proof-a35", "proof-real")} <= failed

"""Rules that every chapter keeps, so that a stored output is an expected value and a proof can fail."""

import ast
import base64
import re

import nbformat
import pytest
from notebooks import ROOT, chapters, normalise, text_of

CHAPTERS = chapters()
LONGEST_CELL = 12  # lines
LARGEST_FIGURE = 100_000  # bytes
# Cells whose output differs between machines, each with its reason. Everything else is compared.
MAY_DIFFER: dict[str, str] = {
    "alpha-beta/measured": "alpha and bandwidth of the machine it runs on",
    "buckets-and-overlap/profiled": "what a profiler sees of the machine it runs on",
    "buckets-and-overlap/profiled-figure": "what a profiler sees of the machine it runs on",
    "buckets-and-overlap/slow": "times as ratios, whose bounds tests/test_overlap.py asserts",
    "ddp-run/speed": "samples a second on the cores of the machine, as ratios",
    "ring-allreduce/race": "how fast two programs are, as a ratio",
    "ring-allreduce/wire-bytes": "needs the right to make a private network, and counts headers",
}

UNIT = r"(?:\s|\u00a0)?(?:%|nats|bytes?|[KMGT]i?B(?:/s)?|[munµ]s|GFLOPS|TFLOPS)(?![\w/])"
NUMBER = re.compile(rf"(?<![\w.,])(\d+\.\d+(?!\.?\d)|\d+(?={UNIT}))")


def cells_of(path, kind=None):
    notebook = nbformat.read(path, as_version=4)
    return [cell for cell in notebook.cells if kind in (None, cell.cell_type)]


def tags_of(cell) -> list[str]:
    return cell.metadata.get("tags", [])


def printed_by(path) -> str:
    """Everything a reader sees as output of the page's cells."""
    parts = []
    for cell in cells_of(path, "code"):
        for output in cell.outputs:
            parts.append(output.get("text", "") + " " + output.get("evalue", ""))
            data = output.get("data", {})
            parts += [re.sub(r"<[^>]+>", " ", data[kind]) for kind in data if kind.startswith("text/")]
    return "\n".join(parts)


def unproven_numbers(path) -> list[str]:
    """Numbers of the prose that are neither printed by a cell of the page nor declared as given."""
    given = nbformat.read(path, as_version=4).metadata.get("givens", {})
    printed = set(re.findall(r"\d+(?:\.\d+)?", printed_by(path)))
    missing = []
    for cell in cells_of(path, "markdown"):
        text = re.sub(r"```python.*?```|`[^`]*`|\]\([^)]*\)|https?://\S+", " ", cell.source, flags=re.DOTALL)
        missing += [n for n in NUMBER.findall(text) if n not in printed and n not in given]
    return missing


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def test_every_cell_was_run_in_order_and_stored_in_normal_form(chapter):
    code = cells_of(chapter, "code")
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run make notebooks"
    notebook = nbformat.read(chapter, as_version=4)
    normalise(notebook)
    assert text_of(notebook) == chapter.read_text(encoding="utf-8")


def test_cells_are_short_and_compute_or_draw(chapter):
    for cell in cells_of(chapter, "code"):
        lines = [line for line in cell.source.splitlines() if line.strip()]
        assert len(lines) <= LONGEST_CELL, f"{cell.id}: {len(lines)} lines"
        assert max(map(len, lines)) <= 88, f"{cell.id}: a line of {max(map(len, lines))} characters"
        if re.search(r"\bdraw\.|\bplt\.", cell.source) and "import" not in cell.source:
            assert not re.search(r"\brun\(|\bassert\b", cell.source), f"{cell.id}: computes and draws"


def test_the_first_cell_begins_and_no_other(chapter):
    begins = [cell.id for cell in cells_of(chapter, "code") if "page.begin()" in cell.source]
    assert begins == [next(iter(cells_of(chapter, "code"))).id]


def test_code_that_is_shown_fits_the_column(chapter):
    for cell in cells_of(chapter, "code"):
        for output in cell.outputs:
            for line in output.get("data", {}).get("text/markdown", "").splitlines():
                assert len(line) <= 88, f"{cell.id}: {line}"


def test_no_habit_that_breaks_on_the_site_or_in_nbval(chapter):
    for cell in cells_of(chapter, "code"):
        tree = ast.parse(cell.source)
        assert not cell.source.rstrip().endswith(";"), cell.id
        assert not re.search(r"\binteract\(|\bOutput\(|sys\.path|except:|import \*", cell.source), cell.id
        assert "claims" not in cell.source, f"{cell.id}: chapters may not read the ledger"
        assert not any(isinstance(node, ast.FunctionDef) and "rank" in node.name for node in ast.walk(tree))


def test_outputs_are_clean(chapter):
    for cell in cells_of(chapter, "code"):
        for output in cell.outputs:
            text = output.get("text", "") + str(output.get("data", {}).get("text/plain", ""))
            assert output.get("name") != "stderr", f"{cell.id}: {text}"
            assert not re.search(r"UsageError|0x[0-9a-f]{6,}|/tmp/|/home/|ipykernel_", text), (
                f"{cell.id}: {text}"
            )
            if output.output_type == "error":
                assert "raises-exception" in tags_of(cell), cell.id


def test_ignored_outputs_are_few_and_have_a_reason(chapter):
    for cell in cells_of(chapter, "code"):
        assert not {"nbval-skip", "skip-execution"} & set(tags_of(cell)), cell.id
        if "nbval-ignore-output" in tags_of(cell):
            assert MAY_DIFFER.get(f"{chapter.stem}/{cell.id}"), f"{cell.id}: not on the list"


def test_figures_have_name_caption_and_alt_text(chapter):
    for cell in cells_of(chapter, "code"):
        for output in cell.outputs:
            data = output.get("data", {})
            assert "image/svg+xml" not in data, f"{cell.id}: store PNG"
            if "image/png" not in data:
                continue
            assert len(base64.b64decode(data["image/png"])) < LARGEST_FIGURE, cell.id
            shown = cell.metadata.get("mystnb", {})
            assert len(shown["image"]["alt"]) > 60, f"{cell.id}: the alt text has to say what is to be seen"
            assert shown["figure"]["name"] and shown["figure"]["caption"], cell.id


def test_breaks_call_the_check_of_their_proof(chapter):
    """Else a break could raise an AssertionError of its own, and a weakened proof stay green."""
    called = re.compile(r"(?<!def )\b(check_\w+)\(")
    proofs, breaks = {}, []
    for cell in cells_of(chapter, "code"):
        tags = tags_of(cell)
        assert ("break" in tags) == ("raises-exception" in tags), cell.id
        keys = [tag for tag in tags if re.fullmatch(r"[AB]-\d+", tag)]
        checks = set(called.findall(cell.source))
        if "claim" in tags:
            assert checks, f"{cell.id}: a claim without a named check"
            for key in [*keys, "any claim"]:
                proofs.setdefault(key, set()).update(checks)
        if "break" in tags:
            assert "assert" not in cell.source, f"{cell.id}: a break uses the check of its proof"
            breaks.append((cell.id, keys or ["any claim"], checks))
    for name, keys, checks in breaks:
        for key in keys:
            assert checks and checks <= proofs.get(key, set()), f"{name}: {checks} is no check of {key}"


def test_a_chapter_shows_six_proofs_and_folds_the_rest(chapter):
    tags = [tags_of(cell) for cell in cells_of(chapter, "code")]
    shown = [t for t in tags if "claim" in t and "hide-cell" not in t]
    assert 1 <= len(shown) <= 6, f"{len(shown)} proofs are unfolded"


def test_every_result_in_the_prose_is_printed_by_a_cell(chapter):
    assert unproven_numbers(chapter) == []


def test_givens_are_used_and_have_a_reason(chapter):
    prose = "\n".join(cell.source for cell in cells_of(chapter, "markdown"))
    for number, reason in nbformat.read(chapter, as_version=4).metadata.get("givens", {}).items():
        assert number in prose and len(reason) > 5, number


def test_the_number_rule_can_fail(tmp_path):
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(
                "It takes 1.5 GB, 25 MiB, 7 tokens, version 2.9.0, `3.25` and 12 %."
            ),
            nbformat.v4.new_code_cell("print(1.5)", outputs=[nbformat.v4.new_output("stream", text="1.5\n")]),
        ],
        metadata={"givens": {"12": "typed by the reader"}},
    )
    path = tmp_path / "page.ipynb"
    nbformat.write(notebook, path)
    assert unproven_numbers(path) == ["25"]


def test_the_repository_has_no_unfinished_marks_and_no_foreign_paths():
    marks = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|/(work|root|home)/")
    for path in [
        *ROOT.glob("helpers/**/*.py"),
        *ROOT.glob("tools/*.py"),
        *ROOT.glob("book/**/*.md"),
        *CHAPTERS,
    ]:
        found = marks.search(path.read_text(encoding="utf-8"))
        assert found is None, f"{path}: {found.group()}"


def test_helpers_hold_one_idea_a_file():
    for path in ROOT.glob("helpers/**/*.py"):
        lines = path.read_text().count("\n")
        assert lines <= 200, f"{path}: {lines} lines"
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path}: says nothing about itself"

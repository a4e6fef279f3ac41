"""Execute the chapters and store their outputs: the only way in which stored outputs change.

python tools/notebooks.py [book/idea/unequal-tokens.ipynb ...]     default: every chapter
python tools/notebooks.py --check                                   say which chapters are not in normal form
"""

import argparse
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 300  # seconds a cell


def chapters(book: Path = ROOT / "book") -> list[Path]:
    """Every notebook of the book, in order of path; not the copies that JupyterLab keeps beside them."""
    return sorted(path for path in book.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts)


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Run all cells in a fresh kernel, in the chapter's own folder, as nbval and the book build do."""
    client = NotebookClient(
        notebook, timeout=TIMEOUT, kernel_name="python3", resources={"metadata": {"path": folder}}
    )
    client.execute()


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Keep what readers see and tests compare; drop times, versions, widget state and random ids."""
    keep = {"kernelspec", "myst", "givens"}
    language = {"name": "python"}
    notebook.metadata = {k: v for k, v in notebook.metadata.items() if k in keep} | {
        "language_info": language
    }
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
        for output in cell.get("outputs", []):
            if "data" in output:
                output.data = {k: v for k, v in output.data.items() if not k.endswith("widget-view+json")}


def _joined(outputs: list) -> list:
    """Two prints a moment apart arrive as one stream or as two: make them one."""
    joined = []
    for output in outputs:
        if joined and output.output_type == "stream" and joined[-1].get("name") == output.name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def text_of(notebook: nbformat.NotebookNode) -> str:
    """A notebook as the bytes in git: one space of indentation, a newline at the end."""
    return nbformat.writes(notebook, indent=1).rstrip("\n") + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--check", action="store_true", help="run nothing; fail if a chapter is not in normal form"
    )
    parser.add_argument("paths", nargs="*", type=Path)
    options = parser.parse_args()
    wrong = 0
    for path in options.paths or chapters():
        notebook = nbformat.read(path, as_version=4)
        start = time.monotonic()
        if not options.check:
            try:
                execute(notebook, path.parent)
            except CellExecutionError as error:
                print(f"{path}: {error.ename}: {error.evalue}\n{error}", file=sys.stderr)
                wrong += 1
                continue
        normalise(notebook)
        if options.check and text_of(notebook) != path.read_text():
            print(f"{path}: not in normal form; run make notebooks", file=sys.stderr)
            wrong += 1
        elif not options.check:
            path.write_text(text_of(notebook))
            print(f"{path}: {time.monotonic() - start:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""What every chapter does first, and how it shows the code that ranks run."""

import ast
import inspect
from pathlib import Path

import torch
from IPython import get_ipython
from IPython.display import Markdown

EPS64 = torch.finfo(torch.float64).eps


def begin() -> None:
    """Make a page say the same on every machine: one thread, errors in one line, figures of one size."""
    torch.set_num_threads(1)
    shell = get_ipython()
    if shell is None:
        return
    shell.InteractiveTB.set_mode("Minimal")
    from helpers.figures.style import set_style

    set_style()


def show(*objects) -> Markdown:
    """The source of functions or classes as highlighted code, with its file and without docstrings."""
    parts = []
    for each in objects:
        file = each.__module__.replace(".", "/") + ".py"
        parts.append(f"```python\n# {file}\n{_without_docstrings(each)}\n```")
    return Markdown("\n\n".join(parts))


def show_file(path: str, language: str) -> Markdown:
    """A text file of the repository as highlighted code. path: from the root."""
    text = (Path(__file__).parents[1] / path).read_text(encoding="utf-8").rstrip()
    return Markdown(f"```{language}\n{text}\n```")


def _without_docstrings(thing) -> str:
    lines = inspect.getsource(thing).rstrip().splitlines()
    drop = set()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            drop |= set(range(node.body[0].lineno - 1, node.body[0].end_lineno))
            if lines[node.body[0].end_lineno].strip() == "":
                drop.add(node.body[0].end_lineno)
    return "\n".join(line for number, line in enumerate(lines) if number not in drop)


def rounding_bound(terms: int) -> float:
    """Largest relative error that float64 rounding explains in a sum of `terms` terms: 4 eps sqrt(terms).

    Rounding errors of a long sum add up like a random walk (Higham, Accuracy and Stability of Numerical
    Algorithms, 2nd ed., section 2.8), hence the root; 4 leaves room for the operations around the sum.
    """
    return 4 * EPS64 * terms**0.5

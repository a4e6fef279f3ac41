"""The examples in docstrings are run, as they promise."""

import doctest
import importlib

import pytest
from notebooks import ROOT

MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted(ROOT.glob("helpers/**/*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted > 0 and done.failed == 0

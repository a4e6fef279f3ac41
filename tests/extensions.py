"""Loads a Sphinx extension of the site: it lies beside the site's files, not in a package."""

import importlib.util
from types import ModuleType

from helpers.ledger.claims import ROOT


def load_extension(name: str) -> ModuleType:
    """The module web/extensions/NAME.py."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "web" / "extensions" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""Every room of helpers is named in CONTRIBUTING.md, and no import runs in a circle."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in ROOT.glob("helpers/**/*.py")
    if path.name != "__main__.py"  # commands stand on top of all
}


def imported(path: Path) -> set[str]:
    """Modules of helpers that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "helpers":
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in MODULES else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "helpers"}
    return found


def test_every_room_has_a_line():
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for entry in ROOT.glob("helpers/*"):
        if entry.name.startswith("__"):
            continue
        name = f"{entry.name}/" if entry.is_dir() else entry.name
        if entry.suffix in ("", ".py"):
            assert f"`{name}`" in table, name


def test_modules_do_not_import_in_a_circle():
    graph = {name: imported(path) - {name} for name, path in MODULES.items()}
    for name, path in MODULES.items():
        if path.name == "__init__.py":  # a package gathers its own modules, which may import it by name
            graph[name] = {other for other in graph[name] if not other.startswith(f"{name}.")}
    tuple(TopologicalSorter(graph).static_order())


def test_packages_import_each_other_one_way_only():
    room = {name: name.split(".")[1] if "." in name else "" for name in MODULES}
    pairs = {(room[name], room.get(other)) for name, path in MODULES.items() for other in imported(path)}
    assert [(a, b) for a, b in pairs if a != b and (b, a) in pairs] == []

# SPDX-License-Identifier: Apache-2.0
"""Imports point down: a room of the package knows those below it, also inside functions, and modules make no circle."""
import ast

import pytest

# From the lowest floor to the highest. Modules that are no room stand by their names; all others at the top are integrations.
FLOORS = [["errors", "version", "arguments"], ["arrays"], ["backend"], ["operations"], ["pipeline"], ["functions"], ["recipes"], ["store", "feed"], ["training"], ["integrations"]]
FLOOR = {name: k for k, names in enumerate(FLOORS) for name in names}


def room_of(module):
    """The room of suture.room.module; what stands at the top and is on no list is an integration."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in FLOOR else "integrations"


def imports_of(module, path, known):
    """(line, module of the package) of each import, those for annotations left out."""
    tree = ast.parse(path.read_text())
    skipped = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped |= {id(inside) for inside in ast.walk(node)}
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package
            for _ in range(node.level - 1):
                base = base.rpartition(".")[0]
            base = (f"{base}.{node.module}" if node.module else base) if node.level else node.module
            names = [f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base for alias in node.names]
        else:
            continue
        for name in names:
            if name in known:
                yield node.lineno, name


def modules(package):
    known = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        known[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return known


def against_the_floors(package):
    known, wrong = modules(package), []
    for module, path in known.items():
        if module == "suture":  # the public names of all rooms
            continue
        for line, name in imports_of(module, path, known):
            if name == "suture" and room_of(module) != "integrations":
                wrong.append(f"{module}:{line} imports the whole package")
            elif name != "suture" and FLOOR[room_of(name)] > FLOOR[room_of(module)]:
                wrong.append(f"{module}:{line} ({room_of(module)}) imports {name} ({room_of(name)})")
    return wrong


def circles(package):
    """A module that comes back to itself, by imports wherever they stand."""
    known = modules(package)
    to = {m: {n for _, n in imports_of(m, p, known) if n != m and n != "suture"} for m, p in known.items() if m != "suture"}
    state, found = {}, []

    def visit(module, path):
        state[module] = "open"
        for other in sorted(to.get(module, ())):
            if state.get(other) == "open":
                found.append(" > ".join([*path[path.index(other):], other]))
            elif other not in state:
                visit(other, [*path, other])
        state[module] = "done"

    for module in sorted(to):
        if module not in state:
            visit(module, [module])
    return found


def test_imports_point_down(root):
    assert against_the_floors(root / "python/suture") == []


def test_modules_make_no_circle(root):
    assert circles(root / "python/suture") == []


@pytest.mark.parametrize("text", ["from ..pipeline import plan", "from ..pipeline.plan import Plan", "def f():\n    from ..pipeline import plan",
                                  "import suture.pipeline.plan", "from .. import Pipeline"])
def test_one_that_points_up_is_seen(tmp_path, text):
    for name in ("__init__", "arrays/__init__", "arrays/one", "pipeline/__init__", "pipeline/plan"):
        file = tmp_path / f"suture/{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    (tmp_path / "suture/arrays/one.py").write_text(text + "\n")
    assert len(against_the_floors(tmp_path / "suture")) == 1
    (tmp_path / "suture/arrays/one.py").write_text("from . import two\n")
    (tmp_path / "suture/arrays/two.py").write_text("def f():\n    from . import one\n")
    assert against_the_floors(tmp_path / "suture") == [] and len(circles(tmp_path / "suture")) == 1

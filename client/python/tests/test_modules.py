# SPDX-License-Identifier: Apache-2.0
"""Imports among the modules of the package, found in their syntax trees."""

import ast
import graphlib
from pathlib import Path

import pytest

import crout

PACKAGE = Path(crout.__file__).parent
MODULES = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}


def imported(statement):
    """Return the modules of the package that an import statement loads."""
    if isinstance(statement, ast.Import):
        names = [alias.name for alias in statement.names]
    elif isinstance(statement, ast.ImportFrom):
        assert statement.level == 0, "imports of this package are absolute"
        names = [f"{statement.module}.{alias.name}" for alias in statement.names]
    else:
        return set()
    parts = [name.split(".") for name in names]
    return {part[1] for part in parts if part[0] == "crout" and len(part) > 1} & MODULES


def imports(source):
    """Return the modules that are imported at the start, and those that only types or functions import."""
    tree = ast.parse(source)
    first = set().union(*(imported(statement) for statement in tree.body))
    return first, set().union(*(imported(node) for node in ast.walk(tree))) - first


def cycle(graph):
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_imports_have_no_cycles():
    read = {module: imports((PACKAGE / f"{module}.py").read_text()) for module in MODULES}
    assert cycle({module: first for module, (first, _) in read.items()}) == []
    assert {module: later for module, (_, later) in read.items() if later} == {}, "imports that hide a cycle"


@pytest.mark.parametrize(
    ("source", "first", "later"),
    [
        ("import crout.b", {"b"}, set()),
        ("from crout import b as c, connect", {"b"}, set()),
        ("from crout.b import C", {"b"}, set()),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crout.b import C", set(), {"b"}),
        ("def f():\n    from crout import b", set(), {"b"}),
        ("import numpy\nfrom crout.v1 import b", set(), set()),
    ],
)
def test_imports_are_found(monkeypatch, source, first, later):
    monkeypatch.setattr(f"{__name__}.MODULES", {"a", "b"})
    assert imports(source) == (first, later)


def test_cycles_are_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(cycle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}

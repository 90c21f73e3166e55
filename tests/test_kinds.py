"""Tests for the class or the kind of what another room defines: their numbers may only fall.

    isinstance(expr, Call), loop.kind is LoopKind.VECTOR     in a room that defines neither

What a node is, the room that defines it knows best: it has predicates and walks (`is_sum`,
`all_calls`, `Workspace.is_number`), so that a new class of nodes is met in few places. A `match`
over all classes of nodes, which `assert_never` closes, is not counted.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests.test_architecture import modules

MOST: dict[str, int] = {
    "polyhedral": 20,
    "taco_py.api": 20,
    "taco_py.arguments": 6,
    "taco_py.arrays": 32,
    "taco_py.calls": 74,
    "taco_py.compiler": 124,
    "taco_py.data": 25,
    "taco_py.graph": 31,
    "taco_py.language": 2,
    "taco_py.planner": 107,
    "taco_py.report": 16,
    "taco_py.running": 85,
    "taco_py.tool": 1,
    "taco_py.tuning": 12,
}
"""The tests in each room for classes and kinds of other rooms."""


def room_of(module: str) -> str:
    """Return the room that a module lies in: a folder of taco_py, or another package."""
    return ".".join(module.split(".")[: 2 if module.startswith("taco_py.") else 1])


@cache
def known_names(module: str) -> Mapping[str, tuple[str, str]]:
    """Return where the classes and the imported names of a module come from: module and name."""
    names: dict[str, tuple[str, str]] = {}
    for node in ast.walk(modules()[module]):
        if isinstance(node, ast.ClassDef):
            names[node.name] = module, ""
        elif isinstance(node, ast.ImportFrom) and node.module in modules():
            names |= {a.asname or a.name: (node.module, a.name) for a in node.names}
    return names


def home(module: str, name: str) -> str | None:
    """Return the module that defines the class which a module knows by a name; None for others."""
    source, original = known_names(module).get(name, (None, ""))
    return home(source, original) if source and original else source


def foreign_tests(module: str) -> Iterator[ast.expr]:
    """Yield the expressions of a module that test for classes or kinds of other rooms."""
    for node in ast.walk(modules()[module]):
        match node:
            case ast.Call(ast.Name("isinstance"), [_, classes]):
                named = [n.id for n in ast.walk(classes) if isinstance(n, ast.Name)]
            case ast.Compare(left, _, rights):
                named = [name for side in (left, *rights) for name in _enumerations(side)]
            case _:
                continue
        homes = {home(module, name) for name in named}
        if any(room_of(source) != room_of(module) for source in homes if source):
            yield node


def _enumerations(side: ast.expr) -> Iterator[str]:
    """Yield X where a side of a comparison is X.MEMBER, or several of such."""
    match side:
        case ast.Attribute(ast.Name(name), member) if member.isupper():
            yield name
        case ast.Tuple(elements):
            for each in elements:
                yield from _enumerations(each)


@cache
def counts() -> Counter[str]:
    """Count the tests for classes and kinds of others by room."""
    return Counter(room_of(module) for module in modules() for _ in foreign_tests(module))


@pytest.mark.parametrize("room", MOST)
def test_tests_for_what_others_define_only_fall(room: str) -> None:
    assert counts()[room] == MOST[room], "ask what defines it; lower MOST where there are fewer"


def test_every_room_that_tests_for_what_others_define_is_counted() -> None:
    assert set(counts()) == set(MOST)


def test_a_class_is_known_by_the_module_that_defines_it() -> None:
    nodes = "taco_py.language.notation.nodes"
    assert home("taco_py.planner.rules.needed.few_cases", "Call") == nodes
    assert home("taco_py.planner.rules.base", "Rule") == "taco_py.planner.rules.base"
    assert home("taco_py.report.show.graphs", "LevelKind") == "taco_py.language.formats.level_kind"
    assert home("taco_py.planner.rules.base", "int") is None

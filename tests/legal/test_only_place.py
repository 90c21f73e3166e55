"""No file of the planner finds out by itself what types of elements and formats allow.

Read from the sources: an expression that asks for a dtype's kind, or whether a format is dense, has
a name in `taco_py.language.legal`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.test_architecture import inside, modules

PLANNER = (
    "taco_py.planner",
    "taco_py.compiler.order",
    "taco_py.compiler.ways",
    "taco_py.compiler.cost",
)
SCALAR_KINDS = ("bool", "int", "uint", "float", "complex")
KIND_WORDS = {
    *"biufc", *SCALAR_KINDS,
    *(f"{kind}{bits}" for kind in SCALAR_KINDS for bits in (8, 16, 32, 64, 128)),
}  # fmt: skip
ABSTRACT = {
    "issubdtype", "iscomplexobj", "isrealobj", "floating", "inexact", "integer", "complexfloating",
    "signedinteger", "unsignedinteger",
}  # fmt: skip


def test_the_planner_asks_legal_what_types_and_formats_allow() -> None:
    wrong = [
        f"{module}:{node.lineno} {ast.unparse(node)}"
        for module, tree in modules().items()
        if any(inside(module, room) for room in PLANNER)
        for node in ast.walk(tree)
        if _tests_a_property(node)
    ]
    assert not wrong, (
        "a predicate of language.legal.types or language.legal.stored has a name for it"
    )


@pytest.mark.parametrize(
    "code",
    [
        'a.dtype.kind in "fc"', 'kind == "f"', '"b" == own.kind', "whole.kind not in kinds",
        'scalar(t).kind == "complex"', "f(dtype.kind)", "RANK[t.kind]",
        "match own.kind:\n case _: pass", "not form.is_dense",
        "np.issubdtype(a, np.integer)", "np.iscomplexobj(a)", "isinstance(t, np.floating)",
        'a.dtype.startswith(("int", "uint"))', 'dtype == "bool"', 'name in ("int8", "float32")',
    ],
)  # fmt: skip
def test_asking_for_a_property_of_a_type_or_format_is_seen(code: str) -> None:
    assert any(map(_tests_a_property, ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    "code",
    [
        "level.kind is LevelKind.DENSE", "last.kind is not LevelKind.COMPRESSED", "own != whole",
        'entry.rule == "contract"', "Kind.OUTPUT", "dtype.itemsize", "is_full(form)",
    ],
)  # fmt: skip
def test_asking_for_anything_else_is_none_of_it(code: str) -> None:
    assert not any(map(_tests_a_property, ast.walk(ast.parse(code))))


def _tests_a_property(node: ast.AST) -> bool:
    """Whether a part of a program asks of which kind a type is, or whether a format is dense."""
    match node:
        case ast.Attribute(attr="is_dense"):
            return True
        case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr=name):
            return name in ABSTRACT
        case ast.Compare(left, _, rights):
            sides = (left, *rights)
            words = {word for side in sides for word in _words(side)}
            kinds = any(_is_kind(side) for side in sides)
            of_enum = any(_is_member(side) for side in sides)
            return (kinds and not of_enum) or _are_kinds(words)
        case ast.Call(ast.Attribute(attr="startswith" | "endswith"), args):
            return _are_kinds({word for arg in args for word in _words(arg)})
        case ast.Call(_, args):
            return any(_is_kind(arg) for arg in args)
        case ast.Subscript(_, asked) | ast.Match(asked):
            return _is_kind(asked)
    return False


def _words(node: ast.expr) -> Iterator[str]:
    """The texts that a side of a comparison is, or is one of."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for each in node.elts:
            yield from _words(each)


def _are_kinds(words: set[str]) -> bool:
    """Whether there are texts, and all name types, or are letters of NumPy's kinds."""
    return bool(words) and all(w in KIND_WORDS or (w and set(w) <= set("biufc")) for w in words)


def _is_kind(node: ast.expr) -> bool:
    """Whether an expression is the kind of a type: that of anything but a member."""
    return isinstance(node, ast.Attribute) and node.attr == "kind" and not _is_member(node)


def _is_member(node: ast.expr) -> bool:
    """Whether an expression is a member of an enumeration, or several: LevelKind.DENSE."""
    if isinstance(node, ast.Tuple):
        return all(map(_is_member, node.elts))
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    return root is not node and isinstance(root, ast.Name) and root.id[:1].isupper()

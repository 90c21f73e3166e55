"""Replace a function of elements by one that takes less, by identities of arithmetic.

    multiply(x, 1)                        →   x                    one type, dense
    add(x, x)                             →   multiply(x, 2)       a factor, as products have
    subtract(x, negative(y))              →   add(x, y)            one type
    absolute(negative(x))                 →   absolute(x)          not of unsigned integers
    square(x)                             →   multiply(x, x)       one value with those written so
    power(x, 0.5)                         →   sqrt(x)              floats, as NumPy does

`IDENTITIES` has them all. They are exact, for NaN, infinities, integers that wrap and signed zeros
too, but for the last two, which round once less; x + 0 is no identity of floats: it makes 0 of -0.
A value that is not made any more must not be one that the caller gets as an array of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import numpy as np

from codegen.records import dataclass
from taco_py.graph.graph_builder import COMMUTATIVE, LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node
from taco_py.graph.rules.base import GraphRule

NUMBERS, SIGNED, REAL, FLOATS, INTEGERS, TRUTHS = "iufc", "if", "iuf", "f", "iu", "b"
"""Kinds of types, by NumPy's letters."""

NOT_NEGATIVE = ("absolute", "fabs", "exp", "exp2", "sqrt", "expit")
"""Functions of real numbers that are never below 0; NaN they may be."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Two expressions that are the same number, as Python's text.

    before  a call of functions; x and y are values, p one that is not negative, c a condition
    kinds   the types of elements that it holds for
    """

    before: str
    after: str
    kinds: str


IDENTITIES = (
    Identity("multiply(x, 1)", "x", NUMBERS),
    Identity("divide(x, 1)", "x", FLOATS),
    Identity("add(x, 0)", "x", INTEGERS),
    Identity("subtract(x, 0)", "x", REAL),
    Identity("negative(negative(x))", "x", NUMBERS),
    Identity("add(x, x)", "multiply(x, 2)", REAL),
    Identity("subtract(x, negative(y))", "add(x, y)", NUMBERS),
    Identity("add(x, negative(y))", "subtract(x, y)", NUMBERS),
    Identity("multiply(negative(x), negative(y))", "multiply(x, y)", REAL),
    Identity("divide(negative(x), negative(y))", "divide(x, y)", FLOATS),
    Identity("square(x)", "multiply(x, x)", NUMBERS),
    Identity("absolute(negative(x))", "absolute(x)", SIGNED),
    Identity("absolute(absolute(x))", "absolute(x)", REAL),
    Identity("multiply(absolute(x), absolute(x))", "multiply(x, x)", REAL),
    Identity("conjugate(x)", "x", REAL),
    Identity("real(x)", "x", REAL),
    Identity("floor(floor(x))", "floor(x)", FLOATS),
    Identity("ceil(ceil(x))", "ceil(x)", FLOATS),
    Identity("trunc(trunc(x))", "trunc(x)", FLOATS),
    Identity("rint(rint(x))", "rint(x)", FLOATS),
    Identity("maximum(x, x)", "x", REAL),
    Identity("minimum(x, x)", "x", REAL),
    Identity("maximum(maximum(x, y), y)", "maximum(x, y)", REAL),
    Identity("minimum(minimum(x, y), y)", "minimum(x, y)", REAL),
    Identity("where(c, x, x)", "x", NUMBERS + TRUTHS),
    Identity("logical_and(x, x)", "x", TRUTHS),
    Identity("logical_or(x, x)", "x", TRUTHS),
    Identity("logical_not(logical_not(x))", "x", TRUTHS),
    Identity("invert(invert(x))", "x", INTEGERS + TRUTHS),
    Identity("power(x, -1)", "divide(1, x)", FLOATS),
    Identity("power(x, 0.5)", "sqrt(x)", FLOATS),
    Identity("exp(log(p))", "p", FLOATS),
    Identity("multiply(sqrt(p), sqrt(p))", "p", FLOATS),
)

_TREES = tuple(
    (rule, ast.parse(rule.before, mode="eval").body, ast.parse(rule.after, mode="eval").body)
    for rule in IDENTITIES
)


def _apply(builder: GraphBuilder, node: Node) -> str | None:
    if node.operator != "map" or node.name in builder.sparse:
        return None
    for identity, before, after in _TREES:
        if np.dtype(node.dtype).kind not in identity.kinds:
            continue
        for bindings in _matches(builder, node.name, before, node, {}):
            replacement = _replacement(builder, node, after, bindings)
            if replacement is not None:
                return replacement
    return None


def _matches(
    builder: GraphBuilder, name: str, pattern: ast.expr, root: Node, bindings: Mapping[str, str]
) -> Iterator[Mapping[str, str]]:
    """Yield the values that the letters of a pattern stand for, in each way that it fits."""
    match pattern:
        case ast.Name(id=letter):
            if bindings.get(letter, name) == name and _may_be(builder, name, letter, root):
                yield {**bindings, letter: name}
        case ast.Call(func=ast.Name(id=function), args=args):
            node = builder.nodes.get(name)
            if node is None or node.get("function") != function or node.dtype != root.dtype:
                return
            swapped = tuple(reversed(node.inputs))
            orders = (node.inputs, swapped) if function in COMMUTATIVE else (node.inputs,)
            for inputs in dict.fromkeys(orders):
                yield from _all_match(builder, inputs, args, root, bindings)
        case _:
            if is_number(builder, name, ast.literal_eval(pattern)):
                yield bindings


def shown_number(builder: GraphBuilder, name: str) -> str:
    """Name the value that layouts stretch, where that is one number; else the value itself."""
    base = name
    while base in builder.nodes and builder.nodes[base].operator in LAYOUTS:
        (base,) = builder.nodes[base].inputs
    return base if base in builder.constants else name


def is_number(builder: GraphBuilder, name: str, number: float) -> bool:
    """Tell whether a value is one number in all calls, stretched or not."""
    constant = builder.constants.get(shown_number(builder, name))
    if constant is None or constant.fact.order or constant.fact.sparsity:
        return False
    return constant.fact.dtype != "bool" and bool(constant.value == number)


def _all_match(
    builder: GraphBuilder,
    names: tuple[str, ...],
    patterns: list[ast.expr],
    root: Node,
    bindings: Mapping[str, str],
) -> Iterator[Mapping[str, str]]:
    if len(names) != len(patterns):
        return
    if not names:
        yield bindings
        return
    for extended in _matches(builder, names[0], patterns[0], root, bindings):
        yield from _all_match(builder, names[1:], patterns[1:], root, extended)


def _may_be(builder: GraphBuilder, name: str, letter: str, root: Node) -> bool:
    """Tell whether a letter may stand for a value: of the type of the whole, conditions apart."""
    fact = builder.facts[name]
    if letter == "c":
        return True
    if letter == "p":
        node = builder.nodes.get(name)
        is_not_negative = node is not None and node.get("function") in NOT_NEGATIVE
        return is_not_negative and fact.dtype == root.dtype
    weak = fact.weak and letter == "y" and name in builder.constants
    return weak or (not fact.weak and fact.dtype == root.dtype)


def _replacement(
    builder: GraphBuilder, root: Node, after: ast.expr, bindings: Mapping[str, str]
) -> str | None:
    """Make the value of a pattern, None where it is not an array like the root."""
    if isinstance(after, ast.Name):
        name = bindings[after.id]
        same = builder.facts[name].units == root.fact.units
        node = builder.nodes.get(name)
        stretched = node is not None and node.operator == "broadcast"  # of no size of its own
        return name if same and not stretched and not _is_shared(builder, root, name) else None
    assert isinstance(after, ast.Call) and isinstance(after.func, ast.Name)
    one = np.dtype(root.dtype).type
    inputs = [
        bindings[arg.id] if isinstance(arg, ast.Name) else builder.literal(one(_number(arg)))
        for arg in after.args
    ]
    if all(builder.facts[operand].units != root.fact.units for operand in inputs):
        return None
    return builder.add("map", inputs, root.shape, root.dtype, function=after.func.id)


def _number(node: ast.expr) -> float:
    return float(ast.literal_eval(node))


def _is_shared(builder: GraphBuilder, root: Node, name: str) -> bool:
    """Tell whether the caller would get an array that is another's memory, or twice the same."""
    if root.name not in builder.handed:
        return False
    node = builder.nodes.get(name)
    views = node is None or node.operator in (*LAYOUTS, "numpy")
    return views or name in builder.handed or builder.uses.get(name, 0) != 1


RULE = GraphRule("algebra", "multiply(x, 1)", "x", "rounding", _apply)

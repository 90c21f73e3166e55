"""The table of simplification rules, and that values and dtypes survive them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.notation.dtypes import expression_dtype
from taco_py.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.notation.operators import ADD, DIV, MUL, NEG, SUB
from taco_py.notation.parser import parse_assignment
from taco_py.notation.printer import to_text
from taco_py.notation.simplify import simplify
from taco_py.notation.tree import map_children
from taco_py.oracle import evaluate_dense

RULES = [
    ("x + 0", "x"),
    ("0 + x", "x"),
    ("x - 0", "x"),
    ("x * 1", "x"),
    ("1 * x", "x"),
    ("x / 1", "x"),
    ("x * 0", "0"),
    ("0 * x", "0"),
    ("0 / x", "0"),
    ("-0", "0"),
    ("0 - x", "-x"),
    ("sum(i, 0)", "0"),
    # innermost first, until nothing is left
    ("0 * x + 0 * y", "0"),
    ("x * z + 0 * y", "x * z"),
    ("sum(j, 0 * x[j]) + b", "b"),
    ("sum(j, A[i,j] * (0 + x[j]))", "sum(j, A[i,j] * x[j])"),
    ("0 - 0 * x", "0"),
    ("-(0 - x)", "--x"),
    # what no rule says
    ("1 / x", "1 / x"),
    ("x / 0", "x / 0"),
    ("x * 1.0", "x * 1.0"),
    ("x + 0.0", "x + 0.0"),
    ("x * 0.0", "x * 0.0"),
    ("2 * 3 * x", "2 * 3 * x"),
    ("sum(i, 1)", "sum(i, 1)"),
    ("1 - x", "1 - x"),
]


def value_of(text: str) -> Expr:
    return parse_assignment(f"y = {text}").value


@pytest.mark.parametrize(("before", "after"), RULES)
def test_rule(before: str, after: str) -> None:
    assert to_text(simplify(value_of(before))) == after


@pytest.mark.parametrize("text", ["A[i,j] * x[j] + 2 * b[i]", "sum(j, -x[j] / 2)", "1 / x", "3"])
def test_nothing_to_simplify_is_the_same_object(text: str) -> None:
    expr = value_of(text)
    assert simplify(expr) is expr
    dtypes = {name: np.dtype(np.float32) for name in "Axb"}
    assert simplify(expr, dtypes) is expr


def test_a_zero_that_carries_a_dtype_stays_where_the_dtype_counts() -> None:
    x, zero = Access("x", ("i",)), Literal(0, dtype="float64")
    wide, narrow = {"x": np.dtype(np.float64)}, {"x": np.dtype(np.int8)}
    assert simplify(Call(ADD, (zero, x)), wide) == x
    assert simplify(Call(ADD, (zero, x)), narrow) == Call(ADD, (zero, x))
    assert simplify(Call(MUL, (x, zero)), narrow) == zero
    assert simplify(Call(MUL, (x, Literal(0))), narrow) == Literal(0, dtype="int8")
    assert simplify(Call(DIV, (Literal(0), x)), narrow) == Literal(0, dtype="float64")
    assert simplify(Call(MUL, (Literal(0), Literal(2))), narrow) == Literal(0)
    both = {"x": np.dtype(np.int64), "y": np.dtype(np.int8)}
    absent = Call(ADD, (Call(MUL, (x, Literal(0))), Access("y", ())))
    assert expression_dtype(simplify(absent, both), both) == np.int64
    flags, zero8 = {"x": np.dtype(bool)}, Literal(0, dtype="int8")
    assert simplify(Call(SUB, (zero8, x)), narrow) == Call(NEG, (x,))
    assert simplify(Call(SUB, (zero8, x)), flags) == Call(SUB, (zero8, x))


# ---------------------------------------------------------------- absent operands

NAMES = ("a", "b", "z")
VALUES = {"a": 1, "b": 3, "z": 0}
SCALARS = [np.dtype(name) for name in ("bool", "int8", "uint8", "int64", "float32", "complex64")]
leaves = st.sampled_from(
    [Access(name, ()) for name in NAMES] + [Literal(0), Literal(1), Literal(2)]
)
programs = st.recursive(
    leaves,
    lambda part: st.one_of(
        st.builds(lambda op, x, y: Call(op, (x, y)), st.sampled_from((ADD, SUB, MUL)), part, part),
        st.builds(lambda x: Call(NEG, (x,)), part),
    ),
    max_leaves=8,
)


def with_fill(expr: Expr, dtype: np.dtype[Any]) -> Expr:
    """`expr` with the absent operand z replaced by a zero of its dtype."""
    if expr == Access("z", ()):
        return Literal(0, dtype=str(dtype))
    return map_children(expr, lambda child: with_fill(child, dtype))


@given(programs, st.lists(st.sampled_from(SCALARS), min_size=3, max_size=3))
def test_simplified_expressions_have_the_value_and_dtype_of_the_original(
    expr: Expr, chosen: list[np.dtype[Any]]
) -> None:
    dtypes = dict(zip(NAMES, chosen, strict=True))
    operands = {name: np.array(VALUES[name], dtypes[name]) for name in NAMES}
    try:
        dtype = expression_dtype(expr, dtypes)
    except OperandTypeError:
        return  # bool - bool, or 2 in a place where int8 has no room; tested elsewhere
    simplified = simplify(with_fill(expr, dtypes["z"]), dtypes)
    assert expression_dtype(simplified, dtypes) == dtype
    y = Access("y", ())
    np.testing.assert_array_equal(
        evaluate_dense(Assignment(y, simplified), operands),
        evaluate_dense(Assignment(y, expr), operands),
    )


def test_empty_sum_needs_the_identity_of_its_operator() -> None:
    zero, x = Literal(0), Access("x", ("i",))
    assert simplify(Reduce(MUL, "i", Call(MUL, (x, Literal(1))))) == Reduce(MUL, "i", x)
    assert simplify(Reduce(MUL, "i", Literal(1))) == Literal(1)
    assert simplify(Reduce(MUL, "i", zero)) == Reduce(MUL, "i", zero)

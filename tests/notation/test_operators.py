"""What operators say of their algebra is true of what they evaluate."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from taco_py.language.notation.functions.function_table import (
    AND,
    FACTORS,
    FUNCTIONS,
    INVERT,
    LADDER,
    OR,
    XOR,
)
from taco_py.language.notation.operators import (
    ADD,
    COMPILER,
    DIV,
    MUL,
    NEG,
    SUB,
    Number,
    Operator,
)

NUMBERS = (-4, 1, 2, 0.5, 1j)  # powers of two, of which quotients are exact
OPERATORS = {
    each.name: each
    for each in (
        ADD, SUB, MUL, DIV, NEG, INVERT, *FACTORS, *(op for row in LADDER for op in row),
        *FUNCTIONS.values(), *COMPILER.values(),
    )
}  # fmt: skip
ABSENT = ("stored", "present", "selected")
"""What is absent is no number to these."""
EVERY = pytest.mark.parametrize("operator", OPERATORS.values(), ids=str)


def numbers(operator: Operator) -> tuple[Number, ...]:
    """Numbers that an operator takes."""
    if operator in (AND, OR, XOR):
        return (True, False)
    return tuple(x for x in NUMBERS if np.asarray(x).dtype.kind in operator.kinds)


def _with(operator: Operator, place: int, value: Number) -> list[tuple[Number, ...]]:
    """Arguments of which the one at `place` is `value`."""
    rest = product(numbers(operator), repeat=operator.arity - 1)
    return [(*others[:place], value, *others[place:]) for others in rest]


def _sum(left: tuple[Number, ...], right: tuple[Number, ...]) -> tuple[Number, ...]:
    return tuple(a + b for a, b in zip(left, right, strict=True))


@EVERY
def test_identities_leave_the_other_argument(operator: Operator) -> None:
    for x in numbers(operator):
        if operator.identity is not None:
            assert operator.evaluate(operator.identity, x) == x
            assert operator.right_identity == operator.identity
        if operator.right_identity is not None:
            assert operator.evaluate(x, operator.right_identity) == x


@EVERY
def test_annihilators_decide_the_result(operator: Operator) -> None:
    for place, value in enumerate(operator.annihilators[: operator.arity]):
        if value is not None and operator.name not in ABSENT:  # it is 0 where nothing is stored
            assert all(operator.evaluate(*args) == value for args in _with(operator, place, value))


@EVERY
def test_order_and_grouping(operator: Operator) -> None:
    f = operator.evaluate
    for a, b, c in product(numbers(operator), repeat=3):
        if operator.commutative:
            assert f(a, b) == f(b, a)
        if operator.associative:
            assert f(f(a, b), c) == f(a, f(b, c))


@EVERY
def test_linear_arguments(operator: Operator) -> None:
    f = operator.evaluate
    for place, linear in enumerate(operator.linear[: operator.arity]):
        pairs = [
            (left, right, tuple(a + b if k == place else a for k, (a, b) in enumerate(both)))
            for a in numbers(operator)
            for left in _with(operator, place, a)
            for right in [(*left[:place], 2, *left[place + 1 :])]
            for both in [tuple(zip(left, right, strict=True))]
        ]
        if linear:
            assert all(f(*whole) == f(*left) + f(*right) for left, right, whole in pairs)


@EVERY
def test_signed_sums(operator: Operator) -> None:
    for args in product(numbers(operator), repeat=operator.arity):
        if operator.signs:
            signed = sum(s * a for s, a in zip(operator.signs, args, strict=True))
            assert operator.evaluate(*args) == signed
            doubled = operator.evaluate(*_sum(args, args))
            assert operator.additive and doubled == 2 * operator.evaluate(*args)


def test_what_is_a_product_follows() -> None:
    assert [name for name, each in OPERATORS.items() if each.distributes] == ["mul"]
    assert [name for name, each in OPERATORS.items() if each.additive] == ["add", "sub", "neg"]

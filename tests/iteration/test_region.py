"""Regions follow from the algebra of operators alone, also of operators that nobody has yet."""

from __future__ import annotations

import numpy as np
import pytest

from taco_py.compiler.iteration.region import (
    Coordinates,
    Everything,
    Iterator,
    Nothing,
    Region,
    Regions,
    combine,
    intersect,
    look_out,
    unite,
)
from taco_py.language.notation.functions.function_table import WHERE
from taco_py.language.notation.nodes import Access, Call, Literal
from taco_py.language.notation.operators import ADD, DIV, MUL, NEG, SUB, Number, Operator

A, B, C = (Coordinates(Iterator(Access(name, ("i",)), 0)) for name in "ABC")
ALL, NONE = Everything(), Nothing()

MAX = Operator("max", "max", 2, "max", 4, identity=float("-inf"), evaluate=np.maximum)
ANNIHILATED_RIGHT = Operator("right", "r", 2, "r", 4, annihilators=(None, 0), evaluate=np.multiply)
BY_ONE = Operator("or", "|", 2, "|", 4, annihilators=(1, 1), evaluate=np.logical_or)
PLUS_ONE = Operator("inc", "inc", 2, "inc", 4, evaluate=lambda a, b: a + b + 1)
SINE = Operator("sin", "sin", 1, "sin", 4, annihilators=(None,), evaluate=np.sin)
COSINE = Operator("cos", "cos", 1, "cos", 4, annihilators=(None,), evaluate=np.cos)

TABLE: tuple[tuple[Operator, tuple[Region, ...], str], ...] = (
    (ADD, (A, B), "(A1 ∪ B1)"),
    (ADD, (A, NONE), "A1"),
    (ADD, (A, A), "A1"),
    (ADD, (A, ALL), "(A1 ∪ all)"),
    (SUB, (A, B), "(A1 ∪ B1)"),
    (NEG, (A,), "A1"),
    (MUL, (A, B), "(A1 ∩ B1)"),
    (MUL, (A, ALL), "A1"),
    (MUL, (A, NONE), "none"),
    (MUL, (A, A), "A1"),
    # the divisor may be absent only where the dividend is: it is looked out for there
    (DIV, (A, ALL), "A1"),
    (DIV, (A, B), "(A1 ∩ (all ∪ B1))"),
    (DIV, (ALL, B), "(all ∪ B1)"),
    (DIV, (NONE, B), "none"),
    (MAX, (A, B), "(A1 ∪ B1)"),
    (ANNIHILATED_RIGHT, (A, B), "((all ∪ A1) ∩ B1)"),
    (ANNIHILATED_RIGHT, (ALL, B), "B1"),
    (BY_ONE, (A, B), "(A1 ∪ B1)"),  # one annihilates, but what is absent is zero
    (PLUS_ONE, (A, B), "(A1 ∪ B1)"),  # where it differs from 1
    (SINE, (A,), "A1"),
    (COSINE, (A,), "A1"),
)


CHOICES: tuple[tuple[tuple[Region, ...], tuple[Number | None, ...], str], ...] = (
    ((A, ALL, NONE), (0, None, 0), "A1"),  # where(A > 0, x, 0)
    ((A, B, NONE), (0, 0, 0), "(A1 ∩ B1)"),  # where(A > 0, B, 0)
    ((A, NONE, B), (0, 0, 0), "((A1 ∪ B1) ∩ B1)"),  # where(A > 0, 0, B)
    ((A, B, C), (0, 0, 1), "((A1 ∪ C1) ∩ (all ∪ B1))"),
    ((A, B, C), (1, 0, 2), "((A1 ∪ B1) ∩ (all ∪ C1))"),
    ((ALL, A, NONE), (None, 0, 0), "A1"),  # where(i > j, A, 0)
    ((ALL, A, B), (None, 0, 0), "(A1 ∪ B1)"),
    ((ALL, A, B), (None, 0, 1), "((all ∪ A1) ∪ B1)"),
)


@pytest.mark.parametrize(("regions", "fills", "expected"), CHOICES)
def test_a_choice_is_of_its_condition_and_what_that_chooses(
    regions: tuple[Region, ...], fills: tuple[Number | None, ...], expected: str
) -> None:
    assert str(combine(WHERE, regions, fills)) == expected


@pytest.mark.parametrize(("operator", "regions", "expected"), TABLE)
def test_combine(operator: Operator, regions: tuple[Region, ...], expected: str) -> None:
    assert str(combine(operator, regions, (0,) * operator.arity)) == expected


def test_trivial_cases_are_removed() -> None:
    assert intersect(ALL, A) == intersect(A, ALL) == A
    assert intersect(NONE, A) == intersect(A, NONE) == NONE
    assert unite(NONE, A) == unite(A, NONE) == A
    assert str(unite(ALL, A)) == "(all ∪ A1)"
    assert look_out(NONE) == look_out(ALL) == ALL
    assert str(look_out(A)) == "(all ∪ A1)"


def test_absent_operands_and_zeros_have_no_region() -> None:
    a, b = Access("A", ("i",)), Access("B", ("i",))
    levels = {a: {"i": Iterator(a, 0)}, b: {"i": Iterator(b, 0)}}
    regions = Regions(levels, frozenset((a,)))
    assert regions.is_absent(Call(MUL, (a, b)))
    assert not regions.is_absent(Call(ADD, (a, b)))
    assert str(regions.expression(Call(ADD, (a, b)), "i")) == "B1"
    assert regions.expression(Literal(0), "i") == NONE
    assert regions.expression(Literal(2), "i") == ALL
    assert regions.expression(b, "j") == ALL

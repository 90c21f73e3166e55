"""Notation to text, with no more parentheses than needed, and back."""

from __future__ import annotations

import pytest
from hypothesis import given

from taco_py.language.notation.nodes import Access, Assignment, Call, Literal, Reduce
from taco_py.language.notation.operators import ADD, MUL, Operator
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text
from tests.notation import strategies

TEXTS = [
    ("y(i)+=A(i,j)*x(j)", "y[i] += A[i,j] * x[j]"),
    ("y[]=((a))", "y = a"),
    ("y=(a+b)+(c+d)", "y = a + b + (c + d)"),
    ("y=(a*b)/(c*d)", "y = a * b / (c * d)"),
    ("y=(a*b)+(c/d)", "y = a * b + c / d"),
    ("y=(a+b)*c", "y = (a + b) * c"),
    ("y=-(a*b)", "y = -(a * b)"),
    ("y=(-a)*b", "y = -a * b"),
    ("y=a*(-b)", "y = a * -b"),
    ("y=a-(-b)", "y = a - -b"),
    ("y=--a", "y = --a"),
    ("y=2*a+1e-5*b-.5j", "y = 2 * a + 1e-05 * b - 0.5j"),
    ("y=sum((i,j),sum(k,T(i,j,k)))", "y = sum(i, j, k, T[i,j,k])"),
    ("y=sum(j,a)*sum(i)", "y = sum(j, a) * sum[i]"),
]


@pytest.mark.parametrize(("text", "printed"), TEXTS)
def test_text(text: str, printed: str) -> None:
    assert to_text(parse_assignment(text)) == printed


@given(strategies.assignments)
def test_printed_text_parses_back(assignment: Assignment) -> None:
    assert parse_assignment(to_text(assignment)) == assignment


@given(strategies.assignments)
def test_every_parenthesis_is_needed(assignment: Assignment) -> None:
    """Without any one pair of parentheses the text means something else, or nothing."""
    text = to_text(assignment)
    for start, stop in _pairs(text):
        without = f"{text[:start]} {text[start + 1 : stop]} {text[stop + 1 :]}"
        assert _parsed_or_none(without) != assignment


def _pairs(text: str) -> list[tuple[int, int]]:
    pairs, opened = [], []
    for place, character in enumerate(text):
        if character == "(":
            opened.append(place)
        elif character == ")":
            pairs.append((opened.pop(), place))
    return pairs


def _parsed_or_none(text: str) -> Assignment | None:
    try:
        return parse_assignment(text)
    except ValueError:
        return None


def test_what_has_no_syntax_prints_too() -> None:
    highest = Operator("max", "max", 2, "max", 0, commutative=True)
    x, y = Access("x", ("i",)), Access("y", ("i",))
    assert to_text(Reduce(highest, "i", Call(highest, (x, y)))) == "max(i, max(x[i], y[i]))"
    assert to_text(Call(MUL, (Literal(-2), x))) == "-2 * x[i]"
    assert to_text(Call(MUL, (Literal(2 + 1j), x))) == "(2+1j) * x[i]"
    assert to_text(Call(ADD, (x, Literal(0, dtype="float32")))) == "x[i] + 0"

"""Additive terms: how expressions are split, mapped, and their sums told apart."""

from __future__ import annotations

import numpy as np
import pytest

from taco_py.compiler.concrete.terms import (
    map_terms,
    reductions,
    split_terms,
    sums_apart,
    terms_in_turn,
)
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Literal, Reduce
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import walk
from tests.problems import assignment

SPLIT = (
    ("y = a + b", ["+a", "+b"]),
    ("y = a - b", ["+a", "-b"]),
    ("y = -(a - b)", ["-a", "+b"]),
    ("y = a - (b - (c - d))", ["+a", "-b", "+c", "-d"]),
    ("y = a * (b + c)", ["+a * (b + c)"]),
    ("y[i] = b[i] - A[i,j] * x[j]", ["+b[i]", "-j: A[i,j] * x[j]"]),
    ("y = sum(i, sum(j, A[i,j]))", ["+i,j: A[i,j]"]),
    ("y = sum(i, -a[i])", ["-i: a[i]"]),
    ("y = sum(i, a[i] + b[i])", ["+i: a[i] + b[i]"]),
    ("y = 2", ["+2"]),
)


@pytest.mark.parametrize(("text", "expected"), SPLIT, ids=lambda value: str(value)[:24])
def test_terms(text: str, expected: list[str]) -> None:
    found = [
        f"{'-' if term.negative else '+'}{','.join(term.reduced)}"
        f"{': ' if term.reduced else ''}{to_text(term.body)}"
        for term in split_terms(assignment(text).value)
    ]
    assert found == expected


def test_terms_are_mapped_in_the_order_of_splitting() -> None:
    value = assignment("y[i] = b[i] - (A[i,j] * x[j] - c[i])").value
    seen: list[str] = []

    def note(term: object) -> Literal:
        seen.append(to_text(term))  # type: ignore[arg-type]
        return Literal(len(seen))

    assert to_text(map_terms(value, note)) == "1 - (2 - 3)"
    assert seen == ["b[i]", "sum(j, A[i,j] * x[j])", "c[i]"]
    assert map_terms(value, lambda term: term) is value


def test_only_the_outermost_reductions_are_listed() -> None:
    value = assignment("y[i] = A[i,j] * (B[j,k] * x[k]) + b[i]").value
    assert [r.index for r in reductions(value)] == ["j"]


APART = (
    # one name in two sums of one term
    ("y = x * (sum(i, a[i]) + sum(i, b[i]))", "y = x * (sum(i, a[i]) + sum(i_1, b[i_1]))"),
    (
        "y = x * (sum(i, k, A[i,k]) + sum(k, i, B[k,i]))",
        "y = x * (sum(i, k, A[i,k]) + sum(k_1, i_1, B[k_1,i_1]))",
    ),
    # terms have orders of their own
    ("y = sum(i, a[i]) + sum(i, b[i])", "y = sum(i, a[i]) + sum(i, b[i])"),
)


@pytest.mark.parametrize(("text", "expected"), APART)
def test_sums_apart(text: str, expected: str) -> None:
    before = assignment(text)
    after = sums_apart(before)
    assert to_text(after) == expected
    assert (after is before) == (text == expected)
    assert sums_apart(after) is after


IN_TURN = (
    ("a + b + c", "+a +b +c"),
    ("a - b - c", "+a -b -c"),
    ("a + (b - c)", "+b -c +a"),
    ("a - (b - c)", "-b +c +a"),
    ("-(a - b) + c", "-a +b +c"),
    ("(a + b) - (c + d)", "+a +b -c + d"),
    ("a * (b + c) + d", "+a * (b + c) +d"),
    ("a + (n + n) + b", "+a +n + n +b"),  # in a type of its own
    ("a", "+a"),
)


@pytest.mark.parametrize(("text", "expected"), IN_TURN)
def test_terms_in_turn(text: str, expected: str) -> None:
    value = assignment(f"s = {text}").value
    dtypes = {name: np.dtype("int8" if name == "n" else "float64") for name in "abcdn"}
    terms = terms_in_turn(value, lambda each: expression_dtype(each, dtypes) == np.float64)
    signs = ("-" if term.negative else "+" for term in terms)
    texts = (to_text(term.body) for term in terms)
    assert " ".join(sign + each for sign, each in zip(signs, texts, strict=True)) == expected


def test_sums_apart_binds_every_index_once_in_each_term() -> None:
    text = "y = x * (sum(i, a[i] * sum(k, A[i,k])) + sum(k, c[k] * sum(i, B[k,i])) + sum(i, a[i]))"
    value = sums_apart(assignment(text)).value
    bound = [node.index for node, _ in walk(value) if isinstance(node, Reduce)]
    used = {i for node, _ in walk(value) if isinstance(node, Access) for i in node.indices}
    assert len(set(bound)) == len(bound)
    assert used == set(bound)

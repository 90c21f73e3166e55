"""Products of sums of sparse operands: how many cases they have, and that they are few."""

from __future__ import annotations

from functools import reduce
from operator import mul
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.concrete.case_counts import count_cases
from taco_py.language.notation.nodes import Reduce
from taco_py.planner.ir.program import Program
from tests.problems import operands, problem


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A[i,j] * B[i,j]", 1),
        ("A[i,j] + B[i,j]", 3),
        ("A[i,j] * B[i,j] + 2 * C[i,j]", 3),
        ("A[i,j] + x[j]", 2),
        ("(A[i,j] + B[i,j]) * (C[i,j] - D[i,j]) / x[j]", 9),
        ("(A[i,j] + B[i,j]) * (A[i,j] + 2 * B[i,j])", 3),
        ("(A[i,j] + x[j]) * (B[i,j] + C[i,j] + x[j])", 8),
        ("A[i,j] + B[i,j] + C[i,j] + D[i,j] + E[i,j]", 31),
        ("A[i,j] + B[i,j] + C[i,j] + D[i,j] + E[i,j] + F[i,j]", 32),
        ("(A[i,j] + B[i,j]) * C[i,j] + D[i,j]", 7),
        ("max(A[i,j], B[i,j])", 3),
        ("max(A[i,j], min(B[i,j], C[i,j]))", 7),
        ("where(A[i,j] > 1, B[i,j], C[i,j])", 7),
    ],
)
def test_cases_of_a_term(text: str, count: int) -> None:
    known = problem(f"Z[i,j] = {text}", dict.fromkeys("ABCDEF", "CSR"))
    given = operands(known)
    found = count_cases(known.assignment.value, lambda a: not given[a.tensor].type.format.is_dense)
    assert found == count


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("A[i,j] + B[i,j]", 8),
        ("(A[i,j] + B[i,j]) * (C[i,j] - D[i,j]) / x[j]", 64),
        ("(A[i,j] + B[j,i]) * T[i,j,k]", 8),
        ("T[i,j,k] + A[i,j] * B[i,j]", 11),
        ("T[i,j,k] + x[k]", 4),
    ],
)
def test_cases_in_all_loops_together(text: str, count: int) -> None:
    """Each operand may end in any of its lists: A + B has A and B with both or one in each row."""
    known = problem(f"Z[i,j] = {text}", dict.fromkeys("ABCD", "DCSR") | {"T": "CSF"})
    program = Program((), operands(known), ("Z",), {})
    value = known.assignment.value
    while isinstance(value, Reduce):
        value = value.body
    assert count_cases(value, program.lists) == count


def test_products_that_took_minutes_to_compile() -> None:
    rng = np.random.default_rng(3)
    known: dict[str, Any] = {
        "A": tp.tensor(rng.integers(0, 2, (4, 4)) * 1.0, format="ss:1,0"),
        "B": tp.tensor(rng.integers(0, 2, (4, 4, 4)) * 1.0, format="ssd"),
        "c": sp.coo_array(rng.integers(0, 2, 4) * 1.0),
        "d": sp.coo_array(rng.integers(0, 2, 4) * 1.0),
        "E": rng.random((4, 4)),
    }
    text = "R[j,i,k] = (A[i,k] + A[j,i]) * B[i,k,j] * (B[i,j,k] - (c[j]*d[k] + E[i,k] - d[j]))"
    told = tp.explain(text, known, frontier_budget=0)
    assert "in one kernel with the other sums of its product it has 96 cases" in told
    found, expected = tp.evaluate(text, known), tp.evaluate_dense(text, known)
    np.testing.assert_allclose(found.to_numpy(), expected)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("result", ["y[i]", "Z[i,j]"])
def test_products_of_many_sums(result: str) -> None:
    rng = np.random.default_rng(0)
    names = [(f"A{k}", f"B{k}") for k in range(7)]
    known = {
        name: sp.random_array((30, 40), density=0.5, format="csr", rng=rng)
        for pair in names
        for name in pair
    }
    text = f"{result} = " + " * ".join(f"({a}[i,j] - {b}[i,j])" for a, b in names)
    expected = reduce(mul, (known[a].toarray() - known[b].toarray() for a, b in names))
    form = "d" if result == "y[i]" else "csr"
    found = tp.evaluate(text, known, format=form)
    if result == "y[i]":
        np.testing.assert_allclose(found, expected.sum(axis=1))
    else:
        np.testing.assert_allclose(found.toarray(), expected)
    measured = tp.evaluate(text, known, format=form, schedule="measure")
    np.testing.assert_allclose(np.asarray(measured.sum()), expected.sum())
    told = tp.explain(text, known, frontier_budget=0)
    assert "split     T: in one kernel with the other sums of its product it has" in told
    with pytest.raises(tp.ScheduleError, match="found 2187: one for each set"):
        tp.evaluate(text, known, schedule="reorder(i,j)")


@pytest.mark.parametrize("form", ["csr", "dd"])
def test_sums_of_products_of_sums(form: str) -> None:
    rng = np.random.default_rng(1)
    known = {
        name: sp.random_array((30, 40), density=0.5, format="csr", rng=rng) for name in "ABCDEFG"
    }
    pairs = list(zip("ABCD", "BCDE", "CDEF", "DEFG", strict=True))
    text = " + ".join(f"({a}[i,j] + {b}[i,j]) * ({c}[i,j] - {d}[i,j])" for a, b, c, d in pairs)
    found = tp.evaluate(f"Z[i,j] = {text}", known, format=form)
    dense = {name: each.toarray() for name, each in known.items()}
    expected = sum((dense[a] + dense[b]) * (dense[c] - dense[d]) for a, b, c, d in pairs)
    np.testing.assert_allclose(found.toarray() if form == "csr" else found, expected, atol=1e-12)


def test_sums_over_indices_have_their_own_type() -> None:
    """One of small integers is added up in 64 bits, whatever stands beside it."""
    rng = np.random.default_rng(2)
    known = {
        name: sp.random_array((30, 40), density=0.5, format="csr", rng=rng)
        for name in ("A0", "B0", "A1", "B1", "A2", "B2", "A3")
    }
    given = {**known, "D": sp.csr_array(np.full((30, 20), 200, np.uint8)), "c": rng.random(30)}
    sums = " * ".join(f"(A{k}[i,j] + B{k}[i,j])" for k in range(3))
    text = f"Z[i,j] = {sums} * (A3[i,j] + c[i] - sum(l, D[i,l]))"
    dense = {name: each.toarray() for name, each in known.items()}
    last = dense["A3"] + given["c"][:, None] - 200 * 20
    expected = reduce(mul, (dense[f"A{k}"] + dense[f"B{k}"] for k in range(3))) * last
    for form in ("csr", "dd"):
        found = tp.evaluate(text, given, format=form)
        np.testing.assert_allclose(found.toarray() if form == "csr" else found, expected)


@pytest.mark.parametrize("form", ["csr", "dd"])
def test_functions_of_many_sparse_operands(form: str) -> None:
    """Eight in one loop have 255 cases, which no recursion of the compiler gets through."""
    rng = np.random.default_rng(4)
    known = {
        name: sp.random_array((30, 40), density=0.5, format="csr", rng=rng) for name in "ABCDEFGH"
    }
    text = (
        "Z[i,j] = max(A[i,j], min(B[i,j] - C[i,j], max(D[i,j], "
        "where(E[i,j] > 0.5, F[i,j] * 2, max(G[i,j], H[i,j])))))"
    )
    found = tp.evaluate(text, known, format=form)
    expected = tp.evaluate_dense(text, known)
    np.testing.assert_array_equal(found.toarray() if form == "csr" else found, expected)
    told = tp.explain(text, known, format=form, frontier_budget=0)
    assert "one kernel has too many cases" in told

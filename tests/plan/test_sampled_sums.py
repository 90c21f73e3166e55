"""Sums in divisors run where the term is stored, and equal sums are computed once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.concrete.inner_sums import around_loose, loose_sums, sum_key
from taco_py.compiler.concrete.terms import reductions
from taco_py.language.notation.printer import to_text
from tests.problems import assignment

S = "sum(k, A[i,k] * A[j,k])"
TURNED = "sum(l, A[j,l] * A[i,l])"
TEXTS = (
    f"J[i,j] = A[i,j] * {S} / (d[i] + d[j] - {TURNED})",
    f"J[i,j] = A[i,j] / {S}",
    f"J[i,j] = A[i,j] / (1 + {S})",
    f"J[i,j] = A[i,j] / (1 + w[i] / (2 + {S}))",
    f"J[i,j] = 2 * A[i,j] * {S} / (d[i] + d[j])",
    f"J[i,j] = (A[i,j] + B[i,j]) * {S} / (d[i] + d[j] - {S})",
    "J[i,j] = A[i,j] * sum(k, A[i,k] * B[k,j]) / (1 + sum(k, A[i,k] * A[j,k]))",
    f"J[i,j] = A[i,j] * {S} / (1 + sum(k, A[i,k] * A[i,k]) * sum(k, A[j,k] * A[j,k]))",
    "J[i,j] = A[i,j] * sum(k, A[i,k] * w[k] * A[j,k]) / (d[i] - sum(k, A[j,k] * (w[k] * A[i,k])))",
    f"y[i] = sum(j, A[i,j] * {S} / (d[i] + d[j] - {TURNED}))",
    f"s = sum(i, j, A[i,j] * {S} / (d[i] + d[j] - {TURNED}))",
    "y[i] = w[i] * sum(k, A[i,k] * w[k]) / (1 + sum(l, w[l] * A[i,l]))",
)


def operands_of(text: str, form: str, n: int = 8, seed: int = 0, density: float = 0.3) -> Any:
    rng = np.random.default_rng(seed)
    matrices = [sp.random_array((n, n), density=density, rng=rng, format="csr") for _ in "AB"]
    named: dict[str, Any] = dict(zip("AB", matrices, strict=True))
    if form in ("csr", "csc", "coo"):
        named = {name: each.asformat(form) for name, each in named.items()}
    else:
        named = {name: tp.tensor(each, format=form) for name, each in named.items()}
    named |= {"d": rng.random(n) + 20, "w": rng.random(n)}
    return {name: each for name, each in named.items() if f"{name}[" in text}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "ss", "ds:1,0"])
@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_the_text(text: str, form: str) -> None:
    operands = operands_of(text, form)
    with np.errstate(all="ignore"):
        found, expected = tp.evaluate(text, operands), tp.evaluate_dense(text, operands)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    found = found.toarray() if sp.issparse(found) else found
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from((TEXTS[0], TEXTS[1], TEXTS[5])),
    st.integers(0, 1000),
    st.floats(0.0, 0.6),
)
def test_values_with_rows_that_store_nothing(text: str, seed: int, density: float) -> None:
    operands = operands_of(text, "csr", 6, seed, density)
    with np.errstate(all="ignore"):
        found, expected = tp.evaluate(text, operands), tp.evaluate_dense(text, operands)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-12)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["csr", "csc", "ds"])
@pytest.mark.parametrize("text", TEXTS[:9])
def test_no_sum_is_computed_where_the_mask_stores_nothing(text: str, form: str) -> None:
    """A temporary of A @ A.T would have a third of all elements."""
    told = tp.explain(text, operands_of(text, form, 400, density=0.03), frontier_budget=0)
    (largest,) = (line for line in told.splitlines() if line.startswith("largest"))
    assert largest.endswith("no temporary") or float(largest.split()[-2]) <= 2 * 4800


def test_equal_sums_are_one_loop() -> None:
    text = TEXTS[0]
    told = tp.explain(text, operands_of(text, "csr", 400, density=0.03), frontier_budget=0)
    assert "J[i,j] = A[i,j] * t / (d[i] + d[j] - t)" in told
    text = TEXTS[-1]
    given = operands_of(text, "csr", 400, density=0.03)
    told = tp.explain(text, given, frontier_budget=0, forbid="fuse_temporary")
    sums = [line for line in told.splitlines() if "= sum(" in line and "present(" not in line]
    assert len(sums) == 1


def test_equal_sums_are_told_by_what_they_add_up() -> None:
    def keys(text: str) -> list[object]:
        return [sum_key(each) for each in reductions(assignment(text).value)]

    one, other = keys("y[i] = 1 / (sum(k, A[i,k] * x[k]) - sum(l, x[l] * A[i,l]))")
    assert one == other
    one, other = keys("y[i] = 1 / (sum(k, A[i,k] / x[k]) - sum(l, x[l] / A[i,l]))")
    assert one != other
    one, other = keys("y[i] = 1 / (sum(k, A[i,k] * x[k]) - sum(l, A[l,i] * x[l]))")
    assert one != other
    text = "y = 1 / (sum(k, sum(l, A[k,l])) - sum(l, sum(k, A[l,k])))"
    one, other = keys(text)
    assert one == other


def test_loops_of_a_sum_in_a_divisor_run_where_its_term_is_stored() -> None:
    value = assignment("J[i,j] = A[i,j] / (1 + sum(k, B[i,k] * C[k,j]))").value
    sums = loose_sums(value)
    (found,) = sums
    assert to_text(found) == "sum(k, B[i,k] * C[k,j])"
    assert to_text(around_loose(value, sums)) == "A[i,j] / (1 + 1.0) * (B[i,k] * C[k,j])"
    assert not loose_sums(assignment("J[i,j] = A[i,j] * sum(k, B[i,k] * C[k,j]) / d[i]").value)

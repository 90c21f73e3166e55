"""One value for each text: zeros, infinities and NaN in divisors, in any format and by any plan.

    y[i] = A[i,j] * x[j] / d[i]    0 where A stores nothing in row i, whatever d[i] is

The value is the oracle's, which keeps apart what is stored; the plans are all that differ from the
chosen one by one decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.arguments.call_arguments import CallArguments
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.compute import compute_one as compute
from taco_py.calls.call.prepare import prepare
from taco_py.calls.statements.read_text import parsed
from taco_py.language.notation.checks import operand_names
from tests.corpus.formats import to_dense

N, F = 6, 3
FORMATS: dict[str, Callable[[Any], Any]] = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "coo": sp.coo_array,
    "dcsr": lambda array: tp.tensor(sp.csr_array(array), format="ss"),
    "tensor": lambda array: tp.tensor(sp.csr_array(array)),
}
SHAPES = {"A": (N, N), "B": (N, N), "S": (N, F), "X": (N, F), "D": (N, F), "E": (N, N)}
SPARSE = "ABS"
DIVISORS = "deDEc"
TEXTS = (
    "y[i] = A[i,j] * x[j] / d[i]",
    "y[i] = A[i,j] / d[i] * x[j]",
    "y[i] = A[i,j] / d[i]",
    "y[j] = A[i,j] / d[j]",
    "y[i] = A[i,j] / (d[i] * e[i])",
    "y[i] = A[i,j] / d[i] / e[i]",
    "y[i,f] = A[i,j] * X[j,f] / d[i]",
    "y[i,f] = A[i,j] / d[i] * X[j,f]",
    "y[i,f] = A[i,j] * S[j,f] / D[i,f]",
    "y[i,f] = A[i,j] * B[j,k] * X[k,f] / d[i]",
    "y[i] = A[i,j] * B[j,k] * x[k] / d[i]",
    "y[i,k] = A[i,j] * B[j,k] / E[i,k]",
    "y[i] = (A[i,j] + B[i,j]) * x[j] / d[i]",
    "y[i] = x[i] - A[i,j] * x[j] / d[i]",
    "y[i] = A[i,j] * x[j] / d[i] - B[i,j] / e[i]",
    "y[i] = sum(j, A[i,j] * B[i,j]) / d[i]",
    "y[i] = sum(j, A[i,j] * sum(k, B[j,k]) / d[j])",
    "y[i,j] = A[i,j] * sum(k, B[k,j] * x[k]) / d[i]",
    "y[i,j] = A[i,j] / sum(k, A[i,k])",
    "y[i,j] = A[i,j] / d[i] / e[j]",
    "y[i] = A[i,j] / (B[i,k] * x[k])",
    "y[i] = sum(j, A[i,j]) * x[i] / d[i]",
    "y[i] = sum(j, A[i,j] * x[j]) / d[i] * e[i]",
    "y[i,f] = S[i,f] * sum(j, A[i,j] * X[j,f]) / d[i]",
    "y[i] = A[i,i] / d[i]",
    "y[i] = (A[i,j] + m[j]) / d[j] * x[j]",
    "y[i] = x[i] - sum(j, (A[i,j] - m[j]) / d[j] * x[j]) / e[i]",
    "y[i,f] = (A[i,j] + B[i,j]) / d[j] * X[j,f]",
    "y[j] = x[i] * (A[i,j] + m[j]) / d[j]",
    "s = (A[i,j] + m[i]) / d[j]",
    "s = A[i,j] / c",
    "s = A[i,j] * x[j] / c",
)
PRODUCTS = (
    "y[i] = d[i] * A[i,j]",
    "y[i,k] = d[i] * A[i,k] * e[k]",
    "y[i] = sum(j, A[i,j]) * d[i]",
    "y[i,f] = sum(j, A[i,j]) * D[i,f]",
    "y[i] = sum(j, A[i,j] * x[j]) * d[i]",
)
"""Products with factors that may be infinite, around a sum and not in it."""


def values(rng: np.random.Generator, name: str) -> Any:
    """An operand: numbers whose sums are exact; divisors with zeros, infinities and NaN."""
    shape = SHAPES.get(name, () if name == "c" else (N,))
    if name in DIVISORS:
        special = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0, -4.0]
        return rng.choice(special, shape)
    found = rng.choice([0.0, 1.0, -1.0, 2.0, 4.0], shape)
    if name in SPARSE:
        found = np.where(rng.random(shape) < 0.3, found, 0.0)
        found[rng.integers(shape[0])] = 0.0  # an empty row, and an empty column
        found[:, rng.integers(shape[1])] = 0.0
    return found


def operands_of(text: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: values(rng, name) for name in sorted(operand_names(parsed(text)))}


def expected(text: str, operands: dict[str, Any]) -> Any:
    return tp.evaluate_dense(text, stored_as(operands, "csr"))


def stored_as(operands: dict[str, Any], form: str) -> dict[str, Any]:
    return {n: FORMATS[form](v) if n in SPARSE else v for n, v in operands.items()}


def plans(text: str, operands: dict[str, Any]) -> Iterator[CallOptions]:
    """The settings of the plan that is chosen, and of every one next to it."""
    plain = CallOptions(threads=1)
    yield plain
    yield replace(plain, forms=True)
    yield replace(plain, forms=True, allow=frozenset(("cancellation",)))
    yield replace(plain, forms=False)
    yield replace(plain, look_up=False)
    decisions = prepare(parsed(text), operands, plain).plan.log.decisions
    yield from (replace(plain, reversed=frozenset((each,))) for each in decisions)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("text", (*TEXTS, *PRODUCTS))
def test_what_is_absent_is_zero_in_every_format(text: str, form: str) -> None:
    operands = operands_of(text, 0)
    found = tp.evaluate(text, stored_as(operands, form))
    np.testing.assert_allclose(to_dense(found), expected(text, operands), rtol=1e-14)


@pytest.mark.parametrize("form", ("csr", "csc", "coo", "dcsr"))
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(TEXTS), st.integers(1, 2**31))
def test_every_plan_gives_the_same_value(form: str, text: str, seed: int) -> None:
    operands = operands_of(text, seed)
    stored, right = stored_as(operands, form), expected(text, operands)
    for plan in plans(text, stored):
        found = to_dense(compute(parsed(text), CallArguments(stored, plan)))
        np.testing.assert_allclose(found, right, rtol=1e-14, err_msg=str(plan))


@pytest.mark.parametrize("text", TEXTS)
def test_a_matrix_that_stores_nothing_is_absent_everywhere(text: str) -> None:
    operands = operands_of(text, 0)
    operands = {n: np.zeros_like(v) if n in SPARSE else v for n, v in operands.items()}
    found = tp.evaluate(text, stored_as(operands, "csr"))
    np.testing.assert_allclose(to_dense(found), expected(text, operands), rtol=1e-14)


# ---------------------------------------------------------------- duplicates of narrow types

NARROW = (np.bool_, np.int8, np.uint8, np.int16)
READ_WIDER = (
    ("C[i,j] = 1.0 * A[i,j]", {}, None),
    ("C[j,i] = A[i,j] / 2", {}, None),
    ("y[i] = A[i,j] * x[j]", {"x": np.ones(N)}, None),
    ("C[i,k] = A[i,j] * E[j,k]", {"E": sp.csr_array(np.eye(N))}, None),
    ("C[i,j] = A[i,j]", {}, "int64"),
    ("y[j] = A[i,j]", {}, "float64"),
)


@pytest.mark.parametrize("form", ("csr", "csc", "coo"))
@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(("text", "others", "wide"), READ_WIDER)
def test_duplicates_are_added_in_the_type_they_are_read_in(
    text: str, others: dict[str, Any], wide: str | None, dtype: Any, form: str
) -> None:
    places = np.array([3, 3, 0, 3, 5]), np.array([1, 1, 2, 1, 0])
    many = np.array([100, 100, 7, 100, 1]).astype(dtype)
    matrix = sp.coo_array((many, places), shape=(N, N))
    if form != "coo":  # scipy would add duplicates up
        matrix = sp.csr_array(
            (many[[2, 0, 1, 3, 4]], [2, 1, 1, 1, 0], [0, 1, 1, 1, 4, 4, 5]), (N, N)
        )
        matrix = matrix if form == "csr" else matrix.T
    exact = np.zeros((N, N))
    np.add.at(exact, places, many.astype(float))
    exact = exact.T if form == "csc" else exact
    right = tp.evaluate_dense(text, {"A": exact, **others})
    for plan in plans(text, {"A": matrix, **others}):
        options = replace(plan, dtype=None if wide is None else np.dtype(wide))
        found = to_dense(compute(parsed(text), CallArguments({"A": matrix, **others}, options)))
        np.testing.assert_array_equal(found, right)
    if wide is None:
        np.testing.assert_array_equal(tp.evaluate_dense(text, {"A": matrix, **others}), right)

"""Terms without an index of the result are summed once, not for each of its coordinates."""

from __future__ import annotations

import re

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.notation.checks import accesses, all_indices
from tests.problems import plan, problem

N = 60
RNG = np.random.default_rng(0)
A = sp.random_array((N, N), density=0.05, format="csr", rng=RNG)
OPERANDS = {
    "A": A,
    "V": RNG.random((N, 7)),
    "X": RNG.random((N, N)),
    "m": RNG.random(N),
    "x": RNG.random(N),
    "s": 2.5,
}
DENSE = {name: a.toarray() if sp.issparse(a) else a for name, a in OPERANDS.items()}
CASES = (
    "y[i] = x[i] - sum(j, x[j])",
    "y[i] = A[i,j] * x[j] + x[j]",
    "y[i] = (A[i,j] + 1) * x[j]",
    "y[i] = A[i,j] * x[j] + s * m[j] * x[j]",
    "Y[i,f] = V[i,f] - m[j] * V[j,f]",
    "Y[i,f] = (A[i,j] + m[j]) * V[j,f]",
    "Y[i,j] = X[i,j] - X[k,j] - X[i,k]",
    "Y[i,j] = X[i,j] + X[i,k] + X[k,j] + X[k,l]",
    "Y[i,j] = X[i,j] + A[k,l] * X[l,m]",
)


@pytest.mark.parametrize("text", CASES)
def test_a_term_is_summed_once(text: str) -> None:
    operands = {n: a for n, a in OPERANDS.items() if f"{n}[" in text or f"{n} *" in text}
    dense = {name: DENSE[name] for name in operands}
    found = tp.evaluate(text, operands)
    np.testing.assert_allclose(found, tp.evaluate_dense(text, dense), rtol=1e-12)
    assert "whose loop would repeat it" in tp.explain(text, operands)


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "({}) / s",
        "x[i] - ({}) / s",
        "m[i] * ({}) / x[i]",
        "(x[i] - ({})) * m[i]",
        "x[i] / ({})",
    ],
)
@pytest.mark.parametrize(
    "value",
    [
        "sum(j, A[i,j] * (sum(k, A[j,k] * x[k]) - m[j]))",
        "sum(j, A[j,i] * (sum(k, A[j,k] * x[k]) - m[j]))",
        "sum(j, A[i,j] * (sum(l, A[j,l] * (sum(k, A[l,k] * x[k]) - m[l])) - m[j]))",
        "sum(j, k, (A[j,i] - m[i]) * (A[j,k] - m[k]) * x[k])",
        "sum(j, A[i,j] * sum(k, V[j,k] * sum(l, A[j,l] * x[l])))",
        "sum(j, m[i] * x[j] * (sum(k, A[j,k] * x[k]) - m[j]))",
        "sum(j, l, A[i,j] * A[j,l] * (sum(k, A[l,k] * x[k]) - m[l]))",
        "sum(p, A[i,p] * (m[p] - sum(j, l, A[p,j] * A[j,l] * (sum(k, A[l,k] * x[k]) - m[l]))))",
        "sum(j, (A[j,i] - m[i]) * x[j] * (sum(k, (A[j,k] - m[k]) * x[k]) - m[j]))",
    ],
)
def test_sums_in_sums_take_no_loops_of_their_own(value: str, around: str) -> None:
    """At any depth, and beside or below what the whole is divided by."""
    text = f"y[i] = {around.format(value)}"
    names = re.findall(r"\b([A-Zmxs])\b(?!\()", text)
    operands = {name: OPERANDS[name] for name in names}
    dense = {name: DENSE[name] for name in names}
    found = tp.evaluate(text, operands)
    np.testing.assert_allclose(found, tp.evaluate_dense(text, dense), rtol=1e-9)
    for kernel in plan(problem(text, {"A": "CSR"})).kernels:
        assert len(all_indices(kernel.problem.assignment)) <= 2


@pytest.mark.parametrize(
    ("text", "operands"),
    [
        ("y[i] = x[i] + m[i]", ("x", "m")),  # nothing is summed
        ("y[i] = A[i,j] * x[j] + m[i]", ("A", "x", "m")),  # every term has the index
    ],
)
def test_other_terms_stay(text: str, operands: tuple[str, ...]) -> None:
    told = tp.explain(text, {name: OPERANDS[name] for name in operands})
    assert "would repeat" not in told


def test_a_term_of_a_narrower_type_is_added_up_once() -> None:
    """In the type of the whole, as it is where it is added to the other terms."""
    text, operands = "y[i] = x[i] - sum(j, z[j])", {"x": np.ones(N), "z": np.ones(N, np.float32)}
    told = tp.explain(text, operands)
    assert "would repeat" in told
    assert "A: d/float32, T: /float64" in told
    np.testing.assert_allclose(tp.evaluate(text, operands), 1.0 - N)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = sum(j, A[i,j]) * sum(k, x[k])",
        "y[i] = sum(j, A[i,j] * x[j]) + m * sum(j, x[j]) * sum(k, x[k])",
        "y[i] = (A[i,j] + m) * (sum(k, (B[j,k] + m) * x[k]) + s)",
        "y[i] = (A[i,j] + m) * (B[j,k] + m) * x[k]",
    ],
)
def test_no_loop_over_a_sum_of_a_vector_runs_for_each_row(text: str) -> None:
    """A sum that needs no index is not free inside the loops over the result."""
    made = plan(problem(text, {"A": "CSR", "B": "CSR"}, "d"), dict.fromkeys("ijk", 20_000))
    for kernel in made.kernels:
        sparse = {a.indices for a in accesses(kernel.problem.assignment.value) if a.tensor in "AB"}
        loops = {i for order in kernel.schedule.orders for i in order}
        covered = {i for indices in sparse for i in indices}
        assert len(loops) < 2 or loops <= covered, str(kernel.problem.assignment)

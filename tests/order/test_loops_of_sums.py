"""Sums inside a kernel that do not depend on a loop run outside of it, and are priced so."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.tuning.bench.call_space import space_of
from taco_py.tuning.bench.tune_call import tunable

rng = np.random.default_rng(0)
OUTER, INNER = 300, 400
A, B = rng.random(OUTER), rng.random(INNER)
C = sp.random_array((20, INNER), density=0.5, format="csr", rng=rng)
EMPTY = sp.csr_array((20, INNER))
TEXTS = (
    "y[j] = A[j] * sum(i, B[i]) * sum(l, k, C[l,k])",
    "y[j] = A[j] * sum(l, k, C[l,k])",
    "y[j] = A[j] - sum(i, B[i]) * sum(l, k, C[l,k])",
    "y[j] = sqrt(A[j]) * sum(l, k, C[l,k] * B[k])",
    "y[j] = A[j] * max(l, sum(k, C[l,k]))",
    "s = sum(i, B[i]) * sum(l, k, C[l,k])",
)


def operands_of(text: str, matrix: sp.csr_array) -> dict[str, object]:
    return {n: o for n, o in (("A", A), ("B", B), ("C", matrix)) if f"{n}[" in text}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("matrix", [C, EMPTY], ids=["entries", "empty"])
@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_the_oracle(text: str, matrix: sp.csr_array, threads: int) -> None:
    operands = operands_of(text, matrix)
    found = tp.evaluate(text, operands, threads=threads)
    np.testing.assert_allclose(found, tp.evaluate_dense(text, operands), rtol=1e-12, atol=1e-12)


def test_a_kernel_computes_such_sums_once() -> None:
    operands = operands_of(TEXTS[0], C)
    plan = space_of(tunable(TEXTS[0], operands, {"threads": 1})).space.plan(())
    (kernel,) = plan.kernels
    (order,) = kernel.schedule.orders
    assert order[-1] == "j", "the loop of the result is the innermost"


def test_the_price_has_their_loops_once() -> None:
    call = space_of(tunable(TEXTS[0], operands_of(TEXTS[0], C), {"threads": 1}))
    iterations = OUTER + INNER + C.nnz
    most = 2.0 * iterations * call.priced.machine.step_seconds
    assert call.price(()) < most + 1e-4, "not once for each element of the result"


def test_small_matrices_are_walked_as_they_are_stored() -> None:
    few = sp.random_array((900, 500), density=2e-4, format="csr", rng=rng)
    values = sp.random_array((500,), density=0.1, rng=rng).toarray()
    operands = {"A": tp.tensor(few, format="ss"), "b": tp.tensor(values, format="s")}
    lines = tp.explain("y[j] = A[j,i] * b[i]", operands)
    assert "1 kernel, 0 copies" in lines, "a copy of 90 entries takes longer than the loops"
    found = tp.evaluate("y[j] = A[j,i] * b[i]", operands, format="d")
    np.testing.assert_allclose(found, few @ values)

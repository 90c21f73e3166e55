"""Element-wise temporaries computed where one kernel reads them: when they are, and the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.tool.demo import compare

RULE = "inline_temporary"
SOFTMAX = """
    m[i] = max(j, S[i,j])
    e[i,j] = exp(S[i,j] - m[i])
    z[i] = sum(j, e[i,j])
    P[i,j] = e[i,j] / z[i]
"""


def scores(format: str = "csr", dtype: str = "float64") -> Any:
    """Numbers in rows of which some are empty, and one is long."""
    rng = np.random.default_rng(0)
    matrix = sp.random_array((40, 300), density=0.03, format="lil", rng=rng)
    matrix[[3, 17]] = 0
    matrix[5] = rng.standard_normal(300)
    return matrix.asformat(format).astype(dtype)


def told(text: str, **operands: Any) -> str:
    return str(tp.explain(text, operands, frontier_budget=0))


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_softmax_is_one_kernel_with_the_numbers_of_the_oracle(
    format: str, dtype: str, threads: int
) -> None:
    matrix = scores(format, dtype)
    given = tp.tensor(matrix, fill_value=-np.inf)
    found = tp.evaluate(SOFTMAX, S=given, threads=threads)
    whole = found.to_scipy().toarray()
    assert whole.dtype == dtype
    np.testing.assert_allclose(
        whole, tp.evaluate_dense(SOFTMAX, S=given), rtol=1e-13 if dtype == "float64" else 1e-5
    )
    some = np.diff(matrix.tocsr().indptr) > 0
    np.testing.assert_allclose(whole.sum(axis=1), some, rtol=1e-6)


def test_explain_says_what_is_computed_where() -> None:
    text = told(SOFTMAX, S=tp.tensor(scores(), fill_value=-np.inf))
    assert "runs      1 kernel" in text
    assert "e: computed where P reads it" in text
    assert "exp once for two loops, kept in P_vals between them" in text


TEXTS = [
    # Kept where it is used twice more, beside other functions, and of a dense operand.
    "e[i,j] = sinh(S[i,j]); z[i] = sum(j, e[i,j]); q[i] = max(j, e[i,j]); P[i,j] = e[i,j] / z[i]",
    "e[i,j] = sin(S[i,j]); z[i] = sum(j, e[i,j] * e[i,j]); P[i,j] = e[i,j] / sqrt(z[i] + 1)",
    "e[i,j] = exp(D[i,j]); z[i] = sum(j, e[i,j]); P[i,j] = e[i,j] / z[i]",
    "e[i,j] = S[i,j] * D[i,j]; z[i] = sum(j, e[i,j]); P[i,j] = e[i,j] / (z[i] + 1)",
    # Read by a sum over another index, or asked for what it stores: it stays.
    "e[i,j] = tanh(S[i,j]); z[i] = sum(j, e[i,j]); y[i,k] = e[i,j] * D[k,j] / (z[i] + 2)",
    "e[i,j] = tanh(S[i,j]); c[i] = count(j, e[i,j]); P[i,j] = e[i,j] / (c[i] + 1)",
    # Of two operands that are sparse, whose union is stored.
    "e[i,j] = tanh(S[i,j] + R[i,j]); z[i] = sum(j, e[i,j]); P[i,j] = e[i,j] / (z[i] + 9)",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("forbid", [(), (RULE,)])
def test_numbers_are_those_of_the_oracle(text: str, forbid: tuple[str, ...]) -> None:
    rng = np.random.default_rng(1)
    every = {
        "S": scores(),
        "R": sp.random_array((40, 300), density=0.02, format="csr", rng=rng),
        "D": rng.random((40, 300)),
    }
    operands = {name: each for name, each in every.items() if f"{name}[" in text}
    difference, largest = compare(
        tp.evaluate(text, operands, forbid=forbid), tp.evaluate_dense(text, operands)
    )
    assert difference <= 1e-12 * max(largest, 1.0)


STAY = [
    (TEXTS[4], "y would compute it in each round of its loops over k"),
    (TEXTS[6], "its entries are not those of one of its operands"),
]


@pytest.mark.parametrize(("text", "why"), STAY)
def test_a_temporary_stays_where_it_would_be_computed_again(text: str, why: str) -> None:
    rng = np.random.default_rng(1)
    every = {
        "S": scores(),
        "R": sp.random_array((40, 300), density=0.02, format="csr", rng=rng),
        "D": rng.random((40, 300)),
    }
    operands = {name: each for name, each in every.items() if f"{name}[" in text}
    assert "computed where" not in told(text, **operands)
    log = tp.compile(text, operands).plan.log
    assert any(why in entry.reason for entry in log.of(RULE, accepted=False))

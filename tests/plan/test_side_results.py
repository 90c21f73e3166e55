"""Sums that are results, made in the loops of another result: when they are, and the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.planner.ir.nodes import TakeSide
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text

SOFTMAX = """
    m[i] = max(j, S[i,j])
    e[i,j] = exp(S[i,j] - m[i])
    z[i] = sum(j, e[i,j])
    P[i,j] = e[i,j] / z[i]
"""
TANHS = "e[i,j] = tanh(S[i,j]); z[i] = sum(j, e[i,j] * e[i,j]); P[i,j] = e[i,j] / sqrt(z[i] + 1)"
TWO = "z[i] = S[i,j] * x[j]; q[i] = S[i,j] * S[i,j]; y[i] = z[i] / (q[i] + 1)"
CASES = [
    # (text, outputs, fill value of S, how many kernels of S in CSR)
    (SOFTMAX, ("P", "z"), -np.inf, 1),
    (SOFTMAX, ("z", "m", "P"), -np.inf, 2),
    (SOFTMAX, ("P", "e", "z"), -np.inf, 2),
    (TANHS, ("P", "z"), 0.0, 1),
    (TWO, ("y", "z", "q"), 0.0, 1),
    ("z[i] = sum(j, D[i,j]); P[i,j] = S[i,j] / z[i]", ("z", "P"), 0.0, 1),
    ("z[i] = sum(j, S[i,j]); P[i,j] = D[i,j] / (z[i] + 1)", ("P", "z"), 0.0, 1),
    ("z[i] = sum(j, S[i,j]); y[i] = z[i] * z[i] + r[i]", ("y", "z"), 0.0, 1),
    # A row, of a product with an epilogue.
    ("z[i,k] = S[i,j] * X[j,k]; H[i,k] = max(z[i,k] + 1, 0)", ("H", "z"), 0.0, 1),
    # Not over the first loop of what reads it; read twice.
    ("z[j] = sum(i, S[i,j]); P[i,j] = S[i,j] / (z[j] + 1)", ("P", "z"), 0.0, 2),
    ("z[i] = sum(j, S[i,j]); y[i] = z[i] + 1; w[i] = z[i] * r[i]", ("y", "z", "w"), 0.0, 3),
]


def operands(text: str, fill: float, format: str = "csr", dtype: str = "float64") -> dict[str, Any]:
    """Of which some rows store nothing."""
    rng = np.random.default_rng(0)
    matrix = sp.random_array((40, 30), density=0.2, format="lil", rng=rng)
    matrix[[3, 17]] = 0
    every = {
        "S": tp.tensor(matrix.asformat("csr" if format == "dcsr" else format).astype(dtype)),
        "D": rng.random((40, 30)).astype(dtype) + 1,
        "X": rng.random((30, 5)).astype(dtype),
        "x": rng.random(30).astype(dtype),
        "r": rng.random(40).astype(dtype),
    }
    if format == "dcsr":
        every["S"] = tp.tensor(every["S"], format="ss")
    every["S"] = tp.tensor(every["S"], fill_value=fill)
    return {name: each for name, each in every.items() if f"{name}[" in text}


def plan_of(text: str, outputs: tuple[str, ...], given: dict[str, Any]) -> Plan:
    return tp.compile(text, given, outputs=outputs).plan


@pytest.mark.parametrize(("text", "outputs", "fill", "kernels"), CASES)
def test_how_many_kernels_several_results_take(
    text: str, outputs: tuple[str, ...], fill: float, kernels: int
) -> None:
    plan = plan_of(text, outputs, operands(text, fill))
    assert len(plan.kernels) == kernels
    printed = program_text(plan.program)
    assert program_text(parse_program(printed)) == printed


@pytest.mark.rotating(2)
@pytest.mark.parametrize(("text", "outputs", "fill"), [case[:3] for case in CASES])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dcsr"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_numbers_are_those_of_the_oracle(
    text: str, outputs: tuple[str, ...], fill: float, format: str, dtype: str
) -> None:
    given = operands(text, fill, format, dtype)
    expected = tp.evaluate_dense(text, given, outputs=outputs)
    for threads in (1, 2, 1):  # the last one by the short way
        found = tp.evaluate(text, given, outputs=outputs, threads=threads)
        for one, other in zip(found, expected, strict=True):
            whole = one.to_numpy() if isinstance(one, tp.Tensor) else one
            whole = whole.toarray() if sp.issparse(whole) else whole
            tolerance = 1e-12 if dtype == "float64" else 1e-5
            np.testing.assert_allclose(whole, other, rtol=tolerance, atol=tolerance)


def test_no_row_is_left_out_where_the_other_result_has_none() -> None:
    """Loops over the rows that S stores would miss sums of the others."""
    text = "z[i] = sum(j, D[i,j]); P[i,j] = S[i,j] / z[i]"
    plan = plan_of(text, ("P", "z"), operands(text, 0.0, "dcsr"))
    assert not any(isinstance(step, TakeSide) for step in plan.steps)
    assert len(plan.kernels) == 2


def test_explain_says_which_loops_make_it() -> None:
    told = str(tp.explain(SOFTMAX, operands(SOFTMAX, -np.inf), outputs=("P", "z")))
    assert "runs      1 kernel" in told
    assert "z: made one by one in the loops over i of P, which stores it besides" in told
    assert "besides   z, which the loops of P make" in told
    assert "scalar workspace of float64, stored in z[i]" in told
    assert "exp once for two loops, kept in P_vals between them" in told


def test_arrays_for_results_take_what_is_stored_besides() -> None:
    given = operands(TWO, 0.0)
    outs = {"z": np.full(40, np.nan), "y": np.full(40, np.nan)}
    for _ in range(2):
        tp.evaluate(TWO, given, outputs=("y", "z"), out=outs)
        y, z = tp.evaluate_dense(TWO, given, outputs=("y", "z"))
        np.testing.assert_allclose(outs["z"], z)
        np.testing.assert_allclose(outs["y"], y)
        outs["z"].fill(np.nan)


def test_a_compiled_kernel_gives_both() -> None:
    given = operands(TANHS, 0.0)
    p, z = tp.compile(TANHS, given, outputs=("P", "z"))(**given)
    expected = tp.evaluate_dense(TANHS, given, outputs=("P", "z"))
    np.testing.assert_allclose(z, expected[1])
    np.testing.assert_allclose(p.to_numpy(), expected[0])

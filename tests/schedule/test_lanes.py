"""Unrolled and vectorized loops: what may be, what is emitted, and that results are right."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.parser import parse_assignment

pytestmark = pytest.mark.user_flags

RNG = np.random.default_rng(3)


def sparse(rows: int, columns: int) -> tp.Tensor:
    dense = RNG.random((rows, columns)) * (RNG.random((rows, columns)) < 0.3)
    return tp.tensor(dense, format=tp.CSR)


A, B = sparse(23, 19), sparse(23, 19)
X, V = RNG.random((19, 13)), RNG.random(19)
OPERANDS = {"A": A, "B": B, "x": V, "X": X, "z": V + 1j}
SPMV, SPMM, DOT = "y[i] = A[i,j] * x[j]", "C[i,k] = A[i,j] * X[j,k]", "s = x[i] * x[i]"
SUM = "C[i,j] = A[i,j] + B[i,j]"

ACCEPTED = (
    (SPMV, "unroll(j,4)", "#pragma GCC unroll 4"),
    (SPMV, "unroll(i,3)", "#pragma GCC unroll 3"),
    (SPMV, "pos(j,p,A), split(p,p0,p1,4), unroll(p1,4)", "#pragma GCC unroll 4"),
    (SPMV, "vectorize(j)", "#pragma omp simd reduction(+:t)"),
    (SPMV, "parallelize(j,CPUVector,IgnoreRaces)", "#pragma omp simd reduction(+:t)"),
    (SPMV, "split(j,j0,j1,8), vectorize(j1)", "#pragma omp simd reduction(+:t)"),
    (SPMV, "split(i,i0,i1,8), parallelize(i0), vectorize(i1)", "#pragma omp simd\n"),
    (SPMV, "vectorize(i)", "#pragma omp simd\n"),
    (SPMM, "split(k,k0,k1,4), reorder(i,k0,j,k1), vectorize(k1)", "if (k0 * 4 + 4 <= n_k)"),
    (SPMM, "split(k,k0,k1,4), reorder(i,k0,j,k1), unroll(k1,4)", "#pragma GCC unroll 4"),
    (SPMM, "reorder(i,j,k), vectorize(k)", "#pragma omp simd\n"),
    (DOT, "split(i,i0,i1,8), vectorize(i0)", "#pragma omp simd reduction(+:t)"),
    (SUM, "unroll(i,2)", "#pragma GCC unroll 2"),
)


def used(text: str) -> dict[str, object]:
    return {name: value for name, value in OPERANDS.items() if name in text[1:]}


def array(value: object) -> np.ndarray:
    return value.to_numpy() if isinstance(value, tp.Tensor) else np.asarray(value)


@pytest.mark.parametrize(("text", "schedule", "emitted"), ACCEPTED)
def test_marked_loops_are_emitted_and_right(text: str, schedule: str, emitted: str) -> None:
    operands = used(text)
    formats = {
        name: tp.CSR if value is A or value is B else None for name, value in operands.items()
    }
    kernel = tp.compile(
        text,
        {n: f or tp.dense(np.ndim(operands[n])) for n, f in formats.items()},
        schedule=schedule,
    )
    assert emitted in kernel.source
    expected = tp.evaluate_dense(parse_assignment(text), {n: array(v) for n, v in operands.items()})
    for threads in (1, 2):
        found = tp.evaluate(text, schedule=schedule, threads=threads, **operands)
        np.testing.assert_allclose(array(found), expected)


REFUSED = (
    (SPMV, "unroll(j,4), vectorize(j)", "j cannot be unrolled: vector lanes take its iterations"),
    (SPMV, "parallelize(i), vectorize(i)", "i cannot be vectorized: threads take its iterations"),
    (SUM, "unroll(j,2)", "j cannot be unrolled: it walks A2, B2 along with others"),
    (SUM, "vectorize(j)", "j cannot be vectorized: it walks A2, B2 along with others"),
    (SUM, "vectorize(i)", "i cannot be vectorized: it appends coordinates of j"),
    ("s = z[i] * z[i]", "vectorize(i)", "it adds up complex128 numbers"),
)


@pytest.mark.parametrize(("text", "schedule", "reason"), REFUSED)
def test_refusals_name_the_loop_and_what_helps(text: str, schedule: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        tp.evaluate(text, schedule=schedule, **used(text))
    assert reason in caught.value.message
    assert caught.value.hint


def test_what_lists_coordinates_takes_no_lanes() -> None:
    text, schedule = "C[i,k] = A[i,j] * B[k,j]", "reorder(i,j,k), vectorize(k)"
    with pytest.raises(ScheduleError, match="its iterations list the coordinates of k they write"):
        tp.evaluate(text, schedule=schedule, format=tp.CSR, A=A, B=B)


def test_a_level_with_one_coordinate_at_a_time_takes_no_loop() -> None:
    listed = tp.tensor(A, format=tp.COO(2))
    for command in ("vectorize(j)", "unroll(j,2)"):
        with pytest.raises(ScheduleError, match="A2 has one coordinate at a time"):
            tp.evaluate("C[i,j] = 2 * A[i,j]", schedule=command, format=tp.COO(2), A=listed)

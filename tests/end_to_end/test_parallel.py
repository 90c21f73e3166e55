"""Threads compute what one thread computes, however they share the work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import taco_py as tp
from taco_py.notation.parser import parse_assignment
from tests.corpus.formats import to_dense

RNG = np.random.default_rng(3)
ROWS, COLUMNS = 157, 89


def skewed() -> Any:
    """A matrix whose row 40 holds half of the entries; some rows are empty."""
    matrix = sp.random_array((ROWS, COLUMNS), density=0.01, rng=RNG, format="lil")
    matrix[40] = RNG.random(COLUMNS)
    return matrix.tocsr()


A = skewed()
X = RNG.random(COLUMNS)
B = RNG.random((COLUMNS, 7))
ENTRIES = "fuse(i,j,f), pos(f,p,A)"

SCATTERED = (
    ("y[i] = A[i,j] * x[j]", f"{ENTRIES}, split(p,c,r,16), parallelize(c,CPUThread,Atomics)"),
    ("y[i] = A[i,j] * x[j]", f"{ENTRIES}, divide(p,c,r,3), parallelize(c,CPUThread,Atomics)"),
    ("y[i] = A[i,j] * x[j]", "reorder(j,i), parallelize(j,CPUThread,Atomics)"),
    ("y[j] = A[i,j] * z[i]", "reorder(i,j), parallelize(i,CPUThread,Atomics)"),
    (
        "C[i,k] = A[i,j] * B[j,k]",
        f"reorder(i,j,k), {ENTRIES}, split(p,c,r,8), reorder(c,r,k), parallelize(c,CPUThread,Atomics)",
    ),
)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("text", "schedule"), SCATTERED)
def test_atomic_updates(text: str, schedule: str, threads: int) -> None:
    operands = {"A": A, "x": X, "B": B, "z": RNG.random(ROWS)}
    operands = {name: value for name, value in operands.items() if f"{name}[" in text}
    wanted = tp.evaluate_dense(
        parse_assignment(text), {n: to_dense(v) for n, v in operands.items()}
    )
    found = tp.evaluate(text, operands, schedule=schedule, threads=threads)
    assert_allclose(to_dense(found), wanted)


def test_only_rows_at_the_edges_of_tiles_are_atomic() -> None:
    schedule = f"{ENTRIES}, split(p,c,r,16), parallelize(c,CPUThread,Atomics)"
    text = tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule=schedule).source
    edge, plain = text.index("#pragma omp atomic"), text.index("} else {")
    assert edge < plain
    assert text.count("y_vals[i] += t;") == 2

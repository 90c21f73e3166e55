"""Which loop threads share where nobody says so and the outermost one has a single iteration."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

RNG = np.random.default_rng(8)
MATRIX = sp.random_array((2000, 300), density=0.05, rng=RNG, format="coo")
X = RNG.random((300, 16))
TEXT = "R[b,i,k] = T[b,i,j] * X[j,k]"


def batch(number: int) -> dict[str, Any]:
    coordinates = [np.full(MATRIX.nnz, number - 1), *MATRIX.coords]
    shape = (number, *MATRIX.shape)
    return {"T": tp.Tensor.from_coo(coordinates, MATRIX.data, shape, format="dds"), "X": X}


def told(text: str, operands: dict[str, Any], name: str, **options: Any) -> str:
    lines = tp.explain(text, operands, threads=2, **options).splitlines()
    return next(line.split(name)[1].strip() for line in lines if line.strip().startswith(name))


def test_the_first_loop_with_several_iterations_is_shared() -> None:
    assert told(TEXT, batch(1), "parallel").startswith("loop i: each iteration writes")
    assert told(TEXT, batch(9), "parallel").startswith("loop b: each iteration writes")
    for number in (1, 9):
        result = tp.evaluate(TEXT, batch(number), threads=2)
        np.testing.assert_allclose(result[number - 1], MATRIX @ X)


def test_threads_without_work_are_told_of() -> None:
    """A sparse result is made of ranges of its outermost index."""
    found = told(TEXT, batch(1), "threads", format="dss")
    assert found.endswith("; but b has 1, and 1 of them nothing to do")
    assert told(TEXT, batch(9), "threads", format="dss").endswith("iterations to share")


def test_threads_that_begin_anew_are_told_of() -> None:
    schedule = "parallelize(j,CPUThread,Ordered)"
    operands = {"A": MATRIX.tocsr(), "x": X[:, 0].copy()}
    found = told("y[i] = A[i,j] * x[j]", operands, "parallel", schedule=schedule)
    assert found.endswith("; threads begin anew for each i")


def test_temporaries_of_a_batch_of_one_are_shared_by_the_names_of_their_own() -> None:
    rng = np.random.default_rng(3)
    operands = [rng.integers(-3, 4, (1, 40, 40)) for _ in range(3)]
    text = "zab,zbc,zcd->zad"
    np.testing.assert_array_equal(tp.einsum(text, *operands), np.einsum(text, *operands))
    assert tp.explain(text, *operands).count("threads begin anew") == 2

"""What is generated for sums over blocks: each block read once, its rows held in registers."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp

SPMV, SPMM = "y[i] = A[i,j] * x[j]", "Y[i,k] = A[i,j] * X[j,k]"


def blocked(rows: int, columns: int, r: int, c: int, dtype: str = "float64") -> tuple[object, ...]:
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 4, (rows, columns)).astype(dtype)
    return tp.tensor(dense, format=tp.BSR((r, c))), dense


def test_rows_of_a_block_are_held_in_variables() -> None:
    kernel = tp.compile(SPMV, A=tp.BSR((3, 2)), x="d")
    source = kernel.source
    assert source.count("for (int64_t pA2") == 1
    assert "for (int64_t i1" not in source and "for (int64_t j1" not in source
    assert all(f"y_vals_{row} += " in source for row in range(3))
    assert "loop order  i0,j0,i1,j1" in kernel.explain()


def test_panels_hold_all_rows_of_a_block() -> None:
    kernel = tp.compile(SPMM, A=tp.BSR((3, 2)), X="dd")
    assert "for (int64_t j1" not in kernel.source
    assert "loop order  i0,j0,i1,j1,k" in kernel.explain()
    assert "panels of 3 rows of Y_vals" in kernel.explain()


SIZES = [(1, 2), (2, 1), (2, 2), (4, 4), (5, 3), (8, 8), (17, 2), (2, 17)]


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("blocks", SIZES, ids=str)
def test_products_with_blocks_of_any_size(blocks: tuple[int, int], dtype: str) -> None:
    made, dense = blocked(34, 34, *blocks, dtype)
    x = np.arange(34).astype(dtype)
    np.testing.assert_array_equal(tp.evaluate(SPMV, A=made, x=x), dense @ x)


@pytest.mark.parametrize("rows", [3, 7, 9, 13, 16])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products_with_any_number_of_columns(rows: int, dtype: str) -> None:
    """Tall blocks leave one register to a row: their panels do not overlap."""
    made, dense = blocked(3 * rows, 8, rows, 2, dtype)
    kernel = tp.compile(SPMM, {"A": tp.BSR((rows, 2)), "X": "dd"}, dtypes=dtype)
    for columns in (*range(1, 20), 31, 32, 33, 47, 65):
        X = np.arange(8 * columns).reshape(8, columns).astype(dtype) % 7
        np.testing.assert_array_equal(kernel(A=made, X=X), dense @ X)


def test_products_in_other_layouts_and_threads() -> None:
    made, dense = blocked(9, 8, 3, 2)
    X = np.arange(80.0).reshape(10, 8).T
    for threads in (1, 2):
        np.testing.assert_array_equal(tp.evaluate(SPMM, A=made, X=X, threads=threads), dense @ X)
    out = np.zeros((9, 30))[:, ::3]
    assert tp.evaluate(SPMM, A=made, X=X, out=out) is out
    np.testing.assert_array_equal(out, dense @ X)

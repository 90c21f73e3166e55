"""Sizes that no array may be as long as."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data import convert
from taco_py.data.kernels import KERNELS

pytestmark = pytest.mark.user_flags

N = 2**40
LEFT = sp.coo_array(([2.0, 3.0], ([0, 2], [3, 1])), shape=(5, 7))
RIGHT = sp.coo_array(([7.0, 8.0, 5.0], ([1, 1, 3], [5, N - 7, N - 1])), shape=(7, N))
PRODUCT = {(0, N - 1): 10.0, (2, 5): 21.0, (2, N - 7): 24.0}


def entries(tensor: tp.Tensor) -> dict[tuple[int, ...], float]:
    coords, values = tensor.to_coo()
    return dict(zip(map(tuple, coords.tolist()), values.tolist(), strict=True))


@pytest.mark.parametrize("form", [tp.DCSR, tp.COO(2)])
def test_rows_of_a_product_are_collected_in_a_table(form: tp.Format) -> None:
    text = "C[i,j] = A[i,k] * B[k,j]"
    left, right = tp.tensor(LEFT, format=form), tp.tensor(RIGHT, format=form)
    for _ in range(2):
        assert entries(tp.evaluate(text, A=left, B=right, format=tp.DCSR)) == PRODUCT
    assert "w[j]: hash" in tp.explain(text, A=left, B=right, format=tp.DCSR)
    for _ in range(2):
        found = tp.einsum("ik,kj->ij", LEFT, RIGHT).tocoo()
        assert entries(tp.tensor(found)) == PRODUCT


def test_a_sum_over_rows_in_several_kernels() -> None:
    whole = tp.evaluate("y[j] = B[k,j] * x[k]", B=tp.tensor(RIGHT), x=np.arange(7.0), format="s")
    assert entries(whole) == {(5,): 7.0, (N - 7,): 8.0, (N - 1,): 15.0}
    one = tp.tensor(sp.coo_array(([2.0], ([1], [3])), shape=(4, 5)))
    chain = tp.evaluate("D[h,j] = E[h,i] * A[i,k] * B[k,j]", E=one, A=LEFT[[0, 1, 1, 2, 2]],
                        B=tp.tensor(RIGHT), format=tp.DCSR)  # fmt: skip
    assert entries(chain) == {(1, 5): 42.0, (1, N - 7): 48.0}


def test_a_few_thousand_columns_are_a_row() -> None:
    a = sp.random_array((60, 5000), density=0.01, format="csr", rng=0)
    assert "w[j]: row" in tp.explain("C[i,j] = A[k,i] * A[k,j]", A=a)


def test_a_dense_result_of_that_size_says_what_would_do() -> None:
    kernel = tp.compile("C[i,j] = A[i,k] * B[k,j]", A=tp.DCSR, B=tp.DCSR, C=tp.DCSR,
                        index_dtype="int64")  # fmt: skip
    with pytest.raises(tp.OutOfMemoryError) as caught:
        kernel(A=tp.tensor(LEFT, format=tp.DCSR), B=tp.tensor(RIGHT, format=tp.DCSR))
    assert "by format=" not in str(caught.value)


def test_a_copy_too_large_for_memory_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("taco_py.data.convert.recopied", no_room)
    matrix = sp.random_array((9, 9), density=0.3, format="csc", rng=0)
    with pytest.raises(tp.OutOfMemoryError, match=r"for a copy of A in the format ds, .*found"):
        tp.evaluate("y[i] = sum(j, A[i,j] * x[j]) / x[i]", A=matrix, x=np.ones(9),
                    schedule="reorder(i,j)")  # fmt: skip


def test_a_copy_is_made_again_without_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, held = convert.recopied, []

    def little_room(*given: object) -> object:
        held.append(KERNELS.pool.spare_bytes)
        if held[-1]:
            raise MemoryError
        return usual(*given)

    monkeypatch.setattr("taco_py.data.convert.recopied", little_room)
    monkeypatch.setattr("codegen.runtime.memory.memory_pool.IDLE", 3600.0)
    matrix = sp.random_array((9, 9), density=0.3, format="csc", rng=0)
    text, x = "y[i] = sum(j, A[i,j] * x[j]) / x[i]", np.ones(9)
    KERNELS.pool.empty((3 * 2**20,), np.uint8)
    found = tp.evaluate(text, A=matrix, x=x, schedule="reorder(i,j)")
    np.testing.assert_allclose(found, matrix @ x)
    assert [bool(size) for size in held] == [True, False]


@pytest.mark.parametrize(
    ("target", "memory"), [("s", "the workspace w"), ("C[i,j]", "C in .* and")]
)
def test_workspaces_of_more_than_can_be_counted(target: str, memory: str) -> None:
    """2^64 elements are none where 64 bits count them."""
    coordinates = [np.array([0, 5]), np.array([1, 2**32 - 1])]
    a = tp.Tensor.from_coo(coordinates, np.ones(2), (2**32, 2**32), format=tp.DCSR)
    schedule = "precompute(A(i,j),{i,j},{iw,jw},w)"
    with pytest.raises(tp.OutOfMemoryError, match=f"Expected memory for {memory}"):
        tp.evaluate(f"{target} = A[i,j] * B[i,j]", A=a, B=a, schedule=schedule)

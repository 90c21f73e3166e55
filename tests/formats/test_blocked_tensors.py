"""Tensors in blocks: conversions in each direction, scipy's bsr arrays, what Tensors do besides."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp
from taco_py.data.tensors.remapped_tensor import RemappedTensor

DTYPES = [
    "bool", "int8", "int64", "uint16", "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SHAPES = [(6, 8), (7, 5), (0, 4), (5, 0), (1, 9), (12, 1)]
BLOCKS = [(3, 2), (1, 1), (4, 4), (1, 3)]
OTHERS = [
    "ds", "ds:1,0", "ss", "uq", "dd", "sd", "bsr(2,3)", "blocked(2,2,ss)", "blocked(1,3,ds:1,0)",
]  # fmt: skip


def matrix(shape: tuple[int, int], dtype: Any, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return ((rng.random(shape) < 0.3) * rng.integers(1, 9, shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("blocks", BLOCKS, ids=str)
def test_round_trips_are_exact(blocks: tuple[int, int], dtype: str) -> None:
    for shape in SHAPES:
        dense = matrix(shape, dtype)
        plain = tp.tensor(dense, format="ds")
        blocked = plain.to_format(tp.BSR(blocks))
        assert blocked.format == tp.BSR(blocks)
        assert blocked.shape == shape and blocked.dtype == plain.dtype
        np.testing.assert_array_equal(blocked.to_numpy(), dense)
        back = blocked.to_format("csr")
        for own, other in zip(plain.data.levels, back.data.levels, strict=True):
            for mine, theirs in ((own.pos, other.pos), (own.crd, other.crd)):
                assert (mine is None) == (theirs is None)
                np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_array_equal(plain.data.values, back.data.values)
        np.testing.assert_array_equal(tp.Tensor(blocked.data).to_numpy(), dense)


@pytest.mark.parametrize("other", OTHERS)
def test_every_format_into_blocks_and_back(other: str) -> None:
    for shape in SHAPES:
        dense = matrix(shape, "float64")
        into = tp.tensor(dense, format=other).to_format("bsr(3,2)")
        np.testing.assert_array_equal(into.to_numpy(), dense)
        out = into.to_format(other)
        assert str(out.format).lower() == other
        np.testing.assert_array_equal(out.to_numpy(), dense)


@given(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4), st.integers(1, 4), st.integers(0))
def test_blocks_hold_what_scipys_hold(m: int, n: int, r: int, c: int, seed: int) -> None:
    dense = matrix((m * r, n * c), "float64", seed)
    made = tp.tensor(sp.csr_array(dense), format=tp.BSR((r, c)))
    if m and n:
        own, theirs = made.to_scipy(), sp.csr_array(dense).tobsr((r, c))
        theirs.sort_indices()
        np.testing.assert_array_equal(own.indptr, theirs.indptr)
        np.testing.assert_array_equal(own.indices, theirs.indices)
        np.testing.assert_array_equal(own.data, theirs.data)


def test_duplicates_of_lists_are_added_up() -> None:
    listed = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 3], [1, 1, 3])), shape=(4, 4))
    blocked = tp.tensor(listed, format="bsr(2,2)")
    np.testing.assert_array_equal(blocked.to_numpy(), listed.toarray())
    assert blocked.value_count == 8


@pytest.mark.parametrize("family", ["array", "matrix"])
@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
def test_scipys_blocks_are_borrowed(family: str, wide: bool) -> None:
    A = getattr(sp, f"bsr_{family}")(matrix((6, 8), "float64"), blocksize=(3, 2))
    if wide:
        A.indptr, A.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    made = tp.tensor(A)
    assert isinstance(made, RemappedTensor)
    assert str(made.format) == "BSR(3,2)"
    data = made.stored.data
    assert data.levels[1].pos is A.indptr and data.levels[1].crd is A.indices
    assert np.shares_memory(data.values, A.data)
    back = made.to_scipy()
    assert back.format == "bsr" and back.indptr is A.indptr and np.shares_memory(back.data, A.data)
    assert type(made.to_scipy("bsr_matrix")) is sp.bsr_matrix
    assert type(made.to_scipy("csc_array")) is sp.csc_array
    np.testing.assert_array_equal(made.to_scipy("coo_array").toarray(), A.toarray())


def test_bad_blocks_of_scipys_are_refused() -> None:
    whole = sp.bsr_array(matrix((6, 8), "float64"), blocksize=(3, 2))
    changes = {
        "indptr to have 3 entries": {"indptr": whole.indptr[:-1]},
        "the number of blocks": {"indices": whole.indices[:-1]},
        "blocks as an array of shape": {"data": whole.data.reshape(-1)},
        "blocks that fill a matrix": {"data": np.zeros((len(whole.indices), 4, 2))},
        "Expected values of dtype": {"data": whole.data.astype(object)},
    }
    for message, change in changes.items():
        bad = copy.copy(whole)
        for name, array in change.items():
            setattr(bad, name, array)
        for use in (tp.tensor, product):
            with pytest.raises(tp.TacoError) as caught:
                use(bad)
            assert message in caught.value.message


def product(A: Any) -> Any:
    return tp.evaluate("y[i] = A[i,j] * x[j]", A=A, x=X)


X = np.ones(8)


def test_what_tensors_do_besides() -> None:
    dense = matrix((7, 5), "float64")
    made = tp.tensor(dense, format="bsr(3,2)")
    assert "format='BSR(3,2)'" in repr(made)
    assert "BSR(3,2)" in made._repr_html_()
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), made.copy()):
        assert other.format == made.format and other.nnz == made.nnz
        np.testing.assert_array_equal(other.to_numpy(), dense)
        assert not np.shares_memory(other.stored.data.values, made.stored.data.values)
    assert made.astype("float32").dtype == np.float32
    coordinates, values = made.to_coo()
    assert len(values) == np.count_nonzero(dense)
    np.testing.assert_array_equal(dense[tuple(coordinates.T)], values)
    assert made.to_dense().format.is_dense
    assert made.data is made.data and str(made.data.format) == "ds"
    assert tp.tensor(made) is made and made.to_format("bsr(3,2)") is made
    assert tp.tensor(made, index_dtype="int64").stored.data.levels[1].pos.dtype == np.int64


def test_arithmetic_of_tensors_in_blocks() -> None:
    dense, other = matrix((6, 8), "float64"), matrix((6, 8), "float64", 1)
    A, B = (tp.tensor(each, format="bsr(3,2)") for each in (dense, other))
    for made, expected in ((A + B, dense + other), (A * B, dense * other), (A - B, dense - other)):
        assert str(made.format) == "BSR(3,2)"
        np.testing.assert_array_equal(made.to_numpy(), expected)
    np.testing.assert_array_equal((A @ X).to_numpy(), dense @ X)
    np.testing.assert_array_equal(A.T.to_numpy(), dense.T)
    np.testing.assert_array_equal(A[2:5].to_numpy(), dense[2:5])
    np.testing.assert_array_equal(A.sum(0).to_numpy(), dense.sum(0))
    np.testing.assert_array_equal((2 * A).to_numpy(), 2 * dense)
    assert str((2 * A).format) == "BSR(3,2)"
    np.testing.assert_array_equal((A + 1).to_numpy(), dense + 1)
    np.testing.assert_array_equal((A > 2).to_numpy(), dense > 2)
    uneven = tp.tensor(dense[:5, :7], format="bsr(3,2)") * np.inf
    np.testing.assert_array_equal(uneven.stored.data.values[-1], 0.0)


def test_fill_values_of_blocks() -> None:
    dense = matrix((6, 8), "float64")
    made = tp.tensor(sp.csr_array(dense), format="bsr(3,2)", fill_value=-1.0)
    assert made.fill_value == -1.0
    expected = np.where(dense == 0, -1.0, dense)
    np.testing.assert_array_equal(made.to_numpy(), expected)
    assert made.to_format("ds").nnz == np.count_nonzero(dense)
    np.testing.assert_array_equal(tp.evaluate("y[i] = A[i,j] * x[j]", A=made, x=X), expected @ X)


def test_blocks_of_more_modes() -> None:
    rng = np.random.default_rng(3)
    dense = rng.random((4, 5, 6)) * (rng.random((4, 5, 6)) < 0.2)
    for form in ("blocked(2,1,4,sss)", "blocked(1,5,1,sss:2,0,1)"):
        made = tp.tensor(dense, format=form)
        np.testing.assert_array_equal(made.to_numpy(), dense)
        np.testing.assert_array_equal(made.to_format("csf").to_numpy(), dense)
        factors = rng.random((5, 3)), rng.random((6, 3))
        found = tp.evaluate(
            "Y[i,r] = T[i,j,k] * B[j,r] * C[k,r]", T=made, B=factors[0], C=factors[1]
        )
        found = found if isinstance(found, np.ndarray) else found.to_numpy()
        np.testing.assert_allclose(found, np.einsum("ijk,jr,kr->ir", dense, *factors))
        doubled = tp.evaluate("S[i,j,k] = 2 * T[i,j,k]", T=made)
        np.testing.assert_array_equal(doubled.to_numpy(), 2 * dense)


def test_wrong_orders_are_refused() -> None:
    with pytest.raises(tp.FormatError, match="a format of 3 modes for a tensor of order 3"):
        tp.tensor(np.zeros((2, 2, 2)), format="bsr(2,2)")
    with pytest.raises(tp.FormatError, match="a shape that blocks of 3 × 2 fill"):
        tp.tensor(np.eye(4), format="bsr(3,2)").to_scipy("bsr_array")

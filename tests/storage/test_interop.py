"""scipy and NumPy operands: what is borrowed, what is refused, and that nothing is modified."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from taco_py.data.interop.numpy_arrays import copy_reason, from_numpy
from taco_py.data.interop.scipy_arrays import (
    coordinate_order,
    from_scipy,
    is_scipy_sparse,
    to_scipy,
)
from taco_py.data.storage.check import check
from taco_py.data.storage.pack import pack_coo, to_dense
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError, StructureError
from taco_py.language.formats import COO, CSC, CSR, dense

ARRAY = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
FAMILIES = ("array", "matrix")
KINDS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


def make(kind: str, family: str, array: Any = ARRAY) -> Any:
    return getattr(sp, f"{kind}_{family}")(array)


def with_int64(A: Any) -> Any:
    if A.format == "coo":
        A.coords = tuple(c.astype(np.int64) for c in A.coords)
    else:
        A.indptr, A.indices = A.indptr.astype(np.int64), A.indices.astype(np.int64)
    return A


def state(A: Any) -> dict[str, Any]:
    """Every attribute of a scipy object, arrays as bytes."""
    return {
        name: value.tobytes() if isinstance(value, np.ndarray) else repr(value)
        for name, value in vars(A).items()
    }


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_scipy_class(kind: str, family: str) -> None:
    A = make(kind, family)
    before = state(A)
    data = from_scipy(A)
    check(data)
    assert data.format == {"csc": CSC, "coo": COO(2)}.get(kind, CSR)
    np.testing.assert_array_equal(to_dense(data), ARRAY)
    assert state(A) == before
    assert is_scipy_sparse(A)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
@pytest.mark.parametrize("kind", ["csr", "csc"])
def test_compressed_goes_in_and_out_without_a_copy(kind: str, wide: bool, family: str) -> None:
    A = make(kind, family)
    A = with_int64(A) if wide else A
    data = from_scipy(A)
    assert data.levels[1].pos is A.indptr
    assert data.levels[1].crd is A.indices
    assert data.values is A.data
    back = to_scipy(data, f"{kind}_{family}")
    assert type(back) is type(A)
    for name in ("indptr", "indices", "data"):
        assert np.shares_memory(getattr(back, name), getattr(A, name)), name
    np.testing.assert_array_equal(back.toarray(), ARRAY)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("wide", [False, True], ids=["int32", "int64"])
def test_coo_goes_in_and_out_without_a_copy(wide: bool, family: str) -> None:
    A = make("coo", family)
    A = with_int64(A) if wide else A
    data = from_scipy(A)
    assert all(level.crd is c for level, c in zip(data.levels, A.coords, strict=True))
    assert data.levels[0].pos is not None
    assert data.levels[0].pos.tolist() == [0, 4]
    back = to_scipy(data, f"coo_{family}")
    assert all(a is b for a, b in zip(back.coords, A.coords, strict=True))
    np.testing.assert_array_equal(back.toarray(), ARRAY)
    np.testing.assert_array_equal(back.tocsr().toarray(), ARRAY)


def test_coordinates_of_other_orders() -> None:
    cube = sp.coo_array((np.array([1.0, 2.0]), ([3, 1], [0, 1], [2, 2])), shape=(5, 2, 3))
    data = from_scipy(cube)
    assert data.levels[2].crd is cube.coords[2]
    np.testing.assert_array_equal(to_scipy(data, "coo_array").todense(), cube.todense())
    vector = sp.coo_array((np.array([1.0, 2.0]), (np.array([3, 1]),)), shape=(5,))
    np.testing.assert_array_equal(to_dense(from_scipy(vector)), [0, 2, 0, 1, 0])
    np.testing.assert_array_equal(to_dense(from_scipy(vector.tocsr())), [0, 2, 0, 1, 0])
    np.testing.assert_array_equal(
        to_scipy(from_scipy(vector), "coo_array").toarray(), vector.toarray()
    )


def test_flags_of_scipy_are_neither_believed_nor_set() -> None:
    """Someone may have written to the indices since scipy looked at them."""
    parts = (np.ones(3), np.array([2, 0, 0]), np.array([0, 2, 3]))
    A = sp.csr_array(parts, shape=(2, 3))
    assert (from_scipy(A).sorted, from_scipy(A).unique) == (None, None)
    A.sort_indices()
    assert A.has_canonical_format
    A.indices[:2] = [2, 0]
    assert (from_scipy(A).sorted, from_scipy(A).unique) == (None, None)
    assert coordinate_order(A.indptr, A.indices) == (False, None)
    A.indices[:2] = [0, 0]
    assert coordinate_order(A.indptr, A.indices) == (True, False)
    A.indices[:2] = [0, 2]
    assert coordinate_order(A.indptr, A.indices) == (True, True)


def test_scipys_canonical_coo_may_be_in_column_order() -> None:
    A = sp.coo_array((np.ones(3), ([1, 0, 0], [0, 1, 1])), shape=(2, 2))
    A.sum_duplicates()
    data = from_scipy(A)
    assert (data.sorted, data.unique) == (None, True)


def test_flags_are_handed_to_scipy() -> None:
    coords = [np.array([0, 1]), np.array([1, 0])]
    made = to_scipy(pack_coo(coords, np.ones(2), (2, 2), CSR), "csr_array")
    assert vars(made)["_has_sorted_indices"] is True
    assert vars(made)["_has_canonical_format"] is True
    assert to_scipy(pack_coo(coords, np.ones(2), (2, 2), COO(2)), "coo_array").has_canonical_format


def test_entries_beyond_the_last_position_do_not_count() -> None:
    A = sp.csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    A.indices, A.data = np.array([0, 1, 7, 7], np.int32), np.ones(4)
    data = from_scipy(A)
    assert data.nnz == 2
    check(data)


def test_index_arrays_of_two_types_are_unified() -> None:
    A = make("csr", "array")
    A.indptr = A.indptr.astype(np.int64)
    data = from_scipy(A)
    assert data.levels[1].pos is A.indptr
    assert data.levels[1].crd is not None
    assert data.levels[1].crd.dtype == np.int64


def test_values_a_kernel_cannot_read_in_place_are_copied() -> None:
    A = make("csr", "array")
    A.data = A.data.astype(">f8")
    data = from_scipy(A)
    assert data.values.dtype.isnative
    np.testing.assert_array_equal(to_dense(data), ARRAY)
    A.data = np.repeat(np.ones(4), 2)[::2]
    assert from_scipy(A).values.flags.c_contiguous


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"indptr": np.array([0, 2])}, "indptr to have 4 entries.*found 2"),
        ({"indptr": np.array([0, 2, 2, 9])}, "found 9 with 4 indices and 4 values"),
        (
            {"indices": np.array([1.0, 3.0, 0.0, 2.0])},
            "indices to be a vector of integers.*float64",
        ),
        ({"data": np.ones(2)}, "4 indices and 2 values"),
    ],
)
def test_lengths_that_contradict_each_other(changes: dict[str, Any], message: str) -> None:
    A = make("csr", "array")
    vars(A).update(changes)
    with pytest.raises(StructureError, match=message):
        from_scipy(A)


def test_what_is_no_sparse_array() -> None:
    with pytest.raises(OperandTypeError, match="found list"):
        from_scipy([1, 2])
    assert not is_scipy_sparse(ARRAY)
    A = make("csr", "array")
    A.data = A.data.astype(np.longdouble)
    with pytest.raises(OperandTypeError, match=r"float128|longdouble"):
        from_scipy(A)


def test_to_scipy_refuses_what_it_would_have_to_convert() -> None:
    data = from_scipy(make("csr", "array"))
    with pytest.raises(FormatError, match="stored as CSC for csc_array, found 'ds'"):
        to_scipy(data, "csc_array")
    with pytest.raises(FormatError, match="Expected one of csr_array"):
        to_scipy(data, "lil_array")
    cube = from_scipy(sp.coo_array((np.ones(1), ([0], [0], [0])), shape=(1, 1, 1)))
    with pytest.raises(FormatError, match="order 2 for coo_matrix, found order 3"):
        to_scipy(cube, "coo_matrix")


# --- NumPy --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [ARRAY, ARRAY.T, ARRAY[::-1, ::2], np.zeros((0, 3)), np.array(2.0), np.ones((2, 3, 4))],
    ids=lambda array: str(array.strides),
)
def test_arrays_of_any_strides_are_borrowed(array: Any) -> None:
    data = from_numpy(array)
    assert data.values is array
    assert data.format == dense(array.ndim)
    assert data.shape == array.shape


def test_matrices_and_numbers() -> None:
    matrix = np.asmatrix(ARRAY)
    assert type(from_numpy(matrix).values) is np.ndarray
    assert np.shares_memory(from_numpy(matrix).values, matrix)
    dtypes = [from_numpy(x).dtype.name for x in (True, 1, 1.5, 2j, np.float32(1))]
    assert dtypes == ["bool", "int64", "float64", "complex128", "float32"]


PACKED = np.zeros(3, dtype=np.dtype([("a", "i1"), ("b", "f8")]))["b"]
WIDE = np.zeros(3, dtype=np.dtype([("a", "c16"), ("b", "f8")]))["a"]


@pytest.mark.parametrize(
    ("array", "reason"),
    [
        (np.arange(3, dtype=">i4"), "byte-swapped"),
        (PACKED, "misaligned"),
        (WIDE, "strides that are no multiple of the element size"),
        (ARRAY[:, ::2], None),
    ],
    ids=["swapped", "misaligned", "strides", "strided"],
)
def test_what_is_copied_and_why(array: Any, reason: str | None) -> None:
    assert copy_reason(array) == reason
    data = from_numpy(array)
    assert np.shares_memory(data.values, array) == (reason is None)
    assert copy_reason(data.values) is None
    np.testing.assert_array_equal(data.values, array)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.array([None]), "object"),
        (np.array(["a"]), "<U1"),
        (np.ones(2, np.longdouble), "float128|longdouble"),
        (np.ones(2, "M8[s]"), "datetime64"),
        (2**100, "64 bits"),
        ("text", "found str"),
        (None, "found NoneType"),
        (np.ma.masked_array(np.ones(2), [True, False]), "MaskedArray"),
    ],
    ids=str,
)
def test_unsupported_operands_are_named(value: Any, found: str) -> None:
    with pytest.raises(OperandTypeError, match=found) as caught:
        from_numpy(value)
    assert caught.value.hint is not None


def test_nan_survives() -> None:
    assert math.isnan(to_dense(from_scipy(sp.csr_array(np.array([[math.nan]]))))[0, 0])

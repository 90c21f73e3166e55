"""Conversion between all pairs of formats, what it shares, and diagonals."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

from taco_py.data.convert import convert, describe, diagonal, diagonal_format
from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.interop.scipy_arrays import from_scipy, to_scipy
from taco_py.data.storage.check import check
from taco_py.data.storage.pack import canonical, is_sorted, is_unique, pack_coo, to_dense
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import DimensionError, FormatError, OperandError
from taco_py.language.formats import COO, CSC, CSF, CSR, DCSR, Format, dense
from tests.storage.test_pack import FORMATS, coordinate_lists, raw_coo, scatter, snapshot


def arrays_of(data: TensorData) -> list[Array]:
    found = [a for level in data.levels for a in (level.pos, level.crd) if a is not None]
    return [*found, data.values]


def assert_truthful(data: TensorData) -> None:
    """What the flags claim is so."""
    assert not data.sorted or is_sorted(replace(data, sorted=None))
    assert not data.unique or is_unique(replace(data, unique=None))


@pytest.mark.parametrize("source", FORMATS[2], ids=str)
def test_every_pair_of_matrix_formats(source: Format) -> None:
    rng = np.random.default_rng(3)
    coords = [rng.integers(0, size, 7) for size in (3, 5)]
    values = rng.integers(1, 5, 7).astype(float)
    expected = scatter(coords, values, (3, 5))
    known = pack_coo(coords, values, (3, 5), source)
    for data in (known, replace(known, sorted=None, unique=None)):
        for target in FORMATS[2]:
            before = snapshot(*arrays_of(data))
            made = convert(data, target)
            assert made.format == target
            check(made)
            assert_truthful(made)
            np.testing.assert_array_equal(to_dense(made), expected)
            assert snapshot(*arrays_of(data)) == before


@given(coordinate_lists((1, 2, 3)), st.data())
def test_random_pairs(entries: Any, data: st.DataObject) -> None:
    coords, values, shape = entries
    source, target = (data.draw(st.sampled_from(FORMATS[len(shape)])) for _ in range(2))
    made = convert(pack_coo(coords, values, shape, source), target)
    check(made)
    assert_truthful(made)
    np.testing.assert_array_equal(to_dense(made), scatter(coords, values, shape))


@given(coordinate_lists((2, 3)), st.data())
def test_unsorted_coordinates_with_duplicates(entries: Any, data: st.DataObject) -> None:
    coords, values, shape = entries
    made = convert(raw_coo(coords, values, shape), data.draw(st.sampled_from(FORMATS[len(shape)])))
    check(made)
    assert_truthful(made)
    np.testing.assert_array_equal(to_dense(made), scatter(coords, values, shape))


UNSORTED = sp.csr_array(
    (np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 3, 4])), shape=(3, 3)
)


@pytest.mark.parametrize("target", FORMATS[2], ids=str)
def test_unsorted_csr_with_duplicates(target: Format) -> None:
    data = from_scipy(UNSORTED)
    before = snapshot(*arrays_of(data))
    made = convert(data, target)
    check(made)
    assert_truthful(made)
    np.testing.assert_array_equal(to_dense(made), UNSORTED.toarray())
    np.testing.assert_array_equal(to_dense(canonical(made)), UNSORTED.toarray())
    assert snapshot(*arrays_of(data)) == before


def shared(a: TensorData, b: TensorData) -> bool:
    return np.shares_memory(a.values, b.values)


def test_what_is_the_same_storage_is_not_copied() -> None:
    csr = pack_coo([np.array([0, 2]), np.array([1, 0])], np.ones(2), (3, 3), CSR)
    assert convert(csr, CSR) is csr
    dcsr = convert(csr, DCSR)
    assert shared(csr, dcsr)
    assert shared(convert(dcsr, CSR), csr)
    assert shared(convert(csr, COO(2)), csr)
    assert shared(convert(csr, Format.parse("du")), csr)
    array = from_numpy(np.arange(6.0).reshape(2, 3))
    assert shared(convert(array, Format.parse("dd:1,0")), array)


def test_a_level_becomes_unique_only_when_it_is() -> None:
    data = raw_coo([np.array([0, 0]), np.array([1, 1])], np.ones(2), (1, 2))
    assert convert(data, Format.parse("uc")).nnz == 1
    single = replace(raw_coo([np.array([0, 0]), np.array([1, 0])], np.ones(2), (1, 2)), unique=True)
    assert shared(convert(single, Format.parse("uc")), single)


def test_zeros_of_dense_levels_are_no_pattern_but_stored_zeros_are() -> None:
    array = from_numpy(np.array([[0.0, 1.0], [0.0, np.nan]]))
    assert convert(array, CSR).nnz == 2
    padded = pack_coo([np.array([0]), np.array([1])], np.ones(1), (2, 2), Format.parse("sd"))
    assert padded.nnz == 2
    assert convert(padded, CSF(2)).nnz == 1
    stored = pack_coo([np.array([0]), np.array([1])], np.zeros(1), (2, 2), CSR)
    assert [convert(stored, f).nnz for f in (CSC, COO(2), DCSR, CSF(2))] == [1, 1, 1, 1]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_index_types_are_kept(dtype: Any) -> None:
    data = pack_coo([np.array([0, 2]), np.array([1, 0])], np.ones(2), (3, 3), CSR, dtype)
    for target in FORMATS[2]:
        made = convert(data, target)
        assert all(array.dtype == dtype for array in arrays_of(made)[:-1]), str(target)


def test_transposition_sorts() -> None:
    made = convert(from_scipy(UNSORTED), CSC)
    assert made.sorted is True
    np.testing.assert_array_equal(to_scipy(made, "csc_array").toarray(), UNSORTED.toarray())


def test_orders_must_agree() -> None:
    with pytest.raises(FormatError, match="a format of 2 levels"):
        convert(from_scipy(UNSORTED), CSF(3))


def test_formats_that_differ_in_level_order_alone_store_alike() -> None:
    unordered = Format((CSR.levels[0], replace(CSR.levels[1], ordered=False)), CSR.mode_order)
    data = replace(from_scipy(UNSORTED), format=unordered)
    assert convert(data, CSR).levels is data.levels
    made = convert(data, CSC)
    assert made.format == CSC
    assert to_scipy(data, "csr_array").indices is not None


def test_describe() -> None:
    assert describe(CSR, CSC) == "CSR -> CSC: transposed by counting sort, O(rows + nnz)"
    assert describe(CSR, CSR).endswith("no copy")
    assert describe(dense(2), CSR).startswith("'dd' -> CSR: nonzeros")
    assert describe(COO(3), CSF(3)).startswith("COO(3) -> 'sss': through coordinates")
    assert "empty rows" in describe(CSR, DCSR)


# --- diagonals ----------------------------------------------------------------------------------

CASES = ["ii", "iij", "iji", "jii", "iii", "ij", "iijj"]


@pytest.mark.parametrize("labels", CASES)
@pytest.mark.parametrize("kind", ["dense", "coo", "csf", "dense first", "backwards", "padded"])
def test_diagonal_is_what_einsum_takes(labels: str, kind: str) -> None:
    order = len(labels)
    format = {
        "dense": dense(order),
        "coo": COO(order),
        "csf": CSF(order),
        "dense first": Format.parse("d" + "s" * (order - 1)),
        "backwards": Format.parse("s" * order + ":" + ",".join(map(str, range(order)[::-1]))),
        "padded": Format.parse("s" * (order - 1) + "d"),
    }[kind]
    rng = np.random.default_rng(1)
    array = rng.integers(0, 2, (3,) * order) * rng.integers(1, 9, (3,) * order)
    made = diagonal(convert(from_numpy(array), format), labels)
    check(made)
    assert made.format == diagonal_format(format, labels)
    kept = "".join(dict.fromkeys(labels))
    np.testing.assert_array_equal(to_dense(made), np.einsum(f"{labels}->{kept}", array))


def test_diagonal_of_an_array_is_a_view() -> None:
    array = np.arange(9.0).reshape(3, 3)
    assert np.shares_memory(diagonal(from_numpy(array), "ii").values, array)


def test_diagonal_formats() -> None:
    assert str(diagonal_format(CSR, "ii")) == "s"
    assert str(diagonal_format(Format.parse("dds"), "iij")) == "ds"
    assert str(diagonal_format(Format.parse("dss:2,0,1"), ("i", "i", "j"))) == "ds:1,0"


def test_diagonal_refuses() -> None:
    data = from_numpy(np.ones((2, 3)))
    with pytest.raises(DimensionError, match=r"modes 0 and 1.*'i', found 2 and 3"):
        diagonal(data, "ii")
    with pytest.raises(OperandError, match="2 modes, found 1"):
        diagonal(data, "i")


@pytest.mark.parametrize("target", (DCSR, Format.parse("ss:1,0")), ids=str)
@pytest.mark.parametrize("repeats", (False, True))
def test_coordinate_lists_are_counted_into_rows_without_empty_ones(
    target: Format, repeats: bool
) -> None:
    """As sorting them makes them, where most rows have entries; of few entries they are sorted."""
    rng = np.random.default_rng(4)
    coords = [rng.integers(0, size, 3000) for size in (900, 700)]
    if repeats:
        coords = [np.concatenate([c, c[:50]]) for c in coords]
    values = rng.random(len(coords[0]))
    source = raw_coo(coords, values, (900, 700))
    made = convert(source, target)
    check(made)
    assert_truthful(made)
    np.testing.assert_allclose(to_dense(made), scatter(coords, values, (900, 700)))
    assert "distributed over rows by counting sorts" in describe(COO(2), target)
    few = raw_coo([c[:5] for c in coords], values[:5], (900, 700))
    np.testing.assert_allclose(to_dense(convert(few, target)), to_dense(few))

"""Packing, unpacking and canonical form against NumPy's scatter-add, over every legal format."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from taco_py.data.storage.check import check
from taco_py.data.storage.coordinates import sort_and_sum
from taco_py.data.storage.pack import (
    canonical,
    is_sorted,
    is_unique,
    pack_coo,
    to_dense,
    unpack,
)
from taco_py.data.storage.sizes import position_count, with_index_dtype
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import (
    FormatError,
    IndexOverflowError,
    OperandTypeError,
    OutOfMemoryError,
)
from taco_py.language.formats import COO, CSC, CSF, CSR, LETTERS, Format


def formats(order: int) -> list[Format]:
    """Every legal format of an order, in every mode order."""
    found = []
    for letters in itertools.product("dsucq", repeat=order):
        for modes in itertools.permutations(range(order)):
            try:
                found.append(Format(tuple(LETTERS[letter] for letter in letters), modes))
            except FormatError:
                continue
    return found


def holds_any_pattern(format: Format) -> bool:
    """Whether no unique level lies above a singleton."""
    pairs = itertools.pairwise(format.levels)
    return not any(above.unique and below.branchless for above, below in pairs)


def snapshot(*arrays: np.ndarray[Any, Any]) -> list[bytes]:
    return [array.tobytes() for array in arrays]


FORMATS = {order: [f for f in formats(order) if holds_any_pattern(f)] for order in range(4)}


@st.composite
def coordinate_lists(draw: st.DrawFn, orders: tuple[int, ...] = (0, 1, 2, 3)) -> Any:
    """(coords, values, shape): unsorted, with duplicates; sizes and counts may be 0."""
    shape = tuple(
        draw(st.lists(st.integers(0, 4), min_size=(n := draw(st.sampled_from(orders))), max_size=n))
    )
    count = 0 if 0 in shape else draw(st.integers(0, 12))
    coords = [
        np.array(draw(st.lists(st.integers(0, size - 1), min_size=count, max_size=count)), np.int64)
        if count
        else np.zeros(0, np.int64)
        for size in shape
    ]
    values = np.array(draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count)), float)
    return coords, values, shape


def scatter(coords: Any, values: Any, shape: tuple[int, ...]) -> Any:
    """The reference."""
    if not shape:
        return values.sum()
    out = np.zeros(shape, values.dtype)
    np.add.at(out, tuple(coords), values)
    return out


@given(coordinate_lists(), st.data())
def test_pack_holds_the_tensor_in_every_format(entries: Any, data: st.DataObject) -> None:
    coords, values, shape = entries
    format = data.draw(st.sampled_from(FORMATS[len(shape)]))
    before = snapshot(*coords, values)
    packed = pack_coo(coords, values, shape, format)
    check(packed)
    assert packed.format == format
    np.testing.assert_array_equal(to_dense(packed), scatter(coords, values, shape))
    again = pack_coo(*unpack(packed), shape, format)
    np.testing.assert_array_equal(to_dense(again), to_dense(packed))
    assert snapshot(*coords, values) == before


@given(coordinate_lists((1, 2, 3)), st.data())
def test_packed_tensors_are_found_sorted_and_unique(entries: Any, data: st.DataObject) -> None:
    coords, values, shape = entries
    packed = pack_coo(coords, values, shape, data.draw(st.sampled_from(FORMATS[len(shape)])))
    assert canonical(packed) is packed
    unknown = replace(packed, sorted=None, unique=None)
    assert is_sorted(unknown)
    assert is_unique(unknown)
    found = canonical(unknown)
    assert found.levels is unknown.levels
    assert (found.sorted, found.unique) == (True, True)


def raw_coo(coords: Any, values: Any, shape: tuple[int, ...]) -> TensorData:
    """COO around arrays as they come."""
    levels = [LevelArrays(crd=column) for column in coords]
    levels[0] = LevelArrays(np.array([0, len(values)]), coords[0])
    return TensorData(COO(len(shape)), shape, tuple(levels), values)


@given(coordinate_lists((1, 2, 3)))
def test_canonical_of_any_coordinate_list(entries: Any) -> None:
    coords, values, shape = entries
    raw = raw_coo(coords, values, shape)
    tuples = list(zip(*(column.tolist() for column in coords), strict=True))
    assert is_sorted(raw) == (tuples == sorted(tuples))
    assert is_unique(raw) == (len(set(tuples)) == len(tuples))
    before = snapshot(*coords, values)
    made = canonical(raw)
    assert snapshot(*coords, values) == before
    assert is_sorted(replace(made, sorted=None))
    assert is_unique(replace(made, unique=None))
    np.testing.assert_array_equal(to_dense(made), scatter(coords, values, shape))
    stored = unpack(made)[0]
    assert list(zip(*(c.tolist() for c in stored), strict=True)) == sorted(set(tuples))


@pytest.mark.parametrize("format", [CSR, CSC], ids=str)
@pytest.mark.parametrize("name", ["bool", "int8", "float64", "complex64"])
@pytest.mark.parametrize("indices", [[2, 0, 1], [0, 0, 1], [2, 2, 2]])
def test_canonical_of_csr(indices: list[int], name: str, format: Format) -> None:
    pos, crd = np.array([0, 3, 3], np.int64), np.array(indices, np.int64)
    levels = (LevelArrays(), LevelArrays(pos, crd))
    shape = (2, 3) if format == CSR else (3, 2)
    data = TensorData(format, shape, levels, np.array([1, 2, 4]).astype(name))
    before = snapshot(pos, crd, data.values)
    assert is_sorted(data) == (indices == sorted(indices))
    assert is_unique(data) == (len(set(indices)) == 3)
    made = canonical(data)
    check(made)
    assert snapshot(pos, crd, data.values) == before
    assert made.dtype == data.dtype
    assert made.levels[1].crd is not None
    assert made.levels[1].crd.dtype == np.int64
    assert made.levels[1].crd.tolist() == sorted(set(indices))
    np.testing.assert_array_equal(to_dense(made), to_dense(data))


def test_csr_rows_may_start_anywhere() -> None:
    """The last column of one row and the first of the next are no siblings."""
    levels = (
        LevelArrays(),
        LevelArrays(np.array([0, 2, 2, 4], np.int32), np.array([1, 2, 0, 2], np.int32)),
    )
    data = TensorData(CSR, (3, 3), levels, np.ones(4))
    assert is_sorted(data)
    assert is_unique(data)
    assert canonical(data).values is data.values


@given(
    rows=st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=6), data=st.data()
)
def test_rows_in_any_order_are_unique_or_not(rows: list[list[int]], data: st.DataObject) -> None:
    format, columns = data.draw(st.sampled_from([(CSR, 6), (CSC, 6), (CSR, 10**9)]))
    pos = np.cumsum([0, *map(len, rows)]).astype(data.draw(st.sampled_from([np.int32, np.int64])))
    crd = np.array(
        [c for row in rows for c in row], data.draw(st.sampled_from([np.int32, np.int64]))
    )
    shape = (len(rows), columns) if format == CSR else (columns, len(rows))
    made = TensorData(format, shape, (LevelArrays(), LevelArrays(pos, crd)), np.ones(len(crd)))
    assert is_unique(made) == all(len(set(row)) == len(row) for row in rows)


def test_duplicates_under_different_parents_are_found() -> None:
    """A root coordinate that occurs twice: (0,1) is stored under both."""
    levels = (
        LevelArrays(np.array([0, 2]), np.array([0, 0])),
        LevelArrays(np.array([0, 1, 2]), np.array([1, 1])),
    )
    data = TensorData(Format.parse("us"), (1, 2), levels, np.array([2.0, 3.0]))
    assert is_sorted(data)
    assert not is_unique(data)
    assert canonical(data).values.tolist() == [5.0]


def test_the_arrays_of_csr_and_csc() -> None:
    coords, values = [np.array([1, 0, 1]), np.array([2, 2, 0])], np.array([5.0, 6.0, 7.0])
    csr = pack_coo(coords, values, (3, 3), CSR).levels[1]
    assert csr.pos is not None and csr.crd is not None
    assert (csr.pos.tolist(), csr.crd.tolist()) == ([0, 1, 3, 3], [2, 0, 2])
    csc = pack_coo(coords, values, (3, 3), CSC).levels[1]
    assert csc.pos is not None and csc.crd is not None
    assert (csc.pos.tolist(), csc.crd.tolist()) == ([0, 1, 1, 3], [1, 0, 1])


def test_the_arrays_of_csf() -> None:
    coords = np.array([[0, 1, 1], [0, 1, 3], [2, 0, 0]])
    data = pack_coo(coords, np.array([1.0, 2.0, 3.0]), (4, 2, 4), CSF(3))
    arrays = [(level.pos, level.crd) for level in data.levels]
    assert [[a.tolist() for a in pair if a is not None] for pair in arrays] == [
        [[0, 2], [0, 2]],
        [[0, 1, 2], [1, 0]],
        [[0, 2, 3], [1, 3, 0]],
    ]


def test_dense_levels_below_are_padded() -> None:
    data = pack_coo([np.array([2]), np.array([1])], np.array([7.0]), (4, 3), Format.parse("sd"))
    assert data.values.tolist() == [0, 7, 0]
    coords, values = unpack(data)
    assert (coords[1].tolist(), values.tolist()) == ([0, 1, 2], [0, 7, 0])
    coords, values = unpack(data, drop_fill=True)
    assert (coords[0].tolist(), coords[1].tolist(), values.tolist()) == ([2], [1], [7])


def test_stored_zeros_stay_in_sparse_formats() -> None:
    data = pack_coo([np.array([2, 1])], np.array([0.0, 1.0]), (4,), CSF(1))
    assert unpack(data, drop_fill=True)[1].tolist() == [1, 0]


def test_all_dense_formats_have_the_tensors_own_mode_order() -> None:
    data = pack_coo([np.array([1]), np.array([2])], np.array([7.0]), (2, 3), Format.parse("dd:1,0"))
    assert data.values.shape == (2, 3)
    assert data.values.flags.f_contiguous
    assert data.values[1, 2] == 7


@pytest.mark.parametrize("name", ["bool", "int8", "uint64", "float32", "complex64"])
@pytest.mark.parametrize("letters", ["ds", "dd", "sd"])
def test_duplicates_sum_in_the_dtypes_own_arithmetic(name: str, letters: str) -> None:
    values = np.array([100, 100, 1]).astype(name)
    coords = [np.array([1, 1, 0]), np.array([0, 0, 1])]
    data = pack_coo(coords, values, (2, 2), Format.parse(letters))
    assert data.dtype == values.dtype
    assert to_dense(data)[1, 0] == (values[:1] + values[1:2])[0]


def test_a_format_that_cannot_hold_the_pattern_is_refused() -> None:
    coords = [np.array([0, 0]), np.array([0, 1])]
    with pytest.raises(FormatError, match=r"at most one entry.*\n.*'uc'"):
        pack_coo(coords, np.ones(2), (2, 2), Format.parse("sc"))
    one = pack_coo([c[:1] for c in coords], np.ones(1), (2, 2), Format.parse("sc"))
    assert to_dense(one)[0, 0] == 1


HUGE = 2**40


@pytest.mark.parametrize(
    "shape",
    [(5, 5), (HUGE, HUGE), (2**62, 2**62, 3), (2**31, 4), (2**20, 2**20, 2**20, 2**20)],
    ids=str,
)
def test_every_way_to_sort(shape: tuple[int, ...]) -> None:
    """Keys with the index packed in, keys alone, several keys: the same result."""
    rng = np.random.default_rng(0)
    ends = [np.array([0, 1, size // 2, size - 1]) for size in shape]
    coords = [rng.choice(end, 60) for end in ends]
    values = rng.integers(1, 9, 60).astype(float)
    expected: dict[tuple[int, ...], float] = {}
    for key, value in zip(zip(*(c.tolist() for c in coords), strict=True), values, strict=True):
        expected[key] = expected.get(key, 0) + value
    columns, summed = sort_and_sum(coords, values, shape)
    found = dict(zip(zip(*(c.tolist() for c in columns), strict=True), summed, strict=True))
    assert found == expected
    assert list(found) == sorted(expected)
    assert not is_unique(raw_coo(coords, values, shape))


def test_duplicates_are_summed_in_their_order() -> None:
    values = np.array([1e16, 1.0, -1e16, 5.0])
    _, summed = sort_and_sum([np.array([1, 1, 1, 0])], values, [2])
    assert summed.tolist() == [5.0, (1e16 + 1.0) - 1e16]


def test_index_dtype_follows_sizes_or_wish() -> None:
    def crd_dtype(shape: tuple[int, ...], asked: Any = None) -> Any:
        crd = pack_coo([np.array([1])], np.ones(1), shape, CSF(1), asked).levels[0].crd
        assert crd is not None
        return crd.dtype

    assert crd_dtype((2**31 - 1,)) == np.int32
    assert crd_dtype((2**31,)) == np.int64
    assert crd_dtype((5,), np.int64) == np.int64
    with pytest.raises(IndexOverflowError, match="int32 holds, found 2147483648"):
        crd_dtype((2**31,), np.int32)
    with pytest.raises(OperandTypeError, match="int32 or int64, found int16"):
        crd_dtype((5,), np.int16)


def test_index_arrays_of_another_type() -> None:
    data = pack_coo([np.array([1]), np.array([0])], np.ones(1), (2, 2), CSR)
    wide = with_index_dtype(data, np.int64)
    assert {a.dtype for a in (wide.levels[1].pos, wide.levels[1].crd) if a is not None} == {
        np.dtype(np.int64)
    }
    assert with_index_dtype(data, np.int32) is data
    large = pack_coo([np.array([1])], np.ones(1), (2**31,), CSF(1))
    with pytest.raises(IndexOverflowError):
        with_index_dtype(large, np.int32)


def test_dense_levels_no_memory_can_hold_are_refused() -> None:
    with pytest.raises(IndexOverflowError, match=r"1099511627776.*in the format dd") as caught:
        pack_coo([np.array([1]), np.array([1])], np.ones(1), (HUGE, HUGE), Format.parse("dd"))
    error = caught.value
    assert isinstance(error, OutOfMemoryError)
    assert error.wanted == 8 * HUGE**2 and error.free
    with pytest.raises(OutOfMemoryError, match=r"2\^62 positions") as other:
        position_count((HUGE, HUGE))
    assert other.value.wanted == HUGE**2 and other.value.free


def test_scalars() -> None:
    data = pack_coo((), np.array([2.0, 3.0]), (), Format((), ()))
    assert data.values.shape == ()
    assert float(data.values) == 5.0
    coords, values = unpack(data)
    assert (coords, values.tolist()) == ((), [5.0])

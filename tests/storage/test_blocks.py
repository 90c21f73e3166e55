"""Dense arrays into formats with dense inner levels: as packing their nonzeros, but by blocks."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

from taco_py.data.convert import convert, describe
from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.storage import nonzero
from taco_py.data.storage.blocks import blocks_with_entries, pack_array
from taco_py.data.storage.check import check
from taco_py.data.storage.coordinates import unravel
from taco_py.data.storage.nonzero import any_nonzero, are_nonzero, nonzero_places
from taco_py.data.storage.pack import pack_coo, to_dense, unpack
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.diagnostics.errors import FormatError
from taco_py.language.formats import LETTERS, Format, dense

REALS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint64", "float32", "float64"]
DTYPES = [*REALS, "complex64", "complex128"]
LAYOUTS = ("C", "F", "turned", "strided", "backwards", "broadcast")


@st.composite
def sparse_formats(draw: st.DrawFn, order: int) -> Format:
    """Formats that store coordinates, in any order of the modes."""
    letters = draw(st.lists(st.sampled_from("dsucq"), min_size=order, max_size=order))
    modes = draw(st.permutations(range(order)))
    try:
        format = Format(tuple(LETTERS[letter] for letter in letters), tuple(modes))
    except FormatError:
        assume(False)
        raise
    assume(not format.is_dense)
    return format


@st.composite
def arrays(draw: st.DrawFn, order: int) -> Array:
    """Arrays most of whose outer blocks are zero, or none, in several layouts."""
    shape = draw(st.lists(st.integers(0, 4), min_size=order, max_size=order))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    full = rng.integers(0, 2, shape) if draw(st.booleans()) else rng.integers(1, 9, shape)
    outer = draw(st.integers(0, order))
    absent = rng.random(shape[:outer]) < draw(st.sampled_from((0.0, 0.5, 0.9)))
    full[absent] = 0
    array = full.astype(dtype)
    if dtype.kind in "fc" and array.size:
        array.flat[rng.integers(0, array.size)] = np.nan
    return laid_out(array, draw(st.sampled_from(LAYOUTS)))


def laid_out(array: Array, layout: str) -> Array:
    """The same elements in another order in memory; broadcast: other ones."""
    match layout:
        case "F":
            return np.asfortranarray(array)
        case "turned":
            return np.moveaxis(np.moveaxis(array, 0, -1).copy(), -1, 0)
        case "strided":
            wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            wide[..., ::2] = array
            return wide[..., ::2]
        case "backwards":
            return array[::-1].copy()[::-1]
        case "broadcast" if array.shape[0]:
            return np.broadcast_to(array[:1], array.shape)
    return array


def as_before(array: Array, format: Format) -> TensorData:
    """The nonzeros, one at a time."""
    coords = np.nonzero(array)
    return pack_coo(coords, array[coords], array.shape, format)


def assert_same(found: TensorData, expected: TensorData) -> None:
    """Equal arrays of equal types, and the same is known of them."""
    assert (found.format, found.shape) == (expected.format, expected.shape)
    assert (found.sorted, found.unique) == (expected.sorted, expected.unique)
    pairs = [(found.values, expected.values)]
    for one, other in zip(found.levels, expected.levels, strict=True):
        pairs += [(one.pos, other.pos), (one.crd, other.crd)]
    for a, b in pairs:
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            assert a.dtype == b.dtype
            assert a.flags.c_contiguous and a.ndim == 1
            np.testing.assert_array_equal(a, b)


@given(st.data())
def test_as_packing_the_nonzeros(data: st.DataObject) -> None:
    order = data.draw(st.integers(1, 5))
    array, format = data.draw(arrays(order)), data.draw(sparse_formats(order))
    before = array.tobytes()
    try:
        expected = as_before(array, format)
    except FormatError:
        with pytest.raises(FormatError, match="at most one entry"):
            convert(from_numpy(array), format)
        return
    made = convert(from_numpy(array), format)
    check(made)
    assert_same(made, expected)
    assert not np.shares_memory(made.values, array)
    assert made.values.flags.writeable or not made.values.size
    assert_same(pack_array(array, format), expected)
    assert array.tobytes() == before


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 2, 3, 8, 12, 64, 257, 400])
def test_rows_that_are_not_zero(dtype: str, width: int) -> None:
    rng = np.random.default_rng(width)
    rows = np.zeros((300, width), dtype)
    for row in range(0, 300, 2):
        rows[row, rng.integers(0, width)] = 1
    np.testing.assert_array_equal(are_nonzero(rows), rows.any(axis=1))
    np.testing.assert_array_equal(any_nonzero(rows[:0]), rows[:0].any(axis=1))
    rows[:, 0] = 1  # so that few are left
    rows[::7, 0] = 0
    np.testing.assert_array_equal(are_nonzero(rows), rows.any(axis=1))


def test_rows_are_compared_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonzero, "PIECE", 10)
    rows = np.random.default_rng(0).integers(0, 5, (31, 4)) // 4
    np.testing.assert_array_equal(any_nonzero(rows), rows.any(axis=1))


def test_the_smallest_numbers_and_nan_are_not_zero_but_minus_zero_is() -> None:
    row = np.array([0.0, -0.0, 5e-324, np.nan, np.inf])
    assert nonzero_places(row).tolist() == [2, 3, 4]
    pairs = np.array([complex(a, b) for a in row for b in row])
    assert nonzero_places(pairs).tolist() == np.flatnonzero(pairs).tolist()
    made = convert(from_numpy(np.array([[-0.0, 0.0], [-0.0, 1.0]])), Format.parse("sd"))
    assert made.levels[0].crd is not None and made.levels[0].crd.tolist() == [1]
    assert np.signbit(made.values).tolist() == [True, False]  # stored as it is


@given(st.lists(st.integers(0, 5), max_size=4))
def test_unravel(sizes: list[int]) -> None:
    places = np.arange(int(np.prod(sizes)))
    expected = np.unravel_index(places, tuple(sizes)) if sizes else ()
    found = unravel(places, sizes)
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]


FULL = np.arange(1.0, 25.0).reshape(2, 3, 4)


@pytest.mark.parametrize("letters", ["sdd", "ssd", "dsd", "dds", "sss", "uqc"])
def test_memory_is_kept_where_all_is_stored_and_may_be(letters: str) -> None:
    format = Format(tuple(LETTERS[letter] for letter in letters), (0, 1, 2))
    array = FULL.copy()
    assert np.shares_memory(pack_array(array, format).values, array)
    assert not np.shares_memory(convert(from_numpy(array), format).values, array)
    array[1] = 0
    made = pack_array(array, format)
    assert np.shares_memory(made.values, array) is False
    np.testing.assert_array_equal(to_dense(made), array)


def test_memory_in_another_order_is_copied() -> None:
    turned = Format.parse("sdd:2,1,0")
    made = pack_array(FULL, turned)
    assert not np.shares_memory(made.values, FULL)
    np.testing.assert_array_equal(to_dense(made), FULL)
    array = np.asfortranarray(FULL)
    assert np.shares_memory(pack_array(array, turned).values, array)


@given(sparse_formats(3), st.data())
def test_blocks_that_have_entries(form: Format, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    array = rng.integers(0, 2, data.draw(st.tuples(*[st.integers(1, 4)] * 3)))
    modes = data.draw(st.permutations(range(3)))[: data.draw(st.integers(1, 3))]
    try:
        tensor = convert(from_numpy(array), form)
    except FormatError:
        assume(False)
        raise
    coords, _ = unpack(tensor)
    met = np.zeros([array.shape[mode] for mode in modes], np.bool_)
    met[tuple(coords[mode] for mode in modes)] = True
    found = blocks_with_entries(tensor, modes)
    np.testing.assert_array_equal(found, np.flatnonzero(met))


def test_described() -> None:
    blocks = "'dd' -> 'sd': blocks of the array that are not all zero, found in order, O(size)"
    assert describe(dense(2), Format.parse("sd")) == blocks

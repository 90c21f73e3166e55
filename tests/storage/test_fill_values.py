"""Fill values: what is not stored has them, in every format, copy and file."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import taco_py as tp
from taco_py.data.convert import convert, diagonal
from taco_py.data.convert.locate import located
from taco_py.data.interop import transforms
from taco_py.data.storage.borrow import DTYPES
from taco_py.data.storage.check import check
from taco_py.data.storage.pack import canonical, pack_coo, to_dense
from taco_py.data.storage.tensor_data import Array, TensorData, dense_data
from taco_py.language import fill as fills
from taco_py.language.diagnostics.errors import (
    FileFormatError,
    FormatError,
    NumberOverflowError,
    OperandTypeError,
    StructureError,
)
from taco_py.language.formats import Format
from tests.storage.test_pack import FORMATS

NAN, INF = np.nan, np.inf
NUMBERS: dict[str, tuple[Any, ...]] = {
    "b": (False, True),
    "i": (0, 1, -3, 100),
    "u": (0, 1, 200),
    "f": (0.0, -0.0, 1.0, 0.1, INF, -INF, NAN),
    "c": (0.0, complex(-0.0, 0.0), 1j, complex(0.1, -INF), complex(NAN, 1.0), complex(1.0, NAN)),
}
DTYPE_NAMES = sorted(dtype.name for dtype in DTYPES)


def same(one: Array, other: Array, fill: str = "") -> bool:
    """Whether arrays have equal elements, a NaN being equal to a NaN; beside a fill value other
    than 0, zeros have equal signs too."""
    signs = not fill or list(map(bits, one.ravel())) == list(map(bits, other.ravel()))
    return signs and one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True)


def bits(number: Any) -> tuple[str, ...]:
    """What tells numbers of one dtype apart, any two NaN being one."""
    return repr(complex(number)), type(number).__name__


@st.composite
def filled_arrays(draw: st.DrawFn, orders: tuple[int, ...] = (0, 1, 2, 3)) -> tuple[Array, str]:
    """An array many of whose elements have the fill value, and that as text."""
    order = draw(st.sampled_from(orders))
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=order, max_size=order)))
    dtype = np.dtype(draw(st.sampled_from(DTYPE_NAMES)))
    elements = st.sampled_from(NUMBERS[dtype.kind])
    value = draw(elements)
    count = int(np.prod(shape))
    found = draw(st.lists(st.just(value) | elements, min_size=count, max_size=count))
    return np.array(found, dtype).reshape(shape), fills.fill_of(value, dtype)


# --- numbers and their text ---------------------------------------------------------------------


@pytest.mark.parametrize("name", DTYPE_NAMES)
def test_the_text_of_a_number_reads_back(name: str) -> None:
    dtype = np.dtype(name)
    for value in NUMBERS[dtype.kind]:
        number = dtype.type(value)
        again = fills.as_number(fills.fill_of(value, dtype), dtype)
        assert type(again) is dtype.type
        assert bits(again) == bits(number)


@pytest.mark.parametrize("name", DTYPE_NAMES)
def test_texts_are_equal_just_where_numbers_are(name: str) -> None:
    dtype = np.dtype(name)
    numbers = [dtype.type(value) for value in NUMBERS[dtype.kind]]
    for one in numbers:
        for other in numbers:
            texts = fills.fill_of(one, dtype), fills.fill_of(other, dtype)
            assert (texts[0] == texts[1]) == (bits(one) == bits(other))
    assert fills.fill_of(dtype.type(0), dtype) == ""


def test_every_nan_is_one() -> None:
    with_payload = np.array([0x7FF8000000000123, 0xFFF8000000000000], np.uint64).view(np.float64)
    float64 = np.dtype(float)
    assert {fills.fill_of(each, float64) for each in (*with_payload, NAN, -NAN)} == {"nan"}
    assert not fills.differs(with_payload, "nan").any()


@given(filled_arrays((1,)))
def test_what_differs_from_a_fill_value(given: tuple[Array, str]) -> None:
    array, fill = given
    number = fills.as_number(fill, array.dtype)
    for element, differs in zip(array, fills.differs(array, fill), strict=True):
        alike = bits(element) == bits(number) if fill else element == 0
        assert differs == (not alike)


@pytest.mark.parametrize(
    ("value", "dtype", "wider"),
    [
        (-INF, "int64", "float64"),
        (NAN, "bool", "float64"),
        (300, "int8", "int64"),
        (-1, "uint64", "int64"),
        (2**63, "int64", "float64"),
        (2**70, "int64", "float64"),
        (1.5, "int8", "float64"),
        (1e300, "float32", "float64"),
        (1j, "float32", "complex128"),
        (complex(1e300, NAN), "complex64", "complex128"),
    ],
)
def test_a_dtype_that_does_not_hold_it_is_refused(value: Any, dtype: str, wider: str) -> None:
    with pytest.raises(NumberOverflowError, match=f"a fill value that {dtype} holds") as caught:
        tp.tensor(np.zeros(3, dtype), fill_value=value)
    assert f".astype('{wider}')" in str(caught.value)
    fills.fill_of(value, np.dtype(wider))


@pytest.mark.parametrize("value", ["inf", [1.0], np.zeros(2), object(), Format.parse("s")])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(OperandTypeError, match="number as fill_value"):
        tp.tensor(np.zeros(3), fill_value=value)


# --- storage ------------------------------------------------------------------------------------


@given(filled_arrays(), st.data())
def test_arrays_survive_all_formats(given: tuple[Array, str], data: st.DataObject) -> None:
    array, fill = given
    there, back = (data.draw(st.sampled_from(FORMATS[array.ndim])) for _ in range(2))
    made = dense_data(array, Format.parse("d" * array.ndim), fill)
    for form in (there, back):
        made = convert(made, form)
        check(made)
        assert (made.format, made.fill) == (form, fill)
        assert same(to_dense(made), array, fill)
        if not form.is_dense and not there.levels[-1].full:
            assert form.levels[-1].full or fills.differs(made.values, fill).all()


@given(filled_arrays((1, 2, 3)), st.data())
def test_stored_fill_values_stay_entries(given: tuple[Array, str], data: st.DataObject) -> None:
    array, fill = given
    coords = np.indices(array.shape).reshape(array.ndim, -1)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=array.size, max_size=array.size)))
    kept = kept.astype(bool)
    form = data.draw(st.sampled_from(FORMATS[array.ndim]))
    made = pack_coo(list(coords[:, kept]), array.ravel()[kept], array.shape, form, fill=fill)
    expected = np.full(array.shape, fills.as_number(fill, array.dtype))
    expected[tuple(coords[:, kept])] = array.ravel()[kept]
    assert same(to_dense(made), expected, fill)
    if not any(level.full for level in form.levels):
        assert made.nnz == kept.sum()


@pytest.mark.parametrize("letters", ["sd", "ds", "dd", "sd:1,0", "ss", "uq"])
def test_positions_without_an_entry_hold_it(letters: str) -> None:
    array = np.array([[0, 7], [7, 7], [7, 5]])
    data = convert(dense_data(array, Format.parse("dd"), "7"), Format.parse(letters))
    last = Format.parse(letters).levels[-1].full
    assert (7 in data.values) == last
    assert 0 in data.values
    assert same(to_dense(data), array)


def test_duplicates_are_added_up_without_it() -> None:
    coords, values = [[0, 0, 1], [1, 1, 0]], [1.0, 2.0, 4.0]
    for form in ("uq", "ss", "ds", "sd", "dd"):
        filled = tp.Tensor.from_coo(coords, values, (2, 2), form, axis=0, fill_value=-INF)
        assert same(filled.to_numpy(), np.array([[-INF, 3.0], [4.0, -INF]]))
        assert filled.fill_value == -INF


def _data(form: str = "uq") -> TensorData:
    rows, columns = np.array([1, 0, 1]), np.array([1, 0, 1])
    return pack_coo([rows, columns], np.ones(3), (2, 2), Format.parse(form), fill="nan")


@pytest.mark.parametrize("form", ["uq", "ds", "ss", "sd", "dd"])
def test_steps_without_a_kernel_keep_it(form: str) -> None:
    data = _data(form)
    assert canonical(data).fill == "nan"
    assert same(to_dense(diagonal(data, "ii")), np.array([1.0, 2.0]))
    assert diagonal(data, "ii").fill == "nan"
    assert transforms.reformatted(data, Format.parse("ss"), "int64").fill == "nan"
    if not data.format.is_dense:
        more = located(data)
        assert same(to_dense(more)[..., 0], to_dense(data))
        assert same(to_dense(transforms.squeeze(more, (2,))), to_dense(data))


# --- Tensors ------------------------------------------------------------------------------------

MATRIX = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]])


def test_a_matrix_shares_its_arrays() -> None:
    filled = tp.tensor(MATRIX, fill_value=-INF)
    assert filled.data.values is MATRIX.data
    assert filled.data.levels[1].crd is MATRIX.indices
    assert same(filled.to_numpy(), np.array([[1.0, -INF, 2.0], [-INF, -INF, 3.0]]))
    assert type(filled.fill_value) is np.float64
    assert tp.Tensor.from_scipy(MATRIX, fill_value=-INF).fill_value == -INF


def test_a_tensor_is_given_another_one_in_its_arrays() -> None:
    filled = tp.tensor(MATRIX, fill_value=-INF)
    zero = tp.tensor(filled, fill_value=0)
    assert zero.data.values is MATRIX.data
    assert same(zero.to_numpy(), MATRIX.toarray())
    assert tp.tensor(filled).fill_value == tp.tensor(filled, format="ss").fill_value == -INF
    assert tp.tensor(MATRIX).fill_value == 0.0


def test_a_sparse_format_leaves_out_what_has_it() -> None:
    array = np.array([[NAN, 0.0], [1.0, NAN]])
    filled = tp.tensor(array, "ss", fill_value=NAN)
    assert filled.nnz == 2
    assert same(filled.to_numpy(), array)
    assert filled.to_coo()[1].tolist() == [0.0, 1.0]
    assert tp.tensor(array, fill_value=NAN).to_coo()[1].tolist() == [0.0, 1.0]
    rows = tp.Tensor.from_numpy(array, "sd", fill_value=NAN)
    assert (rows.nnz, rows.value_count) == (2, 4)


def test_minus_zero_is_another_fill_value_than_zero() -> None:
    filled = tp.tensor(np.array([0.0, -0.0, 1.0]), "s", fill_value=-0.0)
    assert filled.data.values.tolist() == [0.0, 1.0]
    assert np.signbit(filled.to_numpy()).tolist() == [False, True, False]
    assert filled.signature() != tp.tensor(filled, fill_value=0.0).signature()


def test_it_is_shown_where_it_is_not_zero() -> None:
    shown = "Tensor(shape=(2, 3), format='ds', nnz=3, dtype=float64, density=0.5"
    assert repr(tp.tensor(MATRIX)) == f"{shown})"
    assert repr(tp.tensor(MATRIX, fill_value=0)) == f"{shown})"
    assert repr(tp.tensor(MATRIX, fill_value=-INF)) == f"{shown}, fill_value=-inf)"


def test_copies_and_pickles_have_it() -> None:
    filled = tp.tensor(MATRIX, fill_value=NAN)
    for other in (
        filled.copy(),
        copy.copy(filled),
        copy.deepcopy(filled),
        pickle.loads(pickle.dumps(filled)),
    ):
        assert same(other.to_numpy(), filled.to_numpy())
        assert other.signature() == filled.signature()


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@given(filled_arrays((1, 2)), st.sampled_from(DTYPE_NAMES))
def test_other_dtypes_convert_it_as_values(given: tuple[Array, str], name: str) -> None:
    array, fill = given
    dtype, filled = (
        np.dtype(name),
        tp.Tensor(dense_data(array, Format.parse("d" * array.ndim), fill)),
    )
    sparse = filled.to_format("s" * array.ndim)
    with np.errstate(all="ignore"):
        number = filled.fill_value
        if dtype.kind in "iu" and not np.isfinite(number.real):
            with pytest.raises(NumberOverflowError, match=f"converted to {name}"):
                sparse.astype(dtype)
            return
        limits = np.iinfo(dtype) if dtype.kind in "iu" else None
        if array.dtype.kind in "fc" and limits is not None:
            assert limits.min <= number.real <= limits.max
            array = np.where(
                np.isfinite(array.real), array, number
            )  # of others NumPy makes anything
            sparse = tp.tensor(array, "s" * array.ndim, fill_value=number)
        expected = array.astype(dtype)
        found = sparse.astype(dtype)
        assert same(found.to_numpy(), expected)
        assert bits(found.fill_value) == bits(number.astype(dtype))


def test_scipy_has_no_fill_values() -> None:
    filled = tp.tensor(MATRIX, fill_value=-INF)
    for kind in (None, "csr_array", "coo_array"):
        with pytest.raises(FormatError, match=r"fill value 0 .* found -inf") as caught:
            filled.to_scipy(kind)
        assert "fill_value=0" in str(caught.value)
    assert (tp.tensor(filled, fill_value=0).to_scipy() != MATRIX).nnz == 0


# --- other libraries ----------------------------------------------------------------------------


class CoordinateList:
    """What an array of pydata/sparse offers."""

    def __init__(self, array: Array, fill_value: Any) -> None:
        places = np.nonzero(fills.differs(array, fills.fill_of(fill_value, array.dtype)))
        self.coords, self.data = np.array(places), array[places]
        self.shape, self.fill_value = array.shape, array.dtype.type(fill_value)


class CompressedList:
    """What one of its compressed arrays offers."""

    def __init__(self, listed: CoordinateList) -> None:
        self.listed, self.fill_value = listed, listed.fill_value

    def tocoo(self) -> CoordinateList:
        return self.listed


@pytest.mark.parametrize("fill", [0.0, -0.0, INF, NAN])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 1, 2)])
def test_coordinate_lists_of_others(shape: tuple[int, ...], fill: float) -> None:
    array = np.full(shape, fill)
    array[..., -1] = 5.0
    if len(shape) == 2 and not fills.fill_of(fill, array.dtype):
        array = array.reshape(3, 2, 1)  # matrices offer tocsr()
    for listed in (made := CoordinateList(array, fill), CompressedList(made)):
        filled = tp.tensor(listed)
        check(filled.data)
        assert filled.format == tp.COO(array.ndim)
        assert np.shares_memory(filled.data.values, made.data)
        assert bits(filled.fill_value) == bits(np.float64(fill))
        assert same(filled.to_numpy(), array, filled.data.fill)
    assert tp.tensor(made, fill_value=1.0).fill_value == 1.0


def test_coordinate_lists_of_others_are_checked() -> None:
    listed = CoordinateList(np.eye(3), INF)
    listed.data = listed.data[1:]
    with pytest.raises(StructureError, match="one coordinate a value"):
        tp.tensor(listed)
    listed.data = listed.data.astype(object)
    with pytest.raises(OperandTypeError, match="values of dtype"):
        tp.tensor(listed)


def test_pydata_sparse() -> None:
    sparse = pytest.importorskip("sparse")
    array = np.array([[INF, 1.0], [0.0, INF]])
    made = sparse.COO.from_numpy(array, fill_value=INF)
    for each in (made, sparse.GCXS(made)):
        assert same(tp.tensor(each).to_numpy(), array)
    assert tp.tensor(sparse.COO.from_numpy(np.ones((2, 1, 2)))).nnz == 4
    assert tp.tensor(sparse.COO.from_numpy(np.eye(3))).fill_value == 0


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fill", NUMBERS["f"])
@pytest.mark.parametrize("name", ["a.tns", "a.mtx", "a.mtx.gz"])
@pytest.mark.parametrize("form", ["ds", "dd", "uq"])
def test_files_keep_it(fill: float, name: str, form: str, tmp_path: Path) -> None:
    filled = tp.tensor(tp.tensor(MATRIX, fill_value=fill), form)
    tp.write(filled, tmp_path / name)
    again = tp.read(tmp_path / name)
    assert same(again.to_numpy(), filled.to_numpy())
    assert bits(again.fill_value) == bits(filled.fill_value)
    assert tp.read(tmp_path / name, format="ss", shape=(4, 4)).to_numpy()[3, 3] == pytest.approx(
        fill, nan_ok=True
    )


@pytest.mark.parametrize("name", ["complex64", "complex128", "int8", "uint64", "bool"])
def test_files_keep_it_of_every_kind(name: str, tmp_path: Path) -> None:
    dtype = np.dtype(name)
    for value in NUMBERS[dtype.kind]:
        filled = tp.tensor(tp.tensor(MATRIX.astype(dtype), fill_value=value))
        tp.write(filled, tmp_path / "a.mtx")
        assert bits(tp.read(tmp_path / "a.mtx", dtype=dtype).fill_value) == bits(filled.fill_value)


def test_a_file_without_one_is_as_it_was(tmp_path: Path) -> None:
    tp.write(MATRIX, tmp_path / "a.mtx")
    tp.write(MATRIX, tmp_path / "a.tns")
    assert "fill" not in (tmp_path / "a.mtx").read_text() + (tmp_path / "a.tns").read_text()
    comments = "# fill in by hand\n# fill_value of each row: see below\n# shape 2 2\n1 1 5\n"
    (tmp_path / "b.tns").write_text(comments)
    assert tp.read(tmp_path / "b.tns").fill_value == 0


@pytest.mark.parametrize(
    ("field", "word"), [("integer", "1.5"), ("integer", "-inf"), ("real", "x")]
)
def test_a_comment_that_the_values_cannot_be(field: str, word: str, tmp_path: Path) -> None:
    path = tmp_path / "a.mtx"
    head = f"%%MatrixMarket matrix coordinate {field} general\n% fill_value {word}\n"
    path.write_text(f"{head}2 2 1\n1 1 5\n")
    with pytest.raises(FileFormatError, match=r"a\.mtx: Expected a fill value of type"):
        tp.read(path)


def test_a_dtype_that_does_not_hold_the_files_own(tmp_path: Path) -> None:
    tp.write(tp.tensor(MATRIX, fill_value=-INF), tmp_path / "a.mtx")
    with pytest.raises(FileFormatError, match=r"a\.mtx: Expected a fill value that int64 holds"):
        tp.read(tmp_path / "a.mtx", dtype=int)
    assert tp.read(tmp_path / "a.mtx", dtype="float32").fill_value == np.float32(-INF)


def test_a_truth_that_is_filled_with_meets_complex_numbers() -> None:
    dense = np.array([[1, 0], [0, 2j]])
    one = tp.tensor(dense, format="csr")
    np.testing.assert_array_equal((one @ (one == one)).to_numpy(), dense @ np.ones((2, 2)))

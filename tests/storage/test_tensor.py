"""The public Tensor: constructors, conversions, refusals."""

from __future__ import annotations

import doctest
import importlib
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.api.check import check
from taco_py.api.files import read, write
from taco_py.api.tensor import tensor
from taco_py.data.interop import numpy_arrays
from taco_py.data.tensors.tensor import Tensor
from taco_py.language import formats
from taco_py.language.diagnostics.errors import (
    DimensionError,
    FormatError,
    IndexOverflowError,
    OperandError,
    OperandTypeError,
    StructureError,
)
from taco_py.language.formats import COO, CSC, CSF, CSR, dense

DENSE = np.array([[0, 1.5, 0], [2, 0, 0]])
ROWS, COLUMNS, VALUES = np.array([1, 0]), np.array([0, 1]), np.array([2.0, 1.5])


@pytest.mark.parametrize(
    "coords",
    [
        [ROWS, COLUMNS],
        (ROWS, COLUMNS),
        ([1, 0], [0, 1]),
        [ROWS.astype(np.uint64), COLUMNS.astype(">i4")],
        [ROWS.astype(np.int8), COLUMNS.astype(np.int32)],
    ],
    ids=range(5),
)
@pytest.mark.parametrize("format", [None, "ds", "dd", COO(2), CSC])
def test_from_coo_takes_one_array_a_mode(coords: Any, format: Any) -> None:
    made = Tensor.from_coo(coords, VALUES, (2, 3), format)
    np.testing.assert_array_equal(made.to_numpy(), DENSE)
    assert made.format == (CSF(2) if format is None else tensor(DENSE, format).format)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("entries", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist], ids=["array", "list"])
def test_from_coo_takes_a_table_either_way_round(order: int, entries: int, make: Any) -> None:
    """Where the shape does not say which axis runs over the modes, `axis` must."""
    rng = np.random.default_rng(order + 10 * entries)
    table, shape = rng.integers(0, 6, (order, entries)), (6,) * order
    values = np.arange(1.0, entries + 1)
    expected = Tensor.from_coo(tuple(table), values, shape).to_numpy()
    for axis, given in enumerate((table, table.T)):
        made = Tensor.from_coo(make(given), values, shape, axis=axis)
        np.testing.assert_array_equal(made.to_numpy(), expected)
        if order == entries and order > 1:
            with pytest.raises(OperandError, match="read in one way") as caught:
                Tensor.from_coo(make(given), values, shape)
            assert "axis=0" in str(caught.value) and "axis=1" in str(caught.value)
        else:
            again = Tensor.from_coo(make(given), values, shape)
            np.testing.assert_array_equal(again.to_numpy(), expected)
        if order != entries:
            with pytest.raises((OperandError, StructureError)):
                Tensor.from_coo(given, values, shape, axis=1 - axis)


@pytest.mark.parametrize("axis", [2, -1, True, "rows"])
def test_from_coo_refuses_another_axis(axis: Any) -> None:
    with pytest.raises(OperandError, match="axis=0 or axis=1, found"):
        Tensor.from_coo([[0, 1]], [1.0], (2, 3), axis=axis)


@pytest.mark.parametrize(
    ("values", "dtype", "number"),
    [
        ([1.0, 1.5], int, "1.5 at entry 1"),
        ([300], np.int8, "300 at entry 0"),
        ([np.nan], int, "nan"),
        ([1 + 2j], float, r"\(1\+2j\)"),
        ([-1], np.uint8, "-1"),
        ([2], bool, "2"),
    ],
)
def test_from_coo_cuts_no_value(values: list[Any], dtype: Any, number: str) -> None:
    coords = (range(len(values)),)
    with pytest.raises(OperandTypeError, match=f"holds exactly, found {number}|{number} out of"):
        Tensor.from_coo(coords, values, 3, dtype=dtype)


def test_from_coo_converts_values_that_fit() -> None:
    for dtype in (np.int8, np.float32, np.complex64, np.bool_, np.uint64):
        made = Tensor.from_coo(([0, 2],), [1.0, 0.0], 3, dtype=dtype)
        assert (made.dtype, made.data.values.tolist()) == (dtype, [1, 0])


def test_from_coo_owns_its_arrays() -> None:
    rows, columns, values = np.array([0, 1]), np.array([1, 0]), np.array([1.5, 2.0])
    made = Tensor.from_coo([rows, columns], values, (2, 3), COO(2), index_dtype=np.int64)
    for array in (rows, columns, values):
        array[:] = 0
    np.testing.assert_array_equal(made.to_numpy(), DENSE)


def test_from_coo_sums_duplicates_and_converts() -> None:
    made = Tensor.from_coo([[0], [0], [2]], [1, 2, 3], [4], dtype=np.float32)
    assert (made.nnz, made.dtype) == (2, np.float32)
    assert made.to_numpy().tolist() == [3, 0, 3, 0]
    assert Tensor.from_coo([[0]], [1.0], 4).shape == (4,)


def test_from_coo_of_nothing() -> None:
    for coords in ([], np.zeros((0, 3)), (ROWS[:0],) * 3):
        made = Tensor.from_coo(coords, [], (2, 0, 3))
        assert (made.nnz, made.shape) == (0, (2, 0, 3))
    assert float(Tensor.from_coo(np.zeros((2, 0), int), [1.0, 2.0], ()).to_numpy()) == 3


def test_indices_are_another_name_of_coordinates() -> None:
    for coords in ((ROWS, COLUMNS), np.stack((ROWS, COLUMNS, ROWS))):
        values = np.arange(1.0, 1.0 + len(ROWS))
        shape = tuple(int(each.max()) + 1 for each in coords)
        made = Tensor.from_coo(indices=coords, values=values, shape=shape, axis=None)
        np.testing.assert_array_equal(
            made.to_numpy(), Tensor.from_coo(coords, values, shape).to_numpy()
        )
    with pytest.raises(OperandTypeError, match=r"found coords= and indices="):
        Tensor.from_coo(coords, values, shape, indices=coords)
    for missing, arguments in (
        ("coords", {"values": values, "shape": shape}),
        ("values", {"indices": coords, "shape": shape}),
        ("coords and no values and no shape", {}),
    ):
        with pytest.raises(OperandTypeError, match=f"found no {missing}"):
            Tensor.from_coo(**arguments)  # type: ignore[arg-type]


BAD: dict[str, tuple[tuple[Any, ...], type[Exception], str]] = {
    "negative": (
        ([[0, -1]], [1.0], (2, 3)),
        StructureError,
        "0 to 2 in mode 1, found -1 at entry 0",
    ),
    "too large": (
        (([0, 2], [0, 0]), [1.0, 1.0], (2, 3)),
        StructureError,
        "mode 0, found 2 at entry 1",
    ),
    "float": (([[0.5, 1]], [1.0], (2, 3)), OperandTypeError, "integer coordinates, found float64"),
    "values": (([[0, 1]], [1.0, 2.0], (2, 3)), StructureError, "found 1 in mode 0 and 2 values"),
    "modes": (
        ([[0, 1, 1]], [1.0], (2, 3)),
        OperandError,
        r"shape \(2, 1\) or .*found shape \(1, 3\)",
    ),
    "lists": (((ROWS,), [1.0, 2.0], (2, 3)), OperandError, "2 modes.*found 1"),
    "lengths": (((ROWS, COLUMNS[:1]), VALUES, (2, 3)), StructureError, "found 1 in mode 1 and 2"),
    "size": (([[0, 1]], [1.0], (2, -3)), DimensionError, "mode 1, found -3"),
    "no shape": (([[0]], [1.0], None), DimensionError, "found no shape"),
    "float size": (([[0, 1]], [1.0], (2, 3.0)), DimensionError, "mode 1, found 3.0"),
    "strings": (([[0, 1]], ["a"], (2, 3)), OperandTypeError, "<U1"),
    "objects": (([[0, 1]], [None], (2, 3)), OperandTypeError, "object"),
    "format": (([[0, 1]], [1.0], (2, 3), "sss"), FormatError, "2 levels.*'sss' of 3"),
    "no format": (([[0, 1]], [1.0], (2, 3), 7), FormatError, "a Format or its letters, found 7"),
}


@pytest.mark.parametrize("name", BAD)
def test_from_coo_refuses(name: str) -> None:
    arguments, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        Tensor.from_coo(*arguments)
    assert getattr(caught.value, "hint", None)


def test_tensor_accepts_anything() -> None:
    A = sp.csc_array(DENSE)
    assert tensor(A).format == CSC
    assert tensor(A).data.values is A.data
    assert tensor(A, "ds").format == CSR
    assert tensor(DENSE).data.values is DENSE
    assert tensor([[1, 2], [3, 4]]).format == dense(2)
    assert tensor(3.5).shape == ()
    T = tensor(DENSE, CSF(2))
    assert tensor(T).data is T.data
    for made in (T, tensor(A, "ds:1,0"), tensor(sp.lil_matrix(DENSE)), Tensor.from_scipy(A, "uq")):
        np.testing.assert_array_equal(made.to_numpy(), DENSE)
    np.testing.assert_array_equal(Tensor.from_numpy(DENSE, "ss").to_numpy(), DENSE)


@pytest.mark.parametrize("obj", [None, "text", {"a": 1}, [[1, 2], [3]], ["a"]], ids=repr)
def test_tensor_refuses(obj: Any) -> None:
    with pytest.raises(OperandTypeError):
        tensor(obj)


def test_index_types() -> None:
    wide = tensor(DENSE, "ss", index_dtype=np.int64)
    assert wide.data.levels[1].crd is not None
    assert wide.data.levels[1].crd.dtype == np.int64
    big = sp.coo_array((np.ones(1), ([2**31 - 1], [2**31 - 1])), shape=(2**31, 2**31))
    with pytest.raises(IndexOverflowError, match="int32"):
        tensor(big, format=CSF(2), index_dtype=np.int32)


@pytest.mark.parametrize(
    ("format", "kind"),
    [("ds", sp.csr_array), ("ds:1,0", sp.csc_array), ("ss", sp.coo_array), ("dd", sp.coo_array)],
)
def test_to_scipy(format: str, kind: type) -> None:
    T = tensor(DENSE, format)
    assert type(T.to_scipy()) is kind
    for made in (T.to_scipy(), T.to_scipy("csr_matrix"), T.to_scipy("coo_array")):
        np.testing.assert_array_equal(made.toarray(), DENSE)


def test_to_scipy_of_other_orders() -> None:
    cube = np.arange(8.0).reshape(2, 2, 2)
    for format in ("sss", "ddd", "sds:2,0,1"):
        np.testing.assert_array_equal(tensor(cube, format).to_scipy().todense(), cube)
    vector = np.array([0, 1.0, 0])
    for format in ("s", "d", "u"):
        assert tensor(vector, format).to_scipy().shape == (3,)
        np.testing.assert_array_equal(tensor(vector, format).to_scipy().toarray(), vector)
    with pytest.raises(FormatError, match="found a scalar"):
        tensor(1.0).to_scipy()


def test_to_coo_and_back() -> None:
    coords, values = tensor(DENSE, "ss").to_coo()
    assert (coords.tolist(), values.tolist()) == ([[0, 1], [1, 0]], [1.5, 2.0])
    np.testing.assert_array_equal(Tensor.from_coo(coords, values, (2, 3), axis=1).to_numpy(), DENSE)
    coords, values = tensor(2.0).to_coo()
    assert (coords.shape, values.tolist()) == ((1, 0), [2.0])


def test_formats_types_and_copies() -> None:
    T = tensor(DENSE, "ss")
    assert T.to_format("ss") is T
    assert T.to_format(CSR).format == CSR
    assert T.astype(np.complex64).dtype == np.complex64
    assert T.astype(np.float16).dtype == np.float16
    with pytest.raises(OperandTypeError, match="object"):
        T.astype(object)
    copy = T.copy()
    assert not np.shares_memory(copy.data.values, T.data.values)
    np.testing.assert_array_equal(copy.to_numpy(), DENSE)
    assert (T.ndim, T.order, T.nnz, T.shape, str(T.format)) == (2, 2, 2, (2, 3), "ss")


@pytest.mark.parametrize(("name", "letters"), [("csr", "ds"), ("CSC", "ds:1,0"), ("DCSR", "ss")])
def test_formats_by_name(name: str, letters: str) -> None:
    assert str(tensor(np.eye(3), format=name).format) == letters
    with pytest.raises(FormatError, match="DCSR, DCSC, PATTERN, coo, csf, dense, hash, dok"):
        tensor(np.eye(3), format=name + "x")


def test_pickle() -> None:
    again = pickle.loads(pickle.dumps(tensor(DENSE, "ds:1,0")))
    assert again.format == CSC
    np.testing.assert_array_equal(again.to_numpy(), DENSE)


def test_repr_is_one_line() -> None:
    assert repr(tensor(DENSE, "ss")) == (
        "Tensor(shape=(2, 3), format='ss', nnz=2, dtype=float64, density=0.333)"
    )
    assert "density=0" in repr(tensor(np.zeros((0, 3))))


def test_no_tensor_becomes_dense_by_accident() -> None:
    T = tensor(DENSE, "ss")
    for convert_silently in (np.asarray, np.array):
        with pytest.raises(OperandTypeError, match="hint"):
            convert_silently(T)


def test_check_takes_what_tensor_takes() -> None:
    A = sp.csr_array(DENSE)
    for sound in (A, DENSE, tensor(A, "ss"), tensor(A).data):
        check(sound)
    A.indices = np.array([1, 9], np.int32)
    with pytest.raises(StructureError, match=r"found indices\[1\] = 9"):
        check(A)
    with pytest.raises(StructureError, match=r"found indices\[1\] = 9"):
        check(tensor(A))


def test_files_round_trip(tmp_path: Any) -> None:
    write(sp.csr_array(DENSE), tmp_path / "a.mtx")
    made = read(tmp_path / "a.mtx", format="ss")
    assert made.format == CSF(2)
    np.testing.assert_array_equal(made.to_numpy(), DENSE)


@pytest.mark.parametrize(
    "module",
    [
        "data.tensors.tensor",
        "data.convert.convert",
        "data.convert.diagonal",
        "data.interop.numpy_arrays",
        "data.storage.coordinates",
        "data.storage.pack",
        "data.storage.sizes",
    ],
)
def test_examples_in_docstrings(module: str) -> None:
    names = {name: getattr(formats, name) for name in formats.__all__}
    names |= {"np": np, "tp": tp, "from_numpy": numpy_arrays.from_numpy}
    result = doctest.testmod(importlib.import_module(f"taco_py.{module}"), extraglobs=names)
    assert result.attempted > 0
    assert result.failed == 0

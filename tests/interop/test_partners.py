"""Tensors to other libraries and back: the same elements, in the same memory where layouts agree.

Each library is skipped where it is not installed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.data.interop.partners.partners import PARTNERS, partner_of
from taco_py.data.storage.tensor_data import Array, arrays_of
from taco_py.language.diagnostics.errors import (
    DimensionError,
    FormatError,
    MissingExtraError,
    OperandTypeError,
    SparseBufferError,
)

A = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
CUBE = np.zeros((2, 3, 4))
CUBE[0, 1, 2], CUBE[1, 2, 3], CUBE[1, 0, 0] = 5, 6, 7


def need(name: str) -> Any:
    return pytest.importorskip(name, exc_type=ImportError)


def shared(t: tp.Tensor, *others: Any) -> bool:
    """Whether each array lies in the memory of one of the Tensor's."""
    own = arrays_of(t.data)
    return all(any(np.shares_memory(a, np.asarray(b)) for a in own) for b in others)


def same(obj: Any, expected: Array, **options: Any) -> tp.Tensor:
    found = tp.tensor(obj, **options)
    tp.check(found)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.to_numpy(), expected)
    return found


# ---------------------------------------------------------------- all libraries at once

ROADS = [
    ("numpy", "ndarray"), ("scipy", "csr_array"), ("scipy", "csc_matrix"), ("scipy", "coo_array"),
    ("scipy", "bsr_array"), ("scipy", "dia_array"), ("scipy", "lil_array"), ("scipy", "dok_array"),
    ("torch", "sparse_csr"), ("torch", "sparse_csc"), ("torch", "sparse_coo"), ("torch", "strided"),
    ("jax", "BCSR"), ("jax", "BCOO"), ("sparse", "COO"), ("sparse", "GCXS"), ("sparse", "DOK"),
    ("pandas", "DataFrame"), ("pandas", "Series"), ("pandas", "table"), ("polars", "DataFrame"),
    ("pyarrow", "SparseCOOTensor"), ("pyarrow", "SparseCSRMatrix"), ("pyarrow", "SparseCSCMatrix"),
    ("pyarrow", "SparseCSFTensor"), ("pyarrow", "Table"), ("pyarrow", "Tensor"),
]  # fmt: skip
ANY_ORDER = {
    "ndarray", "coo_array", "sparse_coo", "strided", "BCOO", "COO", "GCXS", "DOK", "Series",
    "table", "SparseCOOTensor", "SparseCSFTensor", "Table", "Tensor",
}  # fmt: skip


DTYPES = (
    "bool", "int8", "int32", "int64", "uint8", "uint16", "uint64", "float16", "float32", "float64",
    "complex64", "complex128",
)  # fmt: skip


def loads(library: str) -> None:
    if library == "jax":
        need("jax").config.update("jax_enable_x64", True)
    elif library not in ("numpy", "scipy"):
        need(library)


@pytest.mark.parametrize(("library", "kind"), ROADS, ids=lambda each: str(each))
@pytest.mark.parametrize("letters", ["ds", "ds:1,0", "uq", "ss", "dd"])
def test_a_matrix_goes_there_and_back(library: str, kind: str, letters: str) -> None:
    loads(library)
    for dtype in ("float64", "float32", "int64"):
        t = tp.tensor(A.astype(dtype), format=letters)
        same(t.to(library, kind), A.astype(dtype), shape=(3, 4) if library == "polars" else None)


@pytest.mark.parametrize(
    ("library", "kind"), [each for each in ROADS if each[1] in ANY_ORDER], ids=str
)
def test_other_orders_go_there_and_back(library: str, kind: str) -> None:
    loads(library)
    for array, letters in ((CUBE, "sss"), (CUBE, "uqq"), (CUBE, "dss:2,0,1"), (A[0], "s")):
        if array.ndim == 1 and kind in ("SparseCSFTensor", "GCXS"):
            continue
        same(tp.tensor(array, format=letters).to(library, kind), array)


@pytest.mark.parametrize(("library", "kind"), ROADS, ids=lambda each: str(each))
def test_a_matrix_of_nothing_goes_there_and_back(library: str, kind: str) -> None:
    loads(library)
    for shape in ((3, 4), (0, 4), (3, 0)):
        if kind in ("bsr_array", "dia_array") and not all(shape):
            continue
        if library in ("polars", "pandas") and not all(shape):
            continue
        zeros = np.zeros(shape)
        t = tp.tensor(sp.csr_array(zeros))
        wide = {"shape": shape} if library == "polars" else {}
        found = tp.tensor(t.to(library, kind), **wide)
        assert found.shape == shape


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_lists_of_coordinates_go_there_and_back(data: Any) -> None:
    """Of any order, duplicates among them, with index arrays of both types."""
    order = data.draw(st.integers(1, 4))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=order, max_size=order)))
    count = data.draw(st.integers(0, 8))
    index = data.draw(st.sampled_from(["int32", "int64"]))
    dtype = data.draw(st.sampled_from(DTYPES))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    coords = [rng.integers(0, size, count).astype(index) for size in shape]
    values = rng.integers(1, 5, count).astype(dtype)
    t = tp.Tensor.from_coo(tuple(coords), values, shape, format=tp.COO(order), index_dtype=index)
    expected = t.to_numpy()
    for library, kind in ROADS:
        if (kind not in ANY_ORDER and library != "polars") or library == "jax":
            continue
        if order == 1 and kind in ("SparseCSFTensor", "GCXS"):
            continue
        try:
            found = t.to(library, kind)
        except (MissingExtraError, OperandTypeError):  # not installed, or without such values
            continue
        known = shape if library == "polars" else None
        np.testing.assert_array_equal(tp.tensor(found, shape=known).to_numpy(), expected)


def test_every_kind_of_every_library_is_tried() -> None:
    kinds = {(partner.name, kind) for partner in PARTNERS for kind in partner.kinds}
    left = {name for name, _ in kinds - set(ROADS)}
    assert left <= {"scipy", "jax", "cupy", "polars"}


def test_libraries_and_kinds_are_asked_for_by_name() -> None:
    t = tp.tensor(A, format="csr")
    with pytest.raises(FormatError, match=r"numpy, scipy, torch.*found 'torhc'"):
        t.to("torhc")
    with pytest.raises(FormatError, match="name of a class or layout of torch, found 3"):
        t.to("torch", 3)  # type: ignore[arg-type]
    with pytest.raises(FormatError, match=r"csr_array.*found 'csx_array'"):
        t.to("scipy", "csx")
    with pytest.raises(FormatError, match="fill value 0"):
        tp.tensor(t, fill_value=1).to("scipy")
    assert partner_of(A).name == "numpy"
    assert partner_of(object()) is None


# ---------------------------------------------------------------- in the same memory


def test_torch_shares_memory() -> None:
    torch = need("torch")
    t = tp.tensor(sp.csr_array(A))
    found = t.to("torch")
    assert found.layout == torch.sparse_csr
    parts = (found.crow_indices().numpy(), found.col_indices().numpy(), found.values().numpy())
    assert shared(t, *parts)
    back = tp.tensor(found)
    assert shared(t, *arrays_of(back.data))
    csc = tp.tensor(sp.csc_array(A)).to("torch")
    assert csc.layout == torch.sparse_csc
    assert tp.tensor(csc).format == tp.CSC
    coo = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), torch.ones(3), (2, 2))
    listed = tp.tensor(coo)
    assert shared(listed, coo._values().numpy())
    assert listed.data.levels[1].crd.ctypes.data == coo._indices()[1].data_ptr()
    np.testing.assert_array_equal(listed.to_numpy(), [[0, 2], [1, 0]])
    again = listed.to("torch")
    assert again._indices().data_ptr() == coo._indices().data_ptr()
    dense = torch.arange(6.0).reshape(2, 3).T
    assert shared(tp.tensor(dense), dense.numpy())
    assert tp.tensor(dense).to("torch").data_ptr() == dense.data_ptr()


def test_torch_in_blocks_batches_and_half_types() -> None:
    torch = need("torch")
    dense = torch.arange(16.0).reshape(4, 4)
    same(dense.to_sparse_bsr((2, 2)), dense.numpy())
    same(dense.to_sparse_bsc((2, 2)), dense.numpy())
    hybrid = torch.arange(12.0).reshape(2, 3, 2).to_sparse(1)
    same(hybrid, hybrid.to_dense().numpy())
    csr = torch.arange(12.0).reshape(2, 3, 2).to_sparse_csr(dense_dim=1)
    same(csr, csr.to_dense().numpy())
    same(torch.complex(dense, dense).conj(), torch.complex(dense, -dense).numpy())
    with pytest.raises(OperandTypeError, match=r"batch.*\(2, 3, 2\)"):
        tp.tensor(torch.ones(2, 3, 2).to_sparse_csr())
    with pytest.raises(OperandTypeError, match="detach"):
        tp.tensor(torch.ones(2, requires_grad=True))
    with pytest.raises(OperandTypeError, match=r"\.cpu\(\)"):
        tp.tensor(torch.ones(2, device="meta"))
    need("ml_dtypes")
    half = torch.tensor([1.5, 2.0], dtype=torch.bfloat16)
    t = tp.tensor(half)
    assert t.dtype.name == "bfloat16"
    assert t.to("torch").dtype == torch.bfloat16
    assert t.to("torch").tolist() == [1.5, 2]


def test_jax() -> None:
    jax = need("jax")
    from jax.experimental import sparse

    jax.config.update("jax_enable_x64", True)
    m = jax.numpy.asarray(A)
    csr = sparse.BCSR.fromdense(m)
    t = same(csr, A)
    assert shared(t, csr.indices, csr.data)
    coo = sparse.BCOO.fromdense(m, nse=9)  # with entries past the end
    assert same(coo, A).nnz == 4
    exact = sparse.BCOO.fromdense(m)
    assert shared(same(exact, A), exact.data)
    same(sparse.BCOO.fromdense(jax.numpy.asarray(CUBE), n_dense=1), CUBE)
    same(sparse.BCOO.fromdense(jax.numpy.asarray(CUBE), n_batch=1), CUBE)
    same(sparse.BCSR.fromdense(jax.numpy.asarray(CUBE), n_batch=1), CUBE)
    same(jax.numpy.asarray(A), A)
    jax.config.update("jax_enable_x64", False)
    try:
        with pytest.raises(OperandTypeError, match=r"float64.*\n.*jax_enable_x64"):
            t.to("jax")
        same(t.astype("float32").to("jax"), A.astype("float32"))
    finally:
        jax.config.update("jax_enable_x64", True)


def test_pydata_sparse() -> None:
    sparse = need("sparse")
    coo = sparse.COO.from_numpy(CUBE)
    t = same(coo, CUBE)
    assert shared(t, coo.data, *coo.coords)
    back = t.to("sparse")
    assert shared(t, back.data, back.coords)
    for axes in ((0,), (1,)):
        gcxs = sparse.GCXS.from_numpy(A, compressed_axes=axes)
        t = same(gcxs, A)
        assert shared(t, gcxs.data, gcxs.indices, gcxs.indptr)
        assert t.format == (tp.CSR if axes == (0,) else tp.CSC)
        out = t.to("sparse")
        assert shared(t, out.data, out.indices, out.indptr)
    same(sparse.GCXS.from_numpy(CUBE, compressed_axes=(0, 2)), CUBE)
    same(sparse.DOK.from_numpy(A), A)
    filled = sparse.COO.from_numpy(A, fill_value=3.0)
    t = same(filled, A)
    assert t.fill_value == 3
    assert t.to("sparse").fill_value == 3
    np.testing.assert_array_equal(
        tp.einsum("ij,j->i", sparse.COO.from_numpy(A), np.ones(4)), A.sum(1)
    )


def test_arrow_shares_memory() -> None:
    pa = need("pyarrow")
    matrix = tp.tensor(sp.csr_array(A), index_dtype="int64")
    found = matrix.to("pyarrow")
    assert isinstance(found, pa.SparseCSRMatrix)
    values, pos, crd = found.to_numpy()
    assert shared(matrix, values, pos, crd)
    assert shared(matrix, *arrays_of(tp.tensor(found).data))
    fibres = tp.tensor(CUBE, format="sss:2,0,1", index_dtype="int64")
    made = fibres.to("pyarrow")
    assert isinstance(made, pa.SparseCSFTensor)
    back = same(made, CUBE)
    assert shared(back, made.to_numpy()[0])
    coo = tp.tensor(A, format="uq").to("pyarrow")
    assert shared(same(coo, A), coo.to_numpy()[0])
    table = pa.table({"row": [0, 1], "column": [1, 1], "value": [1.0, 2.0]})
    t = same(table, np.array([[0, 1.0], [0, 2]]))
    assert shared(t, table["value"].chunk(0).to_numpy(), table["row"].chunk(0).to_numpy())
    with pytest.raises(OperandTypeError, match="named 'value', found 'a'"):
        tp.tensor(pa.table({"a": [1.0]}))
    with pytest.raises(OperandTypeError, match="column 'i', found nulls"):
        tp.tensor(pa.table({"i": [0, None], "value": [1.0, 2.0]}))


def test_pandas() -> None:
    pd = need("pandas")
    frame = pd.DataFrame.sparse.from_spmatrix(sp.csc_array(A))
    assert same(frame, A).format == tp.CSC
    out = tp.tensor(A, format="csc").to("pandas")
    pd.testing.assert_frame_equal(out, frame)
    narrow = tp.tensor(A, format="csc")
    column = narrow.to("pandas").iloc[:, 3].array
    assert shared(narrow, column.sp_values, column.sp_index.indices)
    listed = tp.tensor(A, format="uq")
    columns = listed.to("pandas", "table")
    assert shared(listed, *(columns[name].to_numpy() for name in "ij"), columns["value"].to_numpy())
    same(pd.DataFrame(A), A)
    nan = pd.DataFrame(A).astype(pd.SparseDtype(float, np.nan))
    assert np.isnan(same(nan, A).fill_value)
    vector = pd.Series(pd.arrays.SparseArray(A[0]))
    t = same(vector, A[0])
    assert shared(t, vector.array.sp_values, vector.array.sp_index.indices)
    series = tp.tensor(CUBE, format="sss").to("pandas")
    assert series.index.names == ["i", "j", "k"]
    same(series, CUBE)
    plain = pd.Series([1.0, 2.0, 3.0], index=pd.MultiIndex.from_tuples([(0, 2), (5, 1), (0, 2)]))
    assert tp.tensor(plain).shape == (6, 3)
    assert tp.tensor(plain).to_numpy()[0, 2] == 4
    named = pd.Series([1.0, 2.0], index=pd.MultiIndex.from_tuples([("a", 2), ("b", 1)]))
    with pytest.raises(OperandTypeError, match=r"whole numbers.*(object|str) in level 0"):
        tp.tensor(named)
    with pytest.raises(OperandTypeError, match="both: 'b' is dense"):
        tp.tensor(pd.DataFrame({"a": pd.arrays.SparseArray([1.0]), "b": [1.0]}))
    mixed = pd.DataFrame(
        {"a": pd.arrays.SparseArray([1.0]), "b": pd.arrays.SparseArray([1.0], fill_value=0)}
    )
    with pytest.raises(FormatError, match="one fill value, found 0, nan"):
        tp.tensor(mixed)


def test_sparse_arrays_of_cupy_are_refused_on_the_host() -> None:
    module = "cupyx.scipy.sparse._csr"
    on_gpu = type("csr_matrix", (), {"__module__": module, "shape": (2, 2)})()
    with pytest.raises(OperandTypeError, match=r"CuPy's csr_matrix.*\n.*\.get\(\)"):
        tp.einsum("ij,j->i", on_gpu, np.ones(2))
    with pytest.raises(MissingExtraError, match="cupy"):
        tp.tensor(A, format="csr").to("cupy")


def test_polars() -> None:
    pl = need("polars")
    table = pl.DataFrame({"i": [0, 1, 1], "j": [1, 0, 0], "value": [1.0, 2.0, 3.0]})
    t = same(table, np.array([[0, 1.0], [5, 0]]))
    assert shared(t, table.get_column("value").to_numpy(), table.get_column("j").to_numpy())
    assert tp.tensor(table, shape=(3, 5)).shape == (3, 5)
    with pytest.raises(DimensionError, match=r"own, \(2, 2\).*found \(1, 2\)"):
        tp.tensor(table, shape=(1, 2))
    with pytest.raises(DimensionError, match="own"):
        tp.tensor(A, shape=(9, 9))
    same(pl.DataFrame(A), A)
    negative = pl.DataFrame({"i": [0, -1], "value": [1.0, 2.0]})
    with pytest.raises(tp.TacoError, match="polars"):
        tp.tensor(negative)


def test_dlpack() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = tp.from_dlpack(x)
    assert shared(t, x)
    assert np.shares_memory(np.from_dlpack(t), x)
    assert t.__dlpack_device__() == (1, 0)
    assert not shared(tp.from_dlpack(x, copy=True), x)
    namespace = t.__array_namespace__()
    assert shared(namespace.from_dlpack(x), x)
    with pytest.raises(BufferError, match="several arrays") as refusal:
        np.from_dlpack(tp.tensor(A, format="csr"))
    assert isinstance(refusal.value, SparseBufferError)
    with pytest.raises(OperandTypeError, match="__dlpack__, found list"):
        tp.from_dlpack([1])
    with pytest.raises(OperandTypeError, match="'cpu' or None, found 'cuda'"):
        tp.from_dlpack(x, device="cuda")
    torch = need("torch")
    assert torch.from_dlpack(t).data_ptr() == x.ctypes.data
    assert shared(tp.from_dlpack(torch.ones(2)), torch.ones(2)) is False


# ---------------------------------------------------------------- binsparse


class Described:
    """An object that has the protocol alone."""

    def __init__(self, descriptor: Any, **arrays: Any) -> None:
        self.descriptor, self.arrays = descriptor, arrays

    def __binsparse_descriptor__(self) -> Any:
        return self.descriptor

    def __binsparse__(self) -> Any:
        return self.arrays


NAMED = {"ds": "CSR", "ds:1,0": "CSC", "ss": "DCSR", "ss:1,0": "DCSC", "uq": "COOR",
         "uq:1,0": "COOC", "dd": "DMATR", "dd:1,0": "DMATC", "sd": "custom"}  # fmt: skip


@pytest.mark.parametrize("letters", NAMED)
@pytest.mark.parametrize("dtype", ["float64", "bool", "complex64", "int8"])
def test_binsparse_goes_there_and_back(letters: str, dtype: str) -> None:
    t = tp.tensor(A.astype(dtype), format=letters)
    told = t.__binsparse_descriptor__()["binsparse"]
    assert told["format"] == NAMED[letters]
    back = same(Described(t.__binsparse_descriptor__(), **t.__binsparse__()), A.astype(dtype))
    if not t.format.is_dense:
        assert str(back.format) == letters
        assert dtype == "bool" or shared(t, *arrays_of(back.data)[:1])


def test_binsparse_of_other_orders_and_fill_values() -> None:
    for letters in ("sss", "uqq", "duq", "dss:2,0,1", "dsd"):
        t = tp.tensor(CUBE, format=letters)
        same(Described(t.__binsparse_descriptor__(), **t.__binsparse__()), CUBE)
    t = tp.tensor(A, format="csr", fill_value=2.0)
    back = same(Described(t.__binsparse_descriptor__(), **t.__binsparse__()), A)
    assert back.fill_value == 2
    unsorted = tp.Tensor.from_scipy(
        sp.coo_array((np.ones(3), ([1, 0, 1], [0, 1, 0])), shape=(2, 2))
    )
    assert unsorted.__binsparse__()["values"].tolist() == [1, 2]


def test_binsparse_that_others_write() -> None:
    told = {
        "version": "0.1", "format": "CSR", "shape": [5, 5], "number_of_stored_values": 6,
        "data_types": {"pointers_to_1": "uint64", "indices_1": "uint64", "values": "iso[int8]"},
    }  # fmt: skip
    pos, crd = np.array([0, 1, 3, 3, 5, 6], "u8"), np.array([3, 1, 4, 1, 2, 3], "u8")
    obj = Described(
        {"binsparse": told}, pointers_to_1=pos, indices_1=crd, values=np.array([7], "i1")
    )
    t = tp.tensor(obj)
    assert shared(t, pos, crd)
    assert t.to_numpy().tolist()[0] == [0, 0, 0, 7, 0]
    with pytest.raises(tp.StructureError, match="vector of 6 values"):
        absurd = {**told, "number_of_stored_values": 10**15}
        tp.tensor(Described(absurd, pointers_to_1=pos, indices_1=crd, values=np.ones(1)))
    lower = {**told, "shape": [2, 2], "structure": "skew_symmetric_lower",
             "data_types": {"values": "int8"}, "number_of_stored_values": 1}  # fmt: skip
    arrays = {
        "pointers_to_1": np.array([0, 0, 1]),
        "indices_1": np.array([0]),
        "values": np.ones(1),
    }
    assert tp.tensor(Described(lower, **arrays)).to_numpy().tolist() == [[0, -1], [1, 0]]
    with pytest.raises(FormatError, match="found no version"):
        tp.tensor(Described({"binsparse": {}}))
    with pytest.raises(FormatError, match=r"DCSR.*found 'XYZ'"):
        tp.tensor(Described({**told, "format": "XYZ"}))
    with pytest.raises(tp.StructureError, match="an array indices_1, found pointers_to_1"):
        tp.tensor(Described(told, pointers_to_1=pos, values=np.array([7], "i1")))

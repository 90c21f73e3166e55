"""The counting sort that assembles matrices: every type, directly and through buckets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.toolchain.compiler import Compiler
from codegen.types import INT32
from taco_py.data.convert import order_entries as sorting
from taco_py.data.convert.order_entries import bucket_bits, count_starts, order_entries
from taco_py.data.kernels import KERNELS

N = 700


@pytest.fixture(params=[1, 2, 3], ids=lambda n: f"{n} threads")
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(KERNELS, "_most_threads", request.param)
    monkeypatch.setattr(sorting, "LEAST", 1)
    monkeypatch.setattr(sorting, "PARALLEL", 1)
    return int(request.param)


def matrix(dtype: str = "float64", index: str = "int32", skewed: bool = False) -> Any:
    """With empty rows and columns; skewed, half of it is in one row and one column."""
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(3, N - 5, (2, 5000))
    if skewed:
        rows[::2], columns[1::2] = 9, 11
    made = sp.coo_array((rng.integers(1, 9, 5000), (rows, columns)), shape=(N, N + 50)).tocsr()
    made.indptr, made.indices = made.indptr.astype(index), made.indices.astype(index)
    made.data = made.data.astype(dtype)
    return made


@pytest.mark.parametrize("bits", [0, 3, 6, 9])
@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize(
    ("dtype", "index"),
    [("float64", "int32"), ("complex128", "int32"), ("float32", "int64"), ("int16", "int32"),
     ("bool", "int64"), ("complex128", "int64")],
)  # fmt: skip
def test_csr_to_csc(
    dtype: str, index: str, skewed: bool, bits: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "bucket_bits", lambda *_: bits)
    given = matrix(dtype, index, skewed)
    wanted = given.tocsc()
    found = order_entries(given.indices, given.indices, given.data, N + 50, given.indptr)
    assert found is not None
    for one, other in zip(found, (wanted.indptr, wanted.indices, wanted.data), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[1].dtype == index and found[2].dtype == given.dtype


@pytest.mark.parametrize("order", ["rows", "columns", "any", "twice"])
@pytest.mark.parametrize("target", ["ds", "ds:1,0"])
def test_coordinates_to_rows(order: str, target: str, threads: int) -> None:
    entries = matrix().tocoo()
    place = np.random.default_rng(2).permutation(entries.nnz)
    if order == "rows":
        place = np.lexsort((entries.col, entries.row))
    elif order == "columns":
        place = np.lexsort((entries.row, entries.col))
    elif order == "twice":
        place = np.concatenate((place, place[:100]))
    parts = (entries.data[place], (entries.row[place], entries.col[place]))
    given = sp.coo_array(parts, shape=entries.shape)
    found = tp.tensor(given).to_format(target)
    assert str(found.format) == target
    np.testing.assert_array_equal(found.to_numpy(), given.toarray())
    assert found.nnz == entries.nnz


def test_how_entries_lie(threads: int) -> None:
    values = np.zeros(4)
    keys, others = np.array([0, 0, 2, 2], np.int32), np.array([1, 5, 0, 3], np.int32)
    found = count_starts(keys, others, values, 4)
    assert found is not None and found[1:] == (True, True)
    np.testing.assert_array_equal(found[0], [0, 2, 2, 4, 4])
    for more, said in (([1, 5, 3, 3], (True, False)), ([1, 5, 3, 0], (False, False))):
        found = count_starts(keys, np.array(more, np.int32), values, 4)
        assert found is not None and found[1:] == said


def test_buckets_are_for_scattered_keys() -> None:
    near = np.arange(10**6, dtype=np.int32)
    far = np.random.default_rng(0).integers(0, 10**6, 10**6).astype(np.int32)
    assert bucket_bits(near, 10**6, 12) == 0
    assert bucket_bits(far, 10**6, 12) == 11
    assert bucket_bits(far[:1000], 10**6, 12) == 0  # they fit into a cache


def test_csc_of_few_entries_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    given = tp.tensor(matrix())
    few = given.to_format(tp.CSC).to_scipy()
    monkeypatch.setattr(sorting, "LEAST", 1)
    many = given.to_format(tp.CSC).to_scipy()
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name))


def test_threads_are_compiled_in() -> None:
    """OpenMP is asked for where a text says that it is parallel: one in a header says it too."""
    text = sorting._source(INT32, 8).source
    assert "omp parallel" in text
    assert "-fopenmp" in Compiler(("gcc",), "gcc", "", ()).flags_for(text)

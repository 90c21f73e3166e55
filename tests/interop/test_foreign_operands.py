"""Objects of other libraries in calls; Tensors in joblib and dask. Skipped where these are not."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

A = np.array([[0, 1.5, 0, 2], [0, 0, 0, 0], [3, 0, 4, 0]])
X = np.arange(4.0)


def need(name: str) -> Any:
    return pytest.importorskip(name, exc_type=ImportError)


@pytest.mark.parametrize(
    ("library", "kind"),
    [
        ("scipy", "dia_array"), ("scipy", "lil_matrix"), ("torch", "sparse_csr"),
        ("torch", "sparse_coo"), ("torch", "strided"), ("sparse", "COO"), ("sparse", "GCXS"),
        ("pandas", "DataFrame"), ("pandas", "Series"), ("polars", None), ("pyarrow", "Table"),
        ("pyarrow", "SparseCSRMatrix"),
    ],
)  # fmt: skip
def test_calls_take_them(library: str, kind: str | None) -> None:
    if library != "scipy":
        need(library)
    obj = tp.tensor(A, format="csr").to(library, kind)
    for _ in range(2):
        found = tp.einsum("ij,j->i", obj, X)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, A @ X)
        np.testing.assert_array_equal(tp.evaluate("y[i] = B[i,j] * x[j]", B=obj, x=X), A @ X)
    assert "runs      1 kernel" in tp.explain("ij,j->i", obj, X)


def test_sparse_results_over_them_are_tensors_or_scipys() -> None:
    torch = need("torch")
    obj = torch.from_numpy(A).to_sparse_csr()
    found = tp.evaluate("C[i,j] = 2 * A[i,j]", A=obj, format="csr")
    np.testing.assert_array_equal(tp.tensor(found).to_numpy(), 2 * A)


def test_pickles_and_files_of_joblib(tmp_path: Path) -> None:
    t = tp.tensor(A, format="csr")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(t)).to_numpy(), A)
    joblib = need("joblib")
    large = tp.tensor(sp.random_array((300, 300), density=0.1, format="csr"))
    joblib.dump(large, tmp_path / "t.joblib")
    mapped = joblib.load(tmp_path / "t.joblib", mmap_mode="r")
    assert isinstance(mapped.data.values, np.memmap)
    assert not mapped.data.values.flags.writeable
    np.testing.assert_array_equal(mapped.to_numpy(), large.to_numpy())
    np.testing.assert_allclose((mapped @ np.ones(300)).to_numpy(), large.to_numpy().sum(1))
    np.testing.assert_allclose(mapped.sum(0).to_numpy(), large.to_numpy().sum(0))
    work = joblib.Parallel(n_jobs=2, prefer="threads")
    sums = work(joblib.delayed(tp.Tensor.sum)(large, axis=axis) for axis in (0, 1))
    np.testing.assert_allclose(sums[1].to_numpy(), large.to_numpy().sum(1))
    assert joblib.Memory(tmp_path, verbose=0).cache(lambda each: each.nnz)(t) == 4


def test_dask_arrays_have_tensors_for_chunks() -> None:
    da = need("dask.array")
    rng = np.random.default_rng(0)
    matrix = sp.random_array((20, 12), density=0.2, format="csr", rng=rng)
    dense = matrix.toarray()
    x = da.from_array(tp.tensor(matrix), chunks=(8, 5))
    assert isinstance(x._meta, tp.Tensor)
    assert isinstance(x.blocks[0, 0].compute(), tp.Tensor)
    for found, expected in (
        (x, dense), (x.map_blocks(lambda block: block * 2), 2 * dense), (x + x, 2 * dense),
        (x.sum(axis=0), dense.sum(0)), (x.mean(axis=1), dense.mean(1)), (x.T, dense.T),
        (x.max(axis=0), dense.max(0)), (da.concatenate([x, x]), np.concatenate([dense, dense])),
        (x @ x.T, dense @ dense.T), (da.stack([x, x]), np.stack([dense, dense])),
        (da.tensordot(x, x, axes=((0,), (0,))), dense.T @ dense), (x[3:15, ::2], dense[3:15, ::2]),
        (np.exp(x), np.exp(dense)), (x.rechunk((20, 3)), dense),
    ):  # fmt: skip
        computed = found.compute(scheduler="sync")
        assert isinstance(computed, tp.Tensor)
        np.testing.assert_allclose(computed.to_numpy(), expected)
    np.testing.assert_allclose(x.sum().compute(scheduler="sync"), dense.sum())
    np.testing.assert_allclose(tp.einsum("ij,j->i", x, np.ones(12)), dense.sum(1))


def test_dask_delayed_takes_tensors() -> None:
    dask = need("dask")
    t = tp.tensor(A, format="csr")
    work = dask.delayed(tp.einsum)("ij,j->i", t, dask.delayed(X))
    np.testing.assert_array_equal(work.compute(scheduler="threads"), A @ X)
    tokenize = need("dask.base").tokenize
    assert tokenize(t) == tokenize(tp.tensor(A, format="csr"))
    assert tokenize(t) != tokenize(tp.tensor(2 * A, format="csr"))
    assert tokenize(t) != tokenize(tp.tensor(A, format="csc"))


def test_tensors_like_others() -> None:
    t = tp.tensor(A.astype("float32"), format="csr")
    assert np.zeros_like(t).nnz == 0
    assert np.ones_like(t, dtype=int, shape=(2,)).to_numpy().tolist() == [1, 1]
    assert np.full_like(t, 7).fill_value == 7
    assert np.empty_like(t, shape=()).to_numpy() == 0
    assert np.ones_like(t).dtype == np.float32

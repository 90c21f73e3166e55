"""Limits of memory hold for what NumPy computes of Tensors; unsigned positions are positions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

N = 300
DENSE = tp.tensor(np.ones((N, N)))
SPARSE = tp.tensor(sp.random_array((N, N), density=0.9, format="csr", rng=0))
BACK = np.arange(N)[::-1].copy()
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda T: T + T,
    "sort": np.sort,
    "concatenate": lambda T: np.concatenate([T, T]),
    "stack": lambda T: np.stack([T, T]),
    "tile": lambda T: np.tile(T, (2, 2)),
    "repeat": lambda T: np.repeat(T, 2, axis=0),
    "roll": lambda T: np.roll(T, 1, axis=0),
    "cumsum": lambda T: np.cumsum(T.to_dense(), axis=0),
    "take": lambda T: np.take(T, BACK, axis=0),
    "positions": lambda T: T[BACK],
    "mask": lambda T: T[T > 0],
    "triu": lambda T: np.triu(T, -N),
    "nonzero": np.nonzero,
    "take_along_axis": lambda T: np.take_along_axis(T, np.tile(BACK, (N, 1)), 1),
    "to_coo": lambda T: T.to_coo(),
    "tolist": lambda T: T.tolist(),
    "from_coo": lambda T: tp.Tensor.from_coo(np.nonzero(T.to_numpy() + 1), np.ones(N * N), (N, N)),
    "fuse": lambda T: tp.fuse(lambda A: np.concatenate([A, A]))(T),
    "lil": lambda T: tp.tensor(sp.lil_array(np.ones(T.shape))),
}


@pytest.fixture
def small_limit() -> Iterator[None]:
    tp.set_memory_limit("100kB")
    yield
    tp.set_memory_limit(None)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("T", [DENSE, SPARSE], ids=["dense", "sparse"])
def test_results_beyond_the_limit_are_refused(small_limit: None, T: Any, name: str) -> None:
    with pytest.raises(tp.OutOfMemoryError, match=r"found a limit of 100\.0 kB"):
        FUNCTIONS[name](T)


def test_views_and_what_fits_are_allowed(small_limit: None) -> None:
    assert np.reshape(DENSE, (N // 2, 2 * N)).shape == (N // 2, 2 * N)
    assert DENSE.T.shape == (N, N)
    assert np.sort(tp.tensor(np.ones((30, 30)))).shape == (30, 30)
    assert np.tile(tp.tensor(sp.eye_array(3)), (2, 2)).nnz == 12


def test_a_file_beyond_the_limit_is_refused(small_limit: None, tmp_path: Path) -> None:
    tp.write(SPARSE, tmp_path / "a.npz")
    with pytest.raises(tp.OutOfMemoryError, match="limit"):
        tp.read(tmp_path / "a.npz")


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.uint16, np.uint32, np.uint64])
@pytest.mark.parametrize("form", ["dd", "ds"])
def test_positions_of_any_type_of_integers(dtype: Any, form: str) -> None:
    x = np.arange(600.0).reshape(2, 300) * (np.arange(300) % 3 > 0)
    T, p = tp.tensor(x, format=form), np.array([1, 0], dtype)
    signed = p.astype(np.int64)  # NumPy itself repeats by no uint64
    for name, take in {
        "rows": lambda T, p: T[p],
        "columns": lambda T, p: T[:, p],
        "pairs": lambda T, p: T[p, p],
        "take": lambda T, p: np.take(T, p, axis=1),
        "along": lambda T, p: np.take_along_axis(T, p[:, None], 1),
        "repeat": lambda T, p: np.repeat(T, p, axis=0),
        "one": lambda T, p: T[p[0]],
        "slice": lambda T, p: T[p[1] : p[0]],
    }.items():
        found = take(T, p)
        found = found.to_numpy() if isinstance(found, tp.Tensor) else found
        np.testing.assert_array_equal(found, take(x, signed), err_msg=name)


def test_a_negative_position_of_a_narrow_type_counts_from_a_far_end() -> None:
    x = np.arange(300.0)
    assert tp.tensor(x, format="s")[np.array([-1, 5], np.int8)].to_numpy().tolist() == [299.0, 5.0]

"""Roads into symmetric storage and back; compiled loops stay within arrays that contradict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.convert.assemble_rows import assemble_rows
from taco_py.data.convert.list_rows import list_rows
from taco_py.data.convert.triangle_of_rows import rows_of_triangle, triangle_of_rows
from taco_py.data.storage.check import check
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.formats import SYM

Array = np.ndarray[Any, Any]


def symmetric(n: int, density: float, dtype: str) -> Array:
    random = np.random.default_rng(n)
    half = np.where(random.random((n, n)) < density, random.integers(1, 4, (n, n)), 0)
    return (half + half.T).astype(dtype)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ["float64", "complex64", "int8", "bool", "float16"])
@pytest.mark.parametrize("density", [0.0, 0.1, 1.0])
def test_triangles_there_and_back(density: float, dtype: str, index: str) -> None:
    array = symmetric(17, density, dtype)
    rows = tp.tensor(array, format="csr", index_dtype=index)
    stored = triangle_of_rows(rows.data, SYM)
    assert stored is not None
    check(stored)
    expected = rows.to_format("sym").stored.data  # through coordinates: entries are few
    for mine, theirs in (
        (stored.values, expected.values),
        (stored.levels[1].pos, expected.levels[1].pos),
        (stored.levels[1].crd, expected.levels[1].crd),
    ):
        np.testing.assert_array_equal(mine, theirs)
    back = rows_of_triangle(stored, SYM, array.shape, True)
    assert back is not None
    check(back)
    np.testing.assert_array_equal(tp.Tensor(back).to_numpy(), array)
    assert back.nnz == np.count_nonzero(array)


def test_another_matrix_is_declined_and_then_refused() -> None:
    array = symmetric(300, 1.0, "float64")
    array[7, 2] = 9.0
    rows = tp.tensor(array, format="csr")
    assert triangle_of_rows(rows.data, SYM) is None
    with pytest.raises(tp.FormatError, match=r"another number"):
        rows.to_format("sym")


def test_many_entries_of_a_symmetric_matrix() -> None:
    array = symmetric(300, 0.8, "float64")
    stored = tp.tensor(array, format="sym")
    np.testing.assert_array_equal(stored.to_format("csr").to_numpy(), array)


@pytest.mark.parametrize("pos", [[0, 9, 2], [1, 1, 2], [0, 1, 9]])
def test_rows_beyond_the_arrays_are_declined(pos: list[int]) -> None:
    arrays = LevelArrays(np.array(pos, np.int32), np.array([0, 1], np.int32))
    data = TensorData(tp.CSR, (2, 2), (LevelArrays(), arrays), np.ones(2), True, True)
    assert assemble_rows(data, tp.ELL) is None
    assert triangle_of_rows(data, SYM) is None


def test_units_beyond_the_arrays_are_declined() -> None:
    sell = tp.tensor(np.ones((4, 3)), format="sell(2)")
    data = sell.stored.data  # type: ignore[attr-defined]
    assert list_rows(data, sell.format, (4, 3), True) is not None  # type: ignore[arg-type]
    data.levels[1].pos[1] = 99
    assert list_rows(data, sell.format, (4, 3), True) is None  # type: ignore[arg-type]


def test_a_transposed_matrix_has_positions_within_its_arrays() -> None:
    arrays = LevelArrays(np.array([0, 1, 9], np.int32), np.array([0, 1], np.int32))
    data = TensorData(tp.CSR, (2, 2), (LevelArrays(), arrays), np.ones(2), True, True)
    with pytest.raises(tp.StructureError, match="from 0 to at most 2"):
        tp.Tensor(data).to_format("csc")

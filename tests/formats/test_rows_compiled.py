"""Conversions by rows that are compiled: as those through coordinates, whatever is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.convert import remap as roads
from taco_py.data.convert.assemble_rows import assemble_rows, is_assembled
from taco_py.data.convert.list_rows import is_listed, list_rows
from taco_py.data.storage.check import check
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.language.diagnostics.errors import StructureError
from taco_py.language.formats import RemappedFormat, remapped

ASSEMBLED = ("ell", "sell(4)", "rle", "dia", "nm(3,4)")
LISTED = (*ASSEMBLED, "sdia(4)", "bsr(2,3)")
TYPES = (("float64", "int32"), ("complex64", "int64"))
DATA = (0.3, 0.0, 1.0)


def matrix(density: float, dtype: str) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(3)
    found = np.where(random.random((11, 14)) < density, random.integers(1, 3, (11, 14)), 0)
    found[:, 3::4] = 0  # nm(3,4)
    if density == 0.3:
        found[4], found[7, :] = 0, [1, 1, 1, 0, 2, 1, 1, 0, 1, 1, 1, 0, 2, 2]
    return found.astype(dtype)


def form(text: str) -> RemappedFormat:
    found = remapped(text)
    assert found is not None
    return found


def assert_same(found: TensorData | None, wanted: TensorData) -> None:
    assert found is not None
    check(found)
    for own, other in zip(found.levels, wanted.levels, strict=True):
        for a, b in ((own.pos, other.pos), (own.crd, other.crd)):
            assert (a is None) == (b is None)
            if a is not None and b is not None:
                assert a.dtype == b.dtype
                np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(found.values, wanted.values)
    assert found.shape == wanted.shape


@pytest.mark.parametrize(("dtype", "index"), TYPES)
@pytest.mark.parametrize("text", ASSEMBLED)
def test_assembled_as_through_coordinates(text: str, dtype: str, index: str) -> None:
    format = form(text)
    assert is_assembled(format)
    for density in DATA:
        csr = tp.tensor(matrix(density, dtype), format="csr", index_dtype=index)
        own = roads.in_order(csr.data)
        found = assemble_rows(own, format)
        if density or text != "dia":  # of no entries, no table of diagonals is worth it
            assert_same(found, roads._by_coordinates(own, format))


@pytest.mark.parametrize(("dtype", "index"), TYPES)
@pytest.mark.parametrize("text", LISTED)
def test_listed_as_through_coordinates(text: str, dtype: str, index: str) -> None:
    format = form(text)
    assert is_listed(format)
    for density in DATA:
        array = matrix(density, dtype)
        tensor: Any = tp.tensor(array, format=text, index_dtype=index)
        stored = tensor.stored.data
        for drop in (True, False):
            wanted = roads.unmap(stored, format, array.shape, drop_fill=drop)
            assert_same(list_rows(stored, format, array.shape, drop), wanted)


def test_values_are_compared_by_their_bits() -> None:
    values = np.array([0.0, -0.0, np.nan, np.nan, 1.0])
    crd = np.arange(5, dtype=np.int32)
    levels = (LevelArrays(), LevelArrays(np.array([0, 5], np.int32), crd))
    data = TensorData(tp.CSR, (1, 5), levels, values, True, True)
    found = assemble_rows(data, form("rle"))
    assert found is not None
    assert found.levels[2].crd is not None
    assert found.levels[2].crd.tolist() == [1, 2, 4, 5]
    back = list_rows(found, form("rle"), (1, 5), True)
    assert back is not None
    assert back.values.tobytes() == values.tobytes()


def test_columns_that_are_none_are_refused_before_anything_is_written() -> None:
    crd = np.array([0, 9], np.int32)
    levels = (LevelArrays(), LevelArrays(np.array([0, 1, 2], np.int32), crd))
    data = TensorData(tp.CSR, (2, 3), levels, np.ones(2), True, True)
    for text in ASSEMBLED:
        with pytest.raises(StructureError, match="columns from 0 to 2"):
            assemble_rows(data, form(text))


def test_what_asks_for_entries_of_other_rows_takes_another_road() -> None:
    assert not is_assembled(form("sdia(8)"))
    assert not is_assembled(form("blocked(2,1,ss)"))
    assert not is_listed(form("sym"))


def test_too_many_entries_of_a_group_are_named() -> None:
    full = tp.tensor(np.ones((200, 200)), format="csr")
    with pytest.raises(tp.FormatError, match="at most 2 entries for each i, j/4, found 4"):
        full.to_format("nm(2,4)")


def test_diagonals_that_reach_few_rows_are_not_looked_for_in_all() -> None:
    n = 600
    array = np.fliplr(np.eye(n))
    tensor: Any = tp.tensor(array, format="dia")
    assert list_rows(tensor.stored.data, form("dia"), (n, n), True) is None
    np.testing.assert_array_equal(tensor.to_format("csr").to_numpy(), array)


def test_rows_out_of_order_are_sorted() -> None:
    tensor: Any = tp.tensor(np.arange(1.0, 7.0).reshape(2, 3), format="ell")
    stored = tensor.stored.data
    crd = stored.levels[2].crd.reshape(2, 3)[:, ::-1].reshape(-1).copy()
    levels = (*stored.levels[:2], LevelArrays(crd=crd))
    turned = TensorData(stored.format, stored.shape, levels, stored.values)
    assert list_rows(turned, form("ell"), (2, 3), True) is None
    plain = roads.unmap(turned, form("ell"), (2, 3))
    assert plain.values.tolist() == [3.0, 2.0, 1.0, 6.0, 5.0, 4.0]

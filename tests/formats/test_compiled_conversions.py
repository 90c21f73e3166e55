"""Conversions that are compiled where entries are many: here they are for few, too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.convert import assemble_units, list_units, remap
from taco_py.storage.check import check
from taco_py.storage.tensor_data import LevelArrays, TensorData

FORMATS = ("ell", "sell(4)", "nm(4,4)", "dia", "rle", "sdia(8)", "bsr(3,2)", "blocked(3,1,ss)", "sym")
CASES = (
    *((form, "float64", "int32") for form in FORMATS),
    *((form, "complex128", "int64") for form in ("sell(4)", "dia", "rle", "sym")),
    ("dia", "complex64", "int32"), ("dia", "int8", "int32"), ("dia", "float16", "int32"),
)  # fmt: skip
Array = np.ndarray[Any, Any]


@pytest.fixture
def for_few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Take compiled roads whatever the number of entries."""
    for module in (assemble_units, list_units, remap):
        monkeypatch.setattr(module, "LEAST", 0)
    yield


def numbers(shape: tuple[int, int], density: float, dtype: str) -> Array:
    random = np.random.default_rng(3)
    found = np.where(random.random(shape) < density, random.integers(1, 3, shape), 0).astype(dtype)
    return found * (1j if dtype.startswith("complex") else 1)


@pytest.mark.parametrize(("form", "dtype", "index"), CASES)
def test_units_there_and_back(form: str, dtype: str, index: str, for_few: None) -> None:
    for density in (0.0, 0.2, 1.0):
        array = numbers((23, 23) if form == "sym" else (23, 18), density, dtype)
        array = array + array.T if form == "sym" else array
        stored = tp.tensor(array, format="csr", index_dtype=index).to_format(form)
        check(stored.stored.data)
        back = stored.to_format("csr")
        check(back.data)
        assert back.nnz == np.count_nonzero(array)
        np.testing.assert_array_equal(back.to_numpy(), array)


@pytest.mark.parametrize("form", [f for f in FORMATS if not f.startswith("blocked")])
def test_what_is_stored_is_what_coordinates_give(form: str, for_few: None) -> None:
    array = numbers((30, 30), 0.3, "float64")
    array = array + array.T if form == "sym" else array
    rows, wanted = tp.tensor(array, format="csr").data, tp.formats.remapped(form)
    found, expected = remap.remap(rows, wanted), remap.through_coordinates(rows, wanted)
    assert found.shape == expected.shape
    for one, other in zip(found.levels, expected.levels, strict=True):
        for mine, theirs in ((one.pos, other.pos), (one.crd, other.crd)):
            assert (mine is None) == (theirs is None)
            if mine is not None and not form.startswith("sdia"):
                np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(found.values, expected.values)


def test_each_format_has_a_road_of_its_own(for_few: None) -> None:
    array = numbers((30, 30), 0.3, "float64")
    rows = tp.tensor(array + array.T, format="csr").data
    for form in FORMATS:
        wanted = tp.formats.remapped(form)
        took = [r.take(rows, wanted) is not None for r in remap.ROADS if r.fits(rows, wanted)]
        assert any(took) or form.startswith("blocked"), form
        stored = remap.remap(rows, wanted)
        road = next(road for road in remap.ROADS_BACK if road.fits(stored, wanted))
        assert road.take(stored, wanted, rows.shape, True) is not None, form


def test_many_entries_take_them() -> None:
    n = 12_000
    L = sp.diags_array([np.ones(n - 1), 2 * np.ones(n), np.ones(n - 1)], offsets=[-1, 0, 1]).tocsr()
    for form in ("ell", "dia", "sym"):
        back = tp.tensor(L, format=form).to_format("csr").to_scipy()
        assert (back != L).nnz == 0 and back.nnz == L.nnz


def test_entries_that_contradict_are_left_to_others(for_few: None) -> None:
    ell = tp.formats.remapped("ell")
    for pos, crd in (
        ([0, 9, 2], [0, 1]),  # beyond the arrays in between
        ([0, 1, 2], [0, 7]),  # beyond the columns
        ([0, 1, 2], [0, -1]),
        ([0, 2, 2], [1, 0]),  # descending
    ):
        arrays = LevelArrays(np.array(pos, np.int32), np.array(crd, np.int32))
        data = TensorData(tp.CSR, (2, 3), (LevelArrays(), arrays), np.ones(2))
        assert assemble_units.units_of_rows(data, ell) is None


def test_stored_units_that_contradict_are_left_to_others(for_few: None) -> None:
    sell = tp.tensor(np.ones((4, 3)), format="sell(2)")
    data, form = sell.stored.data, sell.format
    pos = data.levels[1].pos
    assert list_units.rows_of_units(data, form, (4, 3), True) is not None
    pos[1] = 99
    assert list_units.rows_of_units(data, form, (4, 3), True) is None


def test_too_many_entries_of_a_group_are_refused(for_few: None) -> None:
    with pytest.raises(tp.FormatError, match="at most 2 entries for each i, j/4, found 4"):
        tp.tensor(tp.tensor(np.ones((2, 4)), format="csr"), format="nm(2,4)")

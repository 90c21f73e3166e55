"""Operands whose entries are looked up beside others that are walked, in every kind of level."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.data.convert.locate import located, located_format
from taco_py.data.storage.pack import pack_coo, to_dense, unpack
from taco_py.language.formats import Format

VECTORS = ([7.0, 0, 0, 0, 0], [0, 7.0, 0, 0, 0], [1.0, 2, 3, 4, 5], [0.0] * 5, [0, 0, 4.0, 0, -1.0])
MATRIX = np.array([[1.0, 2, 3, 4, 5], [0, 1, 0, 1, 0]])


@pytest.mark.parametrize("form", ["s", "u", "m", "h", "b", "r"])
def test_each_entry_stands_at_its_coordinate(form: str) -> None:
    for values in VECTORS:
        data = tp.tensor(np.array(values), format=form).data
        found = located(data)
        coordinates, entries = unpack(data)
        unit = np.zeros(len(entries), np.int32)
        expected = pack_coo((*coordinates, unit), entries, (5, 1), located_format(1), np.int32)
        assert found.format == located_format(1)
        np.testing.assert_array_equal(to_dense(found), to_dense(expected))
        np.testing.assert_array_equal(found.levels[1].pos, expected.levels[1].pos)


def test_of_a_list_with_room_behind_its_entries() -> None:
    data = pack_coo((np.array([1, 3]),), np.array([5.0, 6.0]), (5,), Format.parse("s"))
    (level,) = data.levels
    longer = type(level)(level.pos, np.append(level.crd, 0).astype(level.crd.dtype))
    wide = type(data)(data.format, data.shape, (longer,), np.append(data.values, 9.0), True, True)
    np.testing.assert_array_equal(to_dense(located(wide)), to_dense(located(data)))


@pytest.mark.parametrize(("outer", "inner"), product("shm", "hm"))
def test_products_with_vectors(outer: str, inner: str) -> None:
    matrix = tp.tensor(MATRIX, format=outer + inner)
    for values, form in product(VECTORS[:3], ("m", "h", "s")):
        x = tp.tensor(np.array(values), format=form)
        found: Any = matrix @ x
        found = found.to_numpy() if isinstance(found, tp.Tensor) else found
        np.testing.assert_array_equal(found, MATRIX @ np.array(values))


@pytest.mark.parametrize("form", ["m", "h", "s", "b"])
@pytest.mark.parametrize("text", ["Y[i] = A[i+2*k] * B[k]", "Y[i] = A[2*i+k] * B[k]"])
def test_in_subscripts(text: str, form: str) -> None:
    matrix = tp.tensor(np.array([3.0, 2, 1, 0, -1]), format="s")
    for values in ([1.0, 0], [0, 0, 4.0], [1.0, 2.0, 3.0]):
        operands = {"A": matrix, "B": tp.tensor(np.array(values), format=form)}
        found = tp.evaluate(text, operands, border="fill", shape=5)
        found = found.to_numpy() if isinstance(found, tp.Tensor) else found
        expected = tp.evaluate_dense(text, operands, border="fill", shape=5)
        np.testing.assert_array_equal(found, expected)

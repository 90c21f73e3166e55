"""The host's look at the order of coordinates finds what scipy finds, and reads nothing outside."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given
from scipy.sparse import _sparsetools

import taco_py as tp
from taco_py.data.interop.scipy_arrays import is_canonical
from taco_py.data.kernels import KERNELS

ROWS = st.lists(st.lists(st.integers(0, 6), max_size=5), min_size=1, max_size=8)


@pytest.fixture(autouse=True, scope="module")
def host() -> None:
    tp.einsum("i,i->", np.ones(3), np.ones(3))
    assert KERNELS.host_functions


@given(ROWS, st.sampled_from([np.int32, np.int64]), st.booleans(), st.integers(0, 2))
@example([[0, 1], [], [], [0]], np.int32, False, 1)
@example([[], [3, 3], []], np.int64, False, 0)
def test_what_ascends(rows: list[list[int]], dtype: type, sort: bool, ahead: int) -> None:
    """Also where the first row begins behind the start of the array, and others follow its end."""
    rows = [sorted(set(row)) for row in rows] if sort else rows
    found = [5] * ahead + [each for row in rows for each in row] + [0]
    crd: Any = np.array(found, dtype)
    pos: Any = np.cumsum([ahead, *map(len, rows)]).astype(dtype)
    expected = all(a < b for row in rows for a, b in pairwise(row))
    assert is_canonical(pos, crd) is expected
    assert _sparsetools.csr_has_canonical_format(len(rows), pos, crd) == expected


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("pos", [[0, 2, 1, 3], [-1, 0, 3], [0, 2, 9], [0, 100, 3]])
def test_pointers_that_contradict_the_coordinates(pos: list[int], dtype: type) -> None:
    assert not is_canonical(np.array(pos, dtype), np.array([0, 1, 2], dtype))


def test_long_rows_are_counted_without_overflow() -> None:
    crd = np.zeros(3 * 4096 + 7, np.int32)
    pos = np.arange(len(crd) + 1, dtype=np.int32)
    assert is_canonical(pos, crd)
    assert not is_canonical(np.array([0, len(crd)], np.int32), crd)


def test_arrays_with_gaps_are_left_to_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    crd = np.array([0, 9, 1, 9, 2, 9], np.int32)[::2]
    assert is_canonical(np.array([0, 3], np.int32), crd)
    monkeypatch.setattr(KERNELS, "host_functions", {})
    assert is_canonical(np.array([0, 3], np.int32), np.arange(3, dtype=np.int32))


@pytest.mark.parametrize("kind", ["csr_array", "csr_matrix", "csc_array", "csc_matrix"])
def test_results_are_matrices_of_their_own(kind: str) -> None:
    """Results share nothing, whichever matrix they were copied from."""
    make = getattr(sp, kind)
    a, b = make(np.eye(3)), make(np.ones((3, 3)))
    first = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=a, B=b)
    second = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=b, B=b)
    first.check_format(full_check=True)
    assert type(first) is make and first.has_canonical_format
    np.testing.assert_array_equal(first.toarray(), np.eye(3) + 1)
    np.testing.assert_array_equal(second.toarray(), np.full((3, 3), 2))
    first.resize((2, 2))
    first.data[:] = 7
    third = tp.evaluate("C[i,j] = A[i,j] + B[i,j]", A=b, B=b)
    assert third.shape == (3, 3)
    np.testing.assert_array_equal(third.toarray(), second.toarray())

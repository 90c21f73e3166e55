"""Coordinates that neighbouring rows have together, against sets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from taco_py.arguments.operands import bind_operands
from taco_py.compiler.cost.spread import Entries
from taco_py.report.limits import window_unions
from taco_py.report.limits.window_unions import Unions

MATRIX = sp.random_array(
    (23, 40), density=0.2, format="csr", rng=np.random.default_rng(1)
)  # fmt: skip


def unions(matrix: sp.csr_array) -> Unions:
    (given,) = bind_operands({"A": matrix}).values()
    assert given.operand.entries is not None
    return Unions(Entries(given.data))


@pytest.mark.parametrize("rows", [1, 2, 5, 23])
def test_windows_have_what_their_rows_have(rows: int) -> None:
    starts = range(0, 23, rows)
    sets = [{*MATRIX[start : start + rows].indices.tolist()} for start in starts]
    found = unions(MATRIX).distinct(1, rows)
    assert found == pytest.approx(sum(map(len, sets)) / len(sets))


def test_many_entries_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_unions, "COUNTED", 60)
    sampled = unions(MATRIX).distinct(1, 2)
    monkeypatch.setattr(window_unions, "COUNTED", MATRIX.nnz)
    exact = unions(MATRIX).distinct(1, 2)
    assert 0 < sampled <= exact * 60 / MATRIX.nnz * 1.2  # windows that nobody looks at have none


def test_rows_in_the_middle_do_not_speak_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows but those in the middle have the same four coordinates."""
    columns = np.tile(np.arange(4), (200, 1))
    columns[90:110] = 4 + np.arange(80).reshape(20, 4)
    matrix = sp.csr_array((np.ones(800), columns.ravel(), 4 * np.arange(201)), shape=(200, 84))
    exact = unions(matrix).distinct(1, 20)
    monkeypatch.setattr(window_unions, "COUNTED", 80)
    assert 0 < unions(matrix).distinct(1, 20) <= exact


def test_nothing_is_stored_nowhere() -> None:
    assert unions(sp.csr_array((4, 5))).distinct(1, 2) == 0.0

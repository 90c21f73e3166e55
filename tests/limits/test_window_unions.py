"""Coordinates that neighbouring rows have together, against sets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from taco_py.cost.spread import Entries
from taco_py.limits import window_unions
from taco_py.limits.window_unions import Unions
from taco_py.values.operands import give

MATRIX = sp.random_array(
    (23, 40), density=0.2, format="csr", rng=np.random.default_rng(1)
)  # fmt: skip


def unions(matrix: sp.csr_array) -> Unions:
    (given,) = give({"A": matrix}).values()
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
    sampled, exact = unions(MATRIX).distinct(1, 2), unions(MATRIX).distinct(1, 2)
    assert sampled == exact and 0.5 < sampled / 14 < 2  # two rows of 8 of 40 have about 14


def test_nothing_is_stored_nowhere() -> None:
    assert unions(sp.csr_array((4, 5))).distinct(1, 2) == 0.0

"""A sample of the grid: functions, operators, reductions and updates in all formats and types."""

from __future__ import annotations

import pytest

from taco_py.language.notation.functions.function_table import COMPOSED, FUNCTIONS
from tests.language.cases import NUMPY
from tests.language.grid import Cell, cells, drawn, tried

FEW, MANY = 120, 240


def test_each_function_is_tried() -> None:
    assert {*FUNCTIONS, *COMPOSED} - {*NUMPY} == {"stored"}


def test_the_grid_has_20000_cases() -> None:
    assert sum(1 for _ in cells()) * 5 > 20_000


@pytest.mark.rotating(2)
@pytest.mark.parametrize("part", range(8))
def test_sample(part: int, thorough: bool) -> None:
    wrong = [
        f"{cell} {data}: {found}"
        for cell in _sample(part, MANY if thorough else FEW)
        for found, data in tried(cell, 0)
        if found not in ("equal", "refused")
    ]
    assert not wrong, "\n".join(wrong)


def _sample(part: int, count: int) -> list[Cell]:
    return drawn(count, 0)[part::8]

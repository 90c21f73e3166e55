"""The share of tuples at which an expression is not zero: an access read twice counts once."""

from __future__ import annotations

import pytest

from taco_py.compiler.cost.sets import One
from taco_py.compiler.cost.shares import independent
from taco_py.language.notation.parser import parse_assignment

SHARES = {"A": 0.01, "B": 0.5, "x": 1.0}


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("A[i,j] * B[i,j]", 0.005),
        ("A[i,j] * A[i,j]", 0.01),
        ("A[i,j] + A[i,j]", 0.01),
        ("A[i,j] + B[i,j]", 0.51),
        ("A[i,j] * B[i,j] + A[i,j] * x[j]", 0.01),
        ("A[i,j] + 1", 1.0),
    ],
)
def test_an_access_that_is_read_again_asks_for_nothing_more(text: str, share: float) -> None:
    value = parse_assignment(f"y[i,j] = {text}").value
    found = independent(value, One(frozenset("ij")), lambda access: SHARES[access.tensor])
    assert found == pytest.approx(share)

"""Schedules of fused loops: compared without what makes no difference."""

from __future__ import annotations

from itertools import combinations
from string import ascii_lowercase

from taco_py.compiler.asymptotic.fused import _factors
from tests.problems import assignment


def test_factors_have_no_order_whatever_their_indices_are_called() -> None:
    """Nothing here may depend on the order of a hash, which differs from process to process."""
    for i, j in combinations(ascii_lowercase, 2):
        one = assignment(f"Z[{i},{j}] = A[{i},{j}] * B[{j},{i}]").value
        other = assignment(f"Z[{i},{j}] = B[{i},{j}] * A[{j},{i}]").value
        assert _factors(one) == _factors(other)

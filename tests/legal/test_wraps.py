"""What integers wrap to where nothing is stored, in the expressions that read it."""

from __future__ import annotations

import numpy as np
import pytest

from taco_py.language.legal.absent import fill_of
from taco_py.language.legal.wraps import with_wraps
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.rewrites.reduce import insert_reductions
from taco_py.planner.ir.parser import parse_typed
from tests.problems import assignment

DTYPES = {
    "A": np.dtype(np.uint8), "L": np.dtype(np.uint64), "S": np.dtype(np.int8),
    "B": np.dtype(np.uint8), "T": np.dtype(bool), "x": np.dtype(np.uint8),
    "f": np.dtype(np.float64),
}  # fmt: skip
FULL = ("x", "f")


def _fill(access: Access) -> int | None:
    return None if access.tensor in FULL else 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A[i] - 1 > 0", "wrapped(A[i] - 1, 255) > 0"),
        ("(A[i] - 1) * f[i]", "wrapped(A[i] - 1, 255) * f[i]"),
        ("~A[i] // x[i]", "wrapped(~A[i], 255) // x[i]"),
        ("max(j, B[i,j] - 1)", "max(j, wrapped(B[i,j] - 1, 255))"),
        ("S[i] + 100 + 100 > 0", "wrapped(S[i] + 100 + 100, -56) > 0"),
        ("A[i] + 200 + 56", "wrapped(A[i] + 200 + 56, 0)"),
        ("(L[i] - 1) & 7", "wrapped(L[i] - 1, 18446744073709551615) & 7"),
        ("L[i] - 1 + {0}", "wrapped(L[i] - 1, 18446744073709551615) + {0}"),
        ("A[i] - 1", None), ("(A[i] - 1) * x[i] + x[i]", None), ("x[i] - 1 > 0", None),
        ("S[i] - 1 > 0", None), ("(A[i] - x[i] - 1) // 2", None),
        ("sum(j, (B[j] - 1) * x[i])", None),
    ],
)  # fmt: skip
def test_what_is_written(before: str, after: str | None) -> None:
    given = insert_reductions(assignment(f"r[i] = {before.format(2**63 + 1)}"))
    found = with_wraps(given, _fill, DTYPES)
    wanted = given if after is None else parse_typed(f"r[i] = {after.format(2**63 + 1)}")
    assert found == wanted
    assert with_wraps(found, _fill, DTYPES) == found


@pytest.mark.parametrize(
    ("text", "fill"),
    [
        ("A[i] - 1 > 0", True), ("(A[i] - 1) / 2", 127.5), ("~(L[i] << 1) >> 63", 1),
        ("-(S[i] - 100 - 28) / 2", -64), ("abs(S[i] - 100 - 28) / 2", -64), ("~T[i] == True", True),
        ("A[i] < 300", True), ("L[i] > -1", True), ("L[i] - 1 > S[i] - 1", True),
        ("(A[i] - 1) * f[i]", None),
    ],
)  # fmt: skip
def test_the_fill_value_then_needs_no_types(text: str, fill: object) -> None:
    given = assignment(f"r[i] = {text}")
    found = fill_of(with_wraps(given, _fill, DTYPES).value, _fill)
    assert found == fill == fill_of(given.value, _fill, DTYPES)

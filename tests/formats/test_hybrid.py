"""Matrices as sums of two: what fills the units of a format, and the rest in CSR."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp

FORMATS = ["sdia(8)", "sdia(3)", "dia", "ell", "sell(4)", "bsr(2,3)", "blocked(2,2,ss)"]


def _matrix(m: int, n: int, seed: int, density: float = 0.3) -> Any:
    rng = np.random.default_rng(seed)
    array = rng.integers(1, 9, (m, n)) * (rng.random((m, n)) < density)
    array[np.arange(min(m, n)), np.arange(min(m, n))] = 9
    return sp.csr_array(array.astype(float))


@pytest.mark.parametrize("form", FORMATS)
@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 999), st.sampled_from([None, 0.4, 1]))
def test_each_entry_is_in_one_part(
    form: str, m: int, n: int, seed: int, fill: float | None
) -> None:
    A = _matrix(m, n, seed)
    first, rest = (part.to_numpy() for part in tp.hybrid(A, form, fill))
    assert np.array_equal(first + rest, A.toarray())
    assert not (first * rest).any()


@pytest.mark.parametrize("form", FORMATS)
def test_all_or_nothing_is_in_units(form: str) -> None:
    A = _matrix(12, 12, 1)
    everything, nothing = tp.hybrid(A, form, 0)
    assert nothing.nnz == 0
    assert np.array_equal(everything.to_numpy(), A.toarray())
    full = sp.csr_array(np.ones((12, 12)))
    assert tp.hybrid(full, "bsr(2,3)", 1)[1].nnz == 0


def test_units_are_taken_by_how_full_they_are() -> None:
    A = sp.diags_array([np.ones(15), np.ones(16)], offsets=[1, 0]).tolil()
    A[3, 9] = A[15, 2] = 5.0
    D, R = tp.hybrid(A, "dia")
    assert R.to_scipy().nonzero()[0].tolist() == [3, 15]
    assert D.stored.nnz == 31  # type: ignore[attr-defined]
    slots, _ = tp.hybrid(sp.csr_array(np.tri(8)), "ell", 0.5)  # half of the rows have 4 entries
    assert slots.to_numpy().sum(1).tolist() == [1, 2, 3, 4, 5, 5, 5, 5]


def test_a_sum_over_both_parts_is_one_kernel() -> None:
    A, x = _matrix(64, 64, 3, 0.1), np.arange(64.0)
    D, R = tp.hybrid(A, "sdia(8)", 0.5)
    assert D.nnz
    assert R.nnz
    text = "y[i] = D[i,j] * x[j] + R[i,j] * x[j]"
    assert np.allclose(tp.evaluate(text, D=D, R=R, x=x), A @ x)
    assert "1 kernel, 0 copies" in str(tp.explain(text, D=D, R=R, x=x))


REFUSED = [
    ((np.eye(3), "ds"), tp.FormatError, "a format of blocks, diagonals or slots"),
    ((np.eye(3), "blocked(1,2,2)"), tp.FormatError, "a format of blocks, diagonals or slots"),
    ((np.eye(3), "rle"), tp.FormatError, "a format that stores entries in units, found RLE"),
    ((np.ones(3), "dia"), tp.FormatError, "found a tensor of shape (3,)"),
    ((tp.tensor(sp.eye_array(3), fill_value=1), "dia"), tp.FormatError, "another fill value"),
    ((np.eye(3), "dia", 1.5), tp.OperandError, "a share from 0 to 1 as fill, found 1.5"),
    ((np.eye(3), "dia", "half"), tp.OperandError, "a share from 0 to 1 as fill, found 'half'"),
]


@pytest.mark.parametrize(("given", "kind", "message"), REFUSED, ids=[m for *_, m in REFUSED])
def test_what_cannot_be_parted_is_refused(given: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind) as caught:
        tp.hybrid(*given)
    assert message in caught.value.message

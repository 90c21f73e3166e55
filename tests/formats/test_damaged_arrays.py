"""Conversions of arrays that are not what they say: refused before any of them is followed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

FORMATS = (
    "csc", "bsr(2,2)", "ell", "sell(4)", "sdia(8)", "dia", "nm(4,4)", "rle", "sym", "ss", "uq",
    "dh", "db", "auto", "blocked(2,2,ss)",
)  # fmt: skip
DAMAGES: dict[str, Callable[[Any], None]] = {
    "a column beyond the shape": lambda a: a.indices.__setitem__(5, 2**31 - 1),
    "a column below zero": lambda a: a.indices.__setitem__(5, -3),
    "a position beyond the arrays": lambda a: a.indptr.__setitem__(7, 10**8),
    "a position below zero": lambda a: a.indptr.__setitem__(7, -5),
    "positions that descend": lambda a: a.indptr.__setitem__(7, a.indptr[9] + 1),
    "an end beyond the arrays": lambda a: a.indptr.__setitem__(-1, a.indptr[-1] + 1),
}


@pytest.mark.parametrize("size", [40, 300])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("form", FORMATS)
def test_damaged_rows_are_refused(form: str, damage: str, size: int) -> None:
    """Below and above the number of entries from which on conversions are compiled."""
    rng = np.random.default_rng(0)
    array = sp.random_array((size, size), density=0.4, rng=rng).tocsr()
    array.indptr, array.indices = array.indptr.astype("int32"), array.indices.astype("int32")
    DAMAGES[damage](array)
    with pytest.raises(tp.StructureError) as caught:
        tp.tensor(array, format=form)
    assert "found" in caught.value.message


FILLED = ("db", "dr", "bb", "rr", "dm", "mm", "bsr(100,100)", "blocked(100,100,ss)")


@pytest.mark.parametrize("form", FILLED)
def test_what_formats_fill_up_counts_for_the_limit(form: str) -> None:
    rows, columns = np.arange(400) % 4, np.arange(400) * 1000
    array = sp.coo_array((np.ones(400), (rows, columns)), shape=(4, 500_000)).tocsr()
    with pytest.raises(tp.OutOfMemoryError):
        tp.tensor(array, format=form, memory_limit="1MB")


@pytest.mark.parametrize("form", ["sd", "md", "bd"])
def test_a_list_has_no_more_rows_than_there_are(form: str) -> None:
    array = sp.coo_array((np.ones(400), (np.arange(400) % 4, np.arange(400) * 10)), shape=(4, 5000))
    assert tp.tensor(array.tocsr(), format=form, memory_limit="4MB").nnz == 400

"""Texts in traced functions add small integers and truths up as wide as other texts do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

TEXTS = ("C[i,k] = A[i,j] * B[j,k]", "s = sum(i, j, A[i,j])", "y[i] = sum(j, A[i,j] > 0)")


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8"])
@pytest.mark.parametrize("text", TEXTS)
def test_sums_are_as_wide_as_outside(text: str, dtype: str, container: Any) -> None:
    every = {"A": container(np.full((3, 200), 1, dtype)), "B": np.full((200, 2), 1, dtype)}
    given = {name: array for name, array in every.items() if f"{name}[" in text}
    names = tuple(given)

    def traced(*arrays: Any) -> Any:
        return tp.evaluate(text, dict(zip(names, arrays, strict=True)))

    found, wanted = tp.fuse(traced)(*given.values()), tp.evaluate(text, given)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    assert np.array_equal(found, wanted) and np.max(wanted) >= 200

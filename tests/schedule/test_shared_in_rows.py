"""Loops that threads of a GPU share inside the rows of a sparse result."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import taco_py as tp
from tests.corpus.formats import store, to_dense

CASES = {
    "C[i,k] = D[i,j] * X[j,k]": (("ss", "uq", "ds"), "j"),
    "C[i,k] = A[i,j] * X[j,k]": (("ss", "uq", "ds"), "j"),
    "C[i,j] = T[i,j,k] * x[k]": (("ss", "uq", "sd"), "k"),
    "C[i,j,k] = T[i,j,l] * X[l,k]": (("sss", "uqq"), "l"),
    "c[i] = D[i,j] * X[j,k]": (("s",), "k"),
}
SHARED = ("CPUThread,Atomics", "CPUThread,Temporary", "GPUBlock,Atomics")


@pytest.mark.parametrize("text", CASES)
def test_rows_end_where_their_entries_do(text: str) -> None:
    """The place where a row begins is what it was before its entries were written."""
    random = np.random.default_rng(3)
    shapes = {"D": (3, 4), "X": (4, 5), "A": (3, 4), "T": (3, 5, 4), "x": (4,)}
    operands = {
        name: random.integers(1, 4, shape).astype(float)
        for name, shape in shapes.items()
        if f"{name}[" in text
    }
    if "A" in operands:
        operands["A"][1] = 0  # a row without entries
        operands["A"] = store(operands["A"], "csr")
    expected = tp.evaluate_dense(text, operands)
    forms, index = CASES[text]
    for form, units in product(forms, SHARED):
        found = tp.evaluate(
            text, operands, format=form, target="cuda-emulated",
            schedule=f"parallelize({index},{units})",
        )  # fmt: skip
        np.testing.assert_array_equal(to_dense(found), expected, err_msg=f"{form} {units}")

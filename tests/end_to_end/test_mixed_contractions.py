"""Products of dense tensors whose operands, computation and result have different types."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.cost.machine import NOMINAL
from taco_py.language.diagnostics.errors import InternalError

pytestmark = pytest.mark.user_flags

TEXTS = ("ik,kj->ij", "bZ,XZ,Xb->b", "bki,bjk->bij")
PAIRS = (("i4", "f8"), ("f8", "f4"), ("i2", "f4"), ("f4", "f4"))


@pytest.mark.rotating(2)
@pytest.mark.parametrize("libraries", [False, True])
@pytest.mark.parametrize("text", TEXTS)
def test_types_are_converted_before_tiles(text: str, libraries: bool) -> None:
    rng = np.random.default_rng(len(text))
    letters = sorted(set(text) - set(",->"))
    for number, pair in enumerate(PAIRS):
        sizes = dict(zip(letters, rng.integers(40, 50, len(letters)), strict=True))
        operands = [
            rng.integers(0, 3, [sizes[letter] for letter in subscript]).astype(pair[place % 2])
            for place, subscript in enumerate(text.split("->")[0].split(","))
        ]
        operands[number % len(operands)] = np.asfortranarray(operands[number % len(operands)])
        for dtype in (None, "f8"):
            expected = np.einsum(text, *operands, dtype=dtype)
            for _ in range(2):  # the second time by the short way
                found = tp.einsum(text, *operands, dtype=dtype, libraries=libraries)
                assert found.dtype == expected.dtype
                np.testing.assert_array_equal(found, expected)


def test_the_copy_is_explained() -> None:
    a, b = np.ones((90, 90), "i4"), np.ones((90, 90))
    text = tp.explain("C[i,j] = A[i,k] * B[k,j]", A=a, B=b, dtype="f8", libraries=False)
    assert "convert   A_float64 from A, values to float64: its values are used many" in text
    assert "tiles of" in text
    small = tp.explain("C[i,j] = A[i,k] * B[k,j]", A=a[:9, :9], B=b[:9, :9], dtype="f8")
    assert "tiles of" not in small


@pytest.mark.parametrize("threads", [1, 2, None])
def test_hardly_any_rows_columns_or_depth(threads: int | None) -> None:
    kernel = tp.compile("C[i,j] = A[i,k] * B[k,j]", A=tp.dense(2), B=tp.dense(2), C=tp.dense(2))
    assert "tiles of" in kernel.explain()
    for m, k, n in np.ndindex(3, 3, 3):
        a, b = np.full((m, k), 2.0), np.full((k, n), 3.0)
        for found in (tp.einsum("ik,kj->ij", a, b, threads=threads), kernel(A=a, B=b)):
            np.testing.assert_array_equal(found, a @ b)
        np.testing.assert_array_equal(kernel(A=a, B=b, threads=threads), a @ b)


def test_small_products_are_loops_and_large_ones_tiles() -> None:
    text = "C[i,j] = A[i,k] * B[k,j]"
    for size, tiled in ((3, False), (17, False), (31, False), (33, True), (200, True)):
        a = np.full((size, size), 2.0)
        assert ("tiles of" in tp.explain(text, A=a, B=a, libraries=False)) is tiled
        found = tp.einsum("ik,kj->ij", a, a, libraries=False)
        np.testing.assert_array_equal(found, a @ a)


def test_a_kernel_that_refuses_its_arguments_is_a_fault_of_ours() -> None:
    kernel = tp.compile("y[i] = 2 * x[i]", x=tp.dense(1), y=tp.dense(1))
    (key,) = kernel.kernels

    def refuse(*_: object) -> None:
        raise TypeError("Expected 8-byte elements")

    kernel.kernels[key] = replace(kernel.kernels[key], call=refuse)
    with pytest.raises(InternalError, match=r"found TypeError: Expected 8-byte elements"):
        kernel(x=np.ones(3))


def test_a_chain_of_small_products_tells_its_own_numbers() -> None:
    text = "D[i,l] = A[i,j] * B[j,k] * C[k,l]"
    for size, tiled in ((3, False), (70, True)):
        a = np.ones((size, size))
        found = tp.explain(text, A=a, B=a, C=a, libraries=False)
        pairs, whole = map(
            float, re.findall(r"about (\S+) operations instead of (\S+) in", found)[0]
        )
        least = (
            2 * size**3 * (NOMINAL.quickest_steps if tiled else 0.5)
        )  # tiles take several at a time
        assert least < pairs < 2 * 4 * size**3 and whole >= size**3
        assert ("tiles of" in found) is tiled

"""Conversions of 16-bit numbers are NumPy's: of every half, and rounding between any two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from codegen.emit.expressions import expression
from codegen.ir import Cast, Expr, Var
from codegen.runtime.half_kernels import halves_source
from codegen.runtime.kernel_cache import KernelCache, KernelSource, LoadedKernel
from codegen.runtime.signature import Kind, Parameter, Signature
from codegen.types import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT64, STORED, ScalarType

Array = np.ndarray[Any, Any]
BITS = np.arange(2**16, dtype=np.uint16)


def numpys(element: ScalarType) -> np.dtype[Any]:
    if element == BFLOAT16:
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(element.name)


def converting(source: ScalarType, target: ScalarType, convert: str) -> KernelSource:
    text = f"""#include "taco_runtime.h"

int32_t convert(const {source.c} *restrict from, {target.c} *restrict to, int64_t n)
{{
    for (int64_t i = 0; i < n; i++)
        to[i] = {convert}(from[i]);
    return 0;
}}
"""
    parameters = (
        Parameter("from", Kind.INPUT, source),
        Parameter("to", Kind.OUTPUT, target),
        Parameter("n", Kind.SCALAR, INT64),
    )
    return KernelSource(text, (Signature("convert", parameters),), convert)


@pytest.fixture(params=STORED.values(), ids=str)
def half(request: pytest.FixtureRequest) -> ScalarType:
    numpys(request.param)
    found: ScalarType = request.param
    return found


def in_buffer(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype.kind == "V" else array


def read(cache: KernelCache, half: ScalarType) -> Array:
    """Every half as a float32."""
    source = converting(half, FLOAT32, f"taco_of_{half}")
    kernel = cache.get_or_build(f"read {half}", lambda: source).kernel
    found = np.empty(BITS.shape, np.float32)
    kernel.functions["convert"](in_buffer(BITS.view(numpys(half))), found, len(BITS))
    return found


def test_every_half_is_read(cache: KernelCache, half: ScalarType) -> None:
    expected = BITS.view(numpys(half)).astype(np.float32)
    np.testing.assert_array_equal(read(cache, half), expected)  # NaN too
    signs = np.signbit(read(cache, half))[~np.isnan(expected)]
    np.testing.assert_array_equal(signs, np.signbit(expected)[~np.isnan(expected)])


def between(numbers: Array) -> Array:
    """Floats at each half, at each middle of two, and beside these."""
    bits = numbers.view(np.uint32)
    offsets = (0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF, 0x7FFF, 0x8000, 0x8001, -1)
    random = np.random.default_rng(0).integers(0, 2**32, 10**5, dtype=np.uint32)
    moved = [bits + np.uint32(offset & 0xFFFFFFFF) for offset in offsets]
    return np.concatenate([*moved, random]).view(np.float32)


def test_rounding(cache: KernelCache, half: ScalarType) -> None:
    given = between(read(cache, half))
    with np.errstate(all="ignore"):
        expected = given.astype(numpys(half))
    source = converting(FLOAT32, half, f"taco_to_{half}")
    kernel = cache.get_or_build(f"write {half}", lambda: source).kernel
    found = np.empty(given.shape, numpys(half))
    kernel.functions["convert"](given, in_buffer(found), len(given))
    numbers = ~np.isnan(given)
    same = found.view(np.uint16)[numbers] == expected.view(np.uint16)[numbers]
    assert same.all(), given[numbers][~same][:5]
    assert np.isnan(found.astype(np.float32)[~numbers]).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_kernel_of_arrays(cache: KernelCache, threads: int) -> None:
    kernel: LoadedKernel = cache.get_or_build("halves", halves_source).kernel
    given = np.random.default_rng(0).normal(size=10001).astype(np.float32)
    halves, back = np.empty(10001, np.float16), np.empty(10001, np.float32)
    kernel.functions["to_float16"](given, halves, 10001, threads)
    kernel.functions["to_float32"](halves, back, 10001, threads)
    np.testing.assert_array_equal(halves, given.astype(np.float16))
    np.testing.assert_array_equal(back, halves.astype(np.float32))


X, Y = Var("x", FLOAT16), Var("y", FLOAT64)
CASTS: tuple[tuple[Expr, str], ...] = (
    (Cast(FLOAT32, X), "taco_of_float16(x)"),
    (Cast(FLOAT64, X), "(double)taco_of_float16(x)"),
    (Cast(BFLOAT16, Y), "taco_to_bfloat16((float)y)"),
    (Cast(FLOAT16, Var("z", FLOAT32)), "taco_to_float16(z)"),
)


@pytest.mark.parametrize(("cast", "text"), CASTS, ids=[text for _, text in CASTS])
def test_casts_are_calls(cast: Expr, text: str) -> None:
    assert expression(cast) == text

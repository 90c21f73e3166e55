"""Calls of a program like one that was made before: quick, and checked no less."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.calls.programs import program_call as program_file
from taco_py.language.diagnostics.errors import (
    DimensionError,
    NumberOverflowError,
    OperandError,
    OperandTypeError,
    OutputError,
    ScheduleError,
)
from tests.affine.program_oracle import run_program
from tests.codegen.test_emit import needs_compiler

pytestmark = needs_compiler
AXPY = "y[i] = a * x[i] + y[i]"
STENCIL = """
for t in T:
    B[i,j] = 0.25 * (A[i-1,j] + A[i+1,j] + A[i,j-1] + A[i,j+1])
    A[i,j] = B[i,j]
"""


def test_what_was_checked_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    smooth = tp.program(STENCIL)
    plates = [np.random.default_rng(seed).random((6, 7)) for seed in range(3)]
    smooth(A=plates[0].copy(), B=plates[0].copy(), T=2)
    monkeypatch.setattr(program_file, "check_inside", lambda *_: pytest.fail("checked again"))
    for plate in plates:
        found = {"A": plate.copy(), "B": plate.copy()}
        right = {name: array.copy() for name, array in found.items()}
        smooth(**found, T=2)
        run_program(smooth.parsed, right, {"T": 2})
        np.testing.assert_allclose(found["A"], right["A"], 1e-12)


def arrays() -> Iterator[tuple[Any, Any, Any]]:
    """a, x and y of many types, places and values."""
    rng = np.random.default_rng(5)
    for dtype in ("int8", "int64", "float32", "float64", "complex128"):
        for size in (5, 8):
            x, y = (rng.integers(0, 9, 4 * size).astype(dtype) for _ in range(2))
            for step in (1, 2, -1):
                for a in (2, 3, np.float32(2), np.asarray(3), np.asarray(2, ">i4"), [2][0]):
                    if np.result_type(a, x, y) == y.dtype or isinstance(a, int):
                        yield a, x[::step][:size], y[::-step][:size]
    weird = np.array([np.inf, np.nan, 0.0, -0.0])
    for a in (0.0, 1e300, np.inf, float("nan"), -1):
        yield a, weird, weird[::-1].copy()
    yield 3, np.arange(4.0).astype(">f8"), np.ones(4)
    yield 3, [1, 2, 3, 4], np.ones(4)


def test_every_call_is_right_whatever_came_before() -> None:
    axpy = tp.program(AXPY)
    for a, x, y in [*arrays(), *arrays()]:
        with np.errstate(all="ignore"):
            right = (a * np.asarray(x) + y).astype(y.dtype)
        axpy(a=a, x=x, y=y)
        np.testing.assert_array_equal(y, right)


def test_numbers_are_converted_as_in_the_first_call() -> None:
    axpy = tp.program(AXPY)
    small = np.ones(3, np.int8)
    axpy(a=2, x=small, y=small.copy())
    with pytest.raises(NumberOverflowError):
        axpy(a=300, x=small, y=small.copy())
    with pytest.raises(tp.TacoError):
        axpy(a=2.5, x=small, y=small.copy())
    y = np.ones(3, np.float32)
    for a in (0.1, 0.2, 0.1):
        axpy(a=a, x=np.ones(3, np.float32), y=y)
    np.testing.assert_allclose(y, 1.4, 1e-6)


def test_overlap_is_found_in_every_call() -> None:
    axpy = tp.program(AXPY)
    x, y = np.ones(8), np.ones(16)
    axpy(a=2.0, x=x, y=y[:8])
    with pytest.raises(OperandError, match="overlaps"):
        axpy(a=2.0, x=y[4:12], y=y[:8])
    axpy(a=2.0, x=x[::2], y=y[1::4])
    axpy(a=2.0, x=y[::4], y=y[1::4])  # between each other, but apart
    assert y[1] == 5.0 + 2.0 * 3.0
    number = y[3:4].reshape(())
    axpy(a=np.asarray(1.0), x=x, y=y[:8])
    with pytest.raises(OperandError, match="overlaps"):
        axpy(a=number, x=x, y=y[:8])


def test_what_a_call_must_not_do_is_refused_after_others() -> None:
    axpy = tp.program(AXPY)
    x, y = np.ones(8), np.ones(8)
    for _ in range(2):
        axpy(a=2.0, x=x, y=y)
        locked = y.copy()
        locked.flags.writeable = False
        with pytest.raises(OutputError):
            axpy(a=2.0, x=x, y=locked)
        with pytest.raises(OutputError):
            axpy(a=2.0, x=x, y=y.astype(">f8"))
        with pytest.raises(OutputError):
            axpy(a=2.0, x=x, y=np.frombuffer(bytearray(65), np.uint8)[1:].view(float))
        with pytest.raises(DimensionError):
            axpy(a=2.0, x=x[:7], y=y)
        with pytest.raises(OperandTypeError):
            axpy(a=2.0, x=np.ma.MaskedArray(x), y=y)
        with pytest.raises(OperandError):
            axpy(a=2.0, x=x, y=y, z=y)
        with pytest.raises(OperandError):
            axpy(a=2.0, x=x)
        for threads in (True, 0):
            with pytest.raises(ScheduleError):
                axpy(a=2.0, x=x, y=y, threads=threads)
            axpy(a=2.0, x=x, y=y, threads=1)
        with pytest.raises(OperandTypeError):
            axpy(a=2.0, x=x, y=y, tiles=True)
        axpy(a=2.0, x=x, y=y, tiles=1)


def test_sizes_are_checked_where_they_change() -> None:
    part = tp.program("for i in 0..N: y[i] = x[i+1]")
    x, y = np.arange(8.0), np.zeros(8)
    for _ in range(2):
        for size in (7, np.int64(6), 0):
            part(x=x, y=y, N=size)
        with pytest.raises(DimensionError):
            part(x=x, y=y, N=8)
        with pytest.raises(OperandTypeError):
            part(x=x, y=y, N=True)
    np.testing.assert_array_equal(y, [*range(1, 8), 0])

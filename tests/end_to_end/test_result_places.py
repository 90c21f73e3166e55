"""Kernels write results into the arrays that take them: side results, and those of fewer modes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import taco_py as tp
from codegen.runtime.kernel_cache import LoadedKernel
from taco_py.data.kernels import KERNELS
from taco_py.running.execute.shown_array import with_fewer_modes

rng = np.random.default_rng(0)


class _Arguments:
    """The arrays that kernels were called with."""

    cache_bytes = ()

    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []

    def kernel(self, kernel: LoadedKernel) -> LoadedKernel:
        functions = {name: self._watched(call) for name, call in kernel.functions.items()}
        return LoadedKernel(
            functions, kernel.signatures, kernel.source, kernel.metadata, kernel.library
        )

    def routine(self, _: str, routine: Callable[..., Any]) -> Callable[..., Any]:
        return self._watched(routine)

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*arguments: Any) -> Any:
            self.arrays += [each for each in arguments if isinstance(each, np.ndarray)]
            return call(*arguments)

        return watched


@contextmanager
def arguments() -> Iterator[_Arguments]:
    """Watch the arrays that kernels are called with."""
    watch = _Arguments()
    KERNELS.load_through(watch)
    try:
        yield watch
    finally:
        KERNELS.load_through(None)


PAIR = "y[b,h,i,j] = x[b,h,i,j] * c[i,j]; z[b,h,i,j] = x[b,h,i,j] + s[i,j] * y[b,h,i,j]"
"""Two results of one kernel of slabs, whose first two modes are one there."""


def pair(sizes: tuple[int, int, int, int]) -> dict[str, Any]:
    x = rng.standard_normal((*sizes[:-1], sizes[-1] + 1), np.float32)[..., :-1]
    c, s = rng.standard_normal((2, *sizes[2:]), np.float32)
    return {"x": x, "c": c, "s": s}


def expected_pair(x: Any, c: Any, s: Any) -> tuple[Any, Any]:
    y = x * c
    return y, x + s * y


@pytest.mark.parametrize("axis", [3, 2])
def test_results_of_one_kernel_are_written_into_their_parts(axis: int) -> None:
    operands = pair((6, 5, 64, 48))
    y, z = expected_pair(**operands)
    with arguments() as watch:
        out = np.zeros_like(np.concatenate((y, z), axis))
        first, second = np.split(out, 2, axis)
        for _ in range(3):
            out.fill(0)
            watch.arrays.clear()
            tp.evaluate(PAIR, operands, outputs=("y", "z"), out={"y": first, "z": second})
            np.testing.assert_allclose(first, y, rtol=1e-6)
            np.testing.assert_allclose(second, z, rtol=1e-5, atol=1e-6)
            written = [each for each in watch.arrays if np.shares_memory(each, out)]
            assert len(written) == 2


def test_parts_whose_modes_lie_in_no_row_are_copied() -> None:
    operands = pair((6, 5, 64, 48))
    y, z = expected_pair(**operands)
    out = np.zeros((6, 10, 64, 48), np.float32)
    for _ in range(3):
        out.fill(0)
        places = {"y": out[:, :5], "z": out[:, 5:]}
        tp.evaluate(PAIR, operands, outputs=("y", "z"), out=places)
        np.testing.assert_allclose(out, np.concatenate((y, z), 1), rtol=1e-5, atol=1e-6)


def test_one_result_of_fewer_modes_is_written_into_its_array() -> None:
    text = "m[b,c] = sum(h, w, x[b,c,h,w]); p[b,c,h,w] = x[b,c,h,w] - m[b,c]"
    x = rng.standard_normal((20, 9, 16, 33))
    with arguments() as watch:
        out = np.zeros_like(x)
        for _ in range(3):
            out.fill(0)
            watch.arrays.clear()
            assert tp.evaluate(text, x=x, out=out) is out
            np.testing.assert_allclose(out, x - x.sum((2, 3), keepdims=True))
            assert any(np.shares_memory(each, out) for each in watch.arrays)


def test_a_result_in_an_array_that_an_operand_is_keeps_what_is_read() -> None:
    operands = pair((6, 5, 64, 48))
    y, z = expected_pair(**operands)
    other = np.zeros_like(y)
    for _ in range(2):
        x = operands["x"].copy()
        given_ = {**operands, "x": x}
        tp.evaluate(PAIR, given_, outputs=("y", "z"), out={"y": x, "z": other})
        np.testing.assert_allclose(x, y, rtol=1e-6)
        np.testing.assert_allclose(other, z, rtol=1e-5, atol=1e-6)


@given(st.data())
def test_views_of_fewer_modes(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    base = np.arange(np.prod(sizes) * 2 ** len(sizes)).reshape([2 * size for size in sizes])
    steps = [data.draw(st.sampled_from([slice(0, s), slice(s, 2 * s), slice(0, 2 * s, 2)]))
             if data.draw(st.booleans()) else slice(None) for s in sizes]  # fmt: skip
    array = base[tuple(steps)]
    cuts = sorted(data.draw(st.sets(st.integers(1, array.ndim - 1)))) if array.ndim > 1 else []
    bounds = [0, *cuts, array.ndim]
    shape = tuple(int(np.prod(array.shape[begin:end])) for begin, end in pairwise(bounds))
    view = with_fewer_modes(array, shape)
    same = array.reshape(shape)
    if view is not None:
        np.testing.assert_array_equal(view, same)
        assert np.shares_memory(view, base)
    else:
        assert not np.shares_memory(same, base)

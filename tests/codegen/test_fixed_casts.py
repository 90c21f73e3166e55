"""Conversions before loops in lanes: which ones move, which ones stay, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, block, cast, load, sub
from codegen.ir import (
    Array,
    Binary,
    Cast,
    Declare,
    Expr,
    For,
    Function,
    LoopKind,
    Module,
    Storage,
    Store,
)
from codegen.passes.fixed_casts import hoist_fixed_casts
from codegen.passes.vectorize import vectorize
from codegen.tree import find
from codegen.types import FLOAT64, INT64
from codegen.verify import verify
from tests.codegen.functions import N_I, I, const, result, source
from tests.codegen.interpreter import run

X, Y, T = source("x"), result("y"), source("t")
N = Array("n", INT64, Storage.INPUT)
COUNT = load(N, const(0))
MEAN = Binary("/", load(T, const(0)), cast(FLOAT64, Binary("*", COUNT, N_I)))


def shifted(by: Expr) -> Function:
    """y[i] = x[i] - by for i from 0 to n_i - 1."""
    loop = For(I, const(0), N_I, block(Store(Y, I, sub(load(X, I), by))))
    function = Function("shifted", (X, T, N, Y), (N_I,), block(loop))
    return vectorize(Module((function,))).functions[0]


def hoisted(function: Function) -> Function:
    module = hoist_fixed_casts(Module((function,)))
    verify(module)
    return module.functions[0]


@pytest.mark.parametrize("length", [0, 5])
def test_a_mean_is_converted_once(length: int) -> None:
    before = shifted(MEAN)
    after = hoisted(before)
    (loop,) = find(after.body, For)
    assert loop.kind is LoopKind.VECTOR and not any(find(loop, Cast))
    assert [each.value for each in find(after.body, Declare)] == [MEAN]
    arrays = {"x": np.arange(5.0), "t": np.array([6.0]), "n": np.array([3]), "y": np.zeros(5)}
    expected, found = (run(f, arrays, {"n_i": length}).arrays["y"] for f in (before, after))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "by",
    [
        load(T, const(0)),
        cast(FLOAT64, I),
        cast(FLOAT64, Binary("/", N_I, COUNT)),
        cast(FLOAT64, load(N, add(N_I, const(1)))),
        cast(FLOAT64, load(Array("m", INT64, Storage.OUTPUT), const(0))),
    ],
    ids=["no integer", "each another", "may divide by 0", "may not be there", "may be written"],
)
def test_what_stays(by: Expr) -> None:
    module = Module((shifted(by),))
    assert hoist_fixed_casts(module) is module


def test_two_loops_have_their_own_names() -> None:
    one = shifted(MEAN)
    twice = Function(one.name, one.arrays, one.scalars, block(one.body, one.body))
    names = [each.var.name for each in find(hoisted(twice).body, Declare)]
    assert len(set(names)) == 2

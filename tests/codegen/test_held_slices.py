"""Lanes of slices and turns of pairs: what is held, what is not, and that results stay the same."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, apply, binary, block, eq, load, load_index, mul, ne, or_, select
from codegen.ir import (
    Allocate,
    Binary,
    Const,
    Declare,
    For,
    Function,
    If,
    Module,
    Select,
    Store,
    Var,
)
from codegen.passes.blocks.hold_lanes import hold_lanes
from codegen.passes.blocks.hold_turns import hold_turns
from codegen.tree import find
from codegen.types import FLOAT64, INT32
from codegen.verify import verify
from tests.codegen.functions import N_I, I, const, result, source
from tests.codegen.interpreter import run

A, X, Y = source("A"), source("x"), result("y")
POS, MARKS, OFF, CRD = (source(name, INT32) for name in ("pos", "marks", "off", "crd"))
P, L, C, W = Var("p"), Var("l"), Var("c"), Var("w")
LANES = 4


def slices(lanes: int = LANES, reads: bool = False, stride: int = 1) -> Function:
    """y[4*i + l] += A[4*p + l] * x[off[p] + l] where bit l of marks[p] is 1, for p of slice i."""
    there = ne(binary("&", apply("right_shift", load_index(MARKS, P), L), 1), 0)
    value = Binary("*", load(A, add(mul(P, lanes), L)), load(X, add(load_index(OFF, P), L)))
    if reads:
        value = Binary("*", value, load(Y, const(0)))
    store = Store(Y, add(mul(I, lanes), mul(L, stride)), value, "+")
    inner = For(L, const(0), const(lanes), block(If(there, block(store))))
    row = For(P, load_index(POS, I), load_index(POS, add(I, 1)), block(inner))
    body = block(For(I, const(0), N_I, block(row)))
    return Function("slices", (POS, MARKS, OFF, A, X, Y), (N_I,), body)


def pairs(condition: bool = True) -> Function:
    """y[r] += A[p] * x[c]; y[c] += A[p] * x[r] unless r is c, for p of row r."""
    row = select(eq(W, 0), I, C)
    column = select(eq(W, 0), C, I)
    store = Store(Y, row, Binary("*", load(A, P), load(X, column)), "+")
    guard = If(or_(eq(W, 0), ne(I, C)), block(store)) if condition else store
    turns = For(W, const(0), const(2), block(guard))
    inner = block(Declare(C, load_index(CRD, P), constant=True), turns)
    rows = For(P, load_index(POS, I), load_index(POS, add(I, 1)), inner)
    body = block(For(I, const(0), N_I, block(rows)))
    return Function("pairs", (POS, CRD, A, X, Y), (N_I,), body)


def arrays_of_slices(count: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(count)
    lengths = random.integers(0, 4, count)
    total = int(lengths.sum())
    return {
        "pos": np.concatenate(([0], lengths.cumsum())).astype(np.int32),
        "marks": random.integers(0, 1 << LANES, total).astype(np.int32),
        "off": random.integers(0, 9, total).astype(np.int32),
        "A": random.integers(1, 5, total * LANES).astype(float),
        "x": random.integers(1, 5, 9 + LANES).astype(float),
        "y": random.integers(0, 5, count * LANES).astype(float),
    }


@pytest.mark.parametrize("count", [0, 1, 5])
def test_lanes_are_held(count: int) -> None:
    before = slices()
    module = hold_lanes(Module((before,)))
    verify(module)
    (after,) = module.functions
    assert any(True for _ in find(after.body, Allocate))
    assert any(True for _ in find(after.body, Select))
    arrays = arrays_of_slices(count)
    scalars = {"n_i": count}
    found = run(after, arrays, scalars).arrays["y"]
    np.testing.assert_array_equal(found, run(before, arrays, scalars).arrays["y"])


@pytest.mark.parametrize("made", [slices(64), slices(reads=True), slices(stride=2), slices(1)])
def test_others_stay(made: Function) -> None:
    assert hold_lanes(Module((made,))).functions == (made,)


@pytest.mark.parametrize("count", [0, 1, 6])
def test_turns_are_held(count: int) -> None:
    before = pairs()
    module = hold_turns(Module((before,)))
    verify(module)
    (after,) = module.functions
    assert not any(loop.var == W for loop in find(after.body, For))
    random = np.random.default_rng(count)
    rows = [np.flatnonzero(random.random(row + 1) < 0.6) for row in range(count)]
    columns = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int32)
    arrays = {
        "pos": np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int32),
        "crd": columns,
        "A": random.integers(1, 5, len(columns)).astype(float),
        "x": random.integers(1, 5, count).astype(float),
        "y": random.integers(0, 5, count).astype(float),
    }
    scalars = {"n_i": count}
    found = run(after, arrays, scalars).arrays["y"]
    np.testing.assert_array_equal(found, run(before, arrays, scalars).arrays["y"])


def test_turns_that_may_meet_stay() -> None:
    made = pairs(condition=False)
    assert hold_turns(Module((made,))).functions == (made,)


def test_what_adds_nothing_is_minus_zero() -> None:
    """0.0 would change -0.0."""
    (after,) = hold_lanes(Module((slices(),))).functions
    (chosen,) = find(after.body, Select)
    assert chosen.orelse == Const(-0.0, FLOAT64) and np.signbit(chosen.orelse.value)

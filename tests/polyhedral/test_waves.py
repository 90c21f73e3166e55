"""Loops over tiles along their diagonals: the same tiles, diagonal by diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, block, const, eq, if_, mod, mul, sub
from codegen.ir import (
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Function,
    LoopKind,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.names import Names
from codegen.tree import find
from codegen.types import INT64
from polyhedral.nests.waves import along_diagonals
from tests.codegen.interpreter import run

T, J, N = Var("t"), Var("j"), Var("n")
TIME = Var("time")
ORDER = Array("order", INT64, Storage.OUTPUT)
SIZE = 8


def loops(start: Expr, stop: Expr, kind: LoopKind, guard: Expr | None = None) -> For:
    """for t in 0..n: for j in start..stop: order[t, j] = the number of the visit"""
    visit = block(Assign(TIME, add(TIME, 1)), Store(ORDER, add(mul(T, SIZE), J), TIME))
    inner: Stmt = For(J, start, stop, visit, kind=kind)
    body = inner if guard is None else if_(guard, block(inner))
    return For(T, const(0), N, block(body))


def visits(stmt: Stmt, n: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    arrays = {"order": np.zeros(SIZE * SIZE, np.int64)}
    body = block(Declare(TIME, const(0)), stmt)
    state = run(Function("visit", (ORDER,), (N,), body), arrays, {"n": n})
    found: np.ndarray[tuple[int, ...], np.dtype[np.int64]] = state.arrays["order"]
    return found.reshape(SIZE, SIZE)


RANGES = {
    "square": (const(0), const(5), None),
    "skewed": (T, add(T, 3), None),
    "falling": (sub(4, T), const(7), None),
    "empty in part": (const(3), sub(6, T), None),
    "guarded": (const(0), const(4), eq(mod(T, 2), 0)),
}


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("n", [0, 1, 5])
def test_all_tiles_by_diagonals(name: str, n: int) -> None:
    start, stop, guard = RANGES[name]
    outer = loops(start, stop, LoopKind.PARALLEL, guard)
    names = Names({"t", "j", "n", "time", "order"})
    found = along_diagonals(outer, lambda each: Var(names.fresh(each)))
    before, after = visits(outer, n), visits(found, n)
    np.testing.assert_array_equal(before > 0, after > 0)
    places = np.argwhere(after)
    diagonals = places.sum(axis=1)[np.argsort(after[after > 0])]
    assert (np.diff(diagonals) >= 0).all()
    kinds = [loop.kind for loop in find(found, For) if loop.var == T]
    assert kinds == [LoopKind.PARALLEL]


def test_other_loops_run_one_after_the_other() -> None:
    deeper = loops(const(0), const(3), LoopKind.SERIAL)
    cut = For(
        T,
        const(0),
        N,
        block(
            For(J, const(0), const(2), Block(), kind=LoopKind.PARALLEL),
            For(J, const(2), const(4), Block(), kind=LoopKind.PARALLEL),
        ),
    )
    for outer in (deeper, cut):
        found = along_diagonals(outer, Var)
        assert isinstance(found, For) and found.var == T
        assert {loop.kind for loop in find(found, For)} == {LoopKind.SERIAL}

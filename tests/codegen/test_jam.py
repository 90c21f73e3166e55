"""Several rows at a time: what is jammed, what is not, and that results stay the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from codegen.build import add, block, load, load_index, mul
from codegen.ir import (
    Assign,
    Binary,
    Const,
    Declare,
    Expr,
    For,
    Function,
    LoopKind,
    Module,
    Store,
    Var,
)
from codegen.passes.jam import ROWS, jam_rows
from codegen.tree import find
from codegen.types import FLOAT64, INT32
from codegen.verify import verify
from tests.codegen.functions import N_I, N_J, I, J, K, const, result, source
from tests.codegen.interpreter import run

A, X, Y = source("A"), source("x"), result("y")
CRD = source("crd", INT32)
T = Var("t", FLOAT64)


def row_sums(start: For | None = None) -> Function:
    """y[i] = sum(j, A[i,j] * x[j])."""
    update = Assign(T, mul_(load(A, add(mul(I, N_J), J)), load(X, J)), "+")
    inner = start or For(J, const(0), N_J, block(update))
    body = block(Declare(T, Const(0.0, FLOAT64)), inner, Store(Y, I, T))
    return Function("row_sums", (A, X, Y), (N_I, N_J), block(For(I, const(0), N_I, body)))


def column_sums() -> Function:
    """y[j] += A[i,j] * x[i]."""
    update = Store(Y, J, mul_(load(A, add(mul(I, N_J), J)), load(X, I)), "+")
    inner = For(J, const(0), N_J, block(update))
    return Function(
        "column_sums", (A, X, Y), (N_I, N_J), block(For(I, const(0), N_I, block(inner)))
    )


def sums_of_planes(stop: Expr = N_J) -> Function:
    """y[i] = sum(j, k, A[i,j,k] * x[k]) for k up to `stop`, n_j each."""
    place, p = Var("place"), Var("p")
    update = Assign(T, mul_(load(A, p), load(X, K)), "+")
    inner = For(K, const(0), stop, block(Declare(p, add(place, K)), update))
    row = Declare(place, mul(add(mul(I, N_J), J), N_J))
    return row_sums(For(J, const(0), N_J, block(row, inner)))


def mul_(one: Expr, other: Expr) -> Expr:
    return Binary("*", one, other)


def jammed(function: Function) -> Function:
    module = jam_rows(Module((function,)))
    verify(module)
    return module.functions[0]


@pytest.mark.parametrize("n_i", [0, 1, 3, 4, 5, 11])
@pytest.mark.parametrize("n_j", [0, 1, 7])
@pytest.mark.parametrize("made", [row_sums, column_sums, sums_of_planes])
def test_results_stay(made: Callable[[], Function], n_i: int, n_j: int) -> None:
    function = made()
    after = jammed(function)
    assert [loop.step for loop in find(after.body, For)].count(ROWS) == 1
    rng = np.random.default_rng(0)
    arrays = {
        "A": rng.integers(-4, 5, n_i * n_j * max(n_j, 1)).astype(float),
        "x": rng.integers(-4, 5, max(n_i, n_j)).astype(float),
        "y": rng.integers(-4, 5, max(n_i, n_j)).astype(float),
    }
    scalars = {"n_i": n_i, "n_j": n_j}
    expected, found = (run(f, arrays, scalars).arrays["y"] for f in (function, after))
    np.testing.assert_array_equal(found, expected)


def test_rows_of_a_sparse_operand_are_left_alone() -> None:
    update = Assign(T, mul_(load(A, J), load(X, load_index(CRD, J))), "+")
    sparse = row_sums(For(J, const(0), N_J, block(update)))
    whole = Function("f", (A, X, CRD, Y), (N_I, N_J), sparse.body)
    assert jammed(whole) == whole


def test_bounds_that_depend_on_the_row_are_left_alone() -> None:
    update = Assign(T, load(A, J), "+")
    triangle = row_sums(For(J, const(0), I, block(update)))
    assert jammed(triangle) == triangle


def test_inner_bounds_may_depend_on_the_loops_between_but_not_on_the_row() -> None:
    assert jammed(sums_of_planes(J)) != sums_of_planes(J)
    assert jammed(sums_of_planes(I)) == sums_of_planes(I)


def test_lanes_and_unrolled_loops_are_left_alone() -> None:
    (loop,) = row_sums().body.body
    assert isinstance(loop, For)
    marked = For(loop.var, loop.start, loop.stop, loop.body, 1, LoopKind.VECTOR)
    function = Function("f", (A, X, Y), (N_I, N_J), block(marked))
    assert jammed(function) == function


def test_sums_down_the_columns_are_left_alone() -> None:
    update = Assign(T, load(A, add(mul(J, N_I), I)), "+")
    down = row_sums(For(J, const(0), N_J, block(update)))
    assert jammed(down) == down

"""Arrays written past the caches: the same values, and only where whole lines are written once."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, block, load, mul, select
from codegen.ir import (
    Binary,
    Const,
    Declare,
    Expr,
    For,
    Function,
    Lead,
    Module,
    Store,
    Var,
    VectorStore,
)
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.past_caches import write_past_caches
from codegen.tree import find
from codegen.types import FLOAT64
from codegen.verify import verify
from tests.codegen.functions import N_I, N_J, ZERO, I, J, const, result, source
from tests.codegen.interpreter import run

X, Y, C = source("x"), source("y"), result("C")
ROW, S = Var("row"), Var("s")
TARGET = Target(machine=Processor(vector_bytes=32, cache_bytes=(64, 1024)))
"""Arrays from 64 elements on are large."""
PRODUCT = Binary("*", load(X, I), load(Y, J))


def outer(value: Expr = PRODUCT, op: str | None = None, stop: Expr = N_J) -> Function:
    """C[i,j] = x[i] * y[j], rows `s` apart."""
    row = For(J, const(0), stop, block(Store(C, add(ROW, J), value, op)))
    rows = For(I, const(0), N_I, block(Declare(ROW, mul(I, S), True), row))
    return Function("outer", (X, Y, C), (N_I, N_J, S), block(rows))


def past(function: Function, target: Target = TARGET) -> Function:
    module = write_past_caches(Module((function,)), target)
    verify(module)
    return module.functions[0]


@pytest.mark.parametrize(
    ("rows", "columns", "apart", "streams"),
    [(8, 8, 8, True), (4, 16, 24, True), (7, 8, 8, False), (9, 9, 9, False), (5, 16, 17, True)],
)
def test_values_stay_and_large_rows_of_whole_lines_stream(
    rows: int, columns: int, apart: int, streams: bool
) -> None:
    arrays = {
        "x": np.arange(rows) + 1.0,
        "y": np.arange(columns) + 2.0,
        "C": np.zeros(rows * apart),
    }
    scalars = {"n_i": rows, "n_j": columns, "s": apart}
    before, after = (run(f, arrays, scalars) for f in (outer(), past(outer())))
    np.testing.assert_array_equal(before.arrays["C"], after.arrays["C"])
    (condition,) = (s for s in past(outer()).body.body if isinstance(s, Declare))
    assert condition.var.name == "past"
    told = Function("f", (X, Y, C), (N_I, N_J, S), block(condition, _as_number(condition.var)))
    assert bool(run(told, arrays, scalars).arrays["C"][0]) is streams


def _as_number(condition: Var) -> Store:
    return Store(C, const(0), select(condition, Const(1.0, FLOAT64), ZERO))


def test_a_line_is_written_at_once() -> None:
    after = past(outer())
    stores = list(find(after.body, VectorStore))
    assert [store.streaming for store in stores] == [True, True]
    assert 8 in [loop.step for loop in find(after.body, For)]
    assert any(find(after.body, Lead))


@pytest.mark.parametrize(
    "function",
    [
        outer(op="+"),
        outer(load(C, add(ROW, J))),
        outer(load(X, mul(J, S))),
        outer(stop=I),
    ],
    ids=["adds", "reads itself", "no neighbours", "triangle"],
)
def test_left_alone(function: Function) -> None:
    assert past(function) == function


def test_an_array_with_another_use_is_left_alone() -> None:
    (rows,) = outer().body.body
    twice = Function(
        "f", (X, Y, C), (N_I, N_J, S), block(rows, Store(C, const(0), load(X, const(0))))
    )
    assert past(twice) == twice


def test_a_machine_without_vectors_is_left_alone() -> None:
    assert past(outer(), Target(machine=Processor(vector_bytes=0))) == outer()

"""Functions that two loops compute: where they are kept, where not, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, apply, block, div, load, mul, sub
from codegen.infer import c_function
from codegen.ir import (
    TRUE,
    Apply,
    Array,
    Assign,
    Const,
    Declare,
    Expr,
    For,
    Function,
    If,
    Module,
    Reserve,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.passes.kept_functions import keep_functions
from codegen.passes.notes import notes
from codegen.tree import find
from codegen.types import FLOAT32, FLOAT64
from codegen.verify import verify
from tests.codegen.functions import N_I, I, J, X, Y, loop
from tests.codegen.interpreter import run

SUM = Var("sum", FLOAT64)
SHIFT = Var("shift", FLOAT64)
Z, W = Array("z", FLOAT64, Storage.INPUT), Array("w", FLOAT64, Storage.OUTPUT)
NARROW = Array("y", FLOAT32, Storage.OUTPUT)
SIZE = 7


def shifted(index: Expr) -> Expr:
    return apply("exp", sub(load(X, index), SHIFT))


def softmax(*between: Stmt, value: Expr | None = None, **others: Stmt) -> Function:
    """sum += exp(x[i] - shift) for all i, then y[j] = exp(x[j] - shift) / sum."""
    first = others.get("first", loop(I, N_I, Assign(SUM, shifted(I), "+")))
    stored = div(shifted(J), SUM) if value is None else value
    second = others.get("second", loop(J, N_I, Store(Y, J, stored)))
    start = (Declare(SHIFT, Const(0.5, FLOAT64)), Declare(SUM, Const(0.0, FLOAT64)))
    body = block(*start, first, *between, second)
    return Function("softmax", (X, Z, Y, W), (N_I,), body)


def kept(function: Function) -> Function:
    module = keep_functions(Module((function,)))
    verify(module)
    return module.functions[0]


def long_functions(function: Function) -> int:
    return sum(c_function(call).is_long for call in find(function.body, Apply))


def result(function: Function) -> np.ndarray:
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=SIZE) for name in "xzyw"}
    found = run(function, arrays, {"n_i": SIZE}).arrays
    return np.concatenate((found["y"], found["w"]))


KEPT = [
    softmax(),
    softmax(Declare(Var("other"), add(N_I, 1))),
    softmax(If(TRUE, block(Assign(SUM, Const(2.0, FLOAT64), "*")))),
    softmax(Store(W, Const(0), SUM), Declare(Var("other"), add(N_I, 1))),
    softmax(value=add(mul(shifted(J), load(Z, J)), div(shifted(J), SUM))),
    softmax(first=loop(I, N_I, Declare(Var("e", FLOAT64), shifted(I)),
                       Assign(SUM, mul(Var("e", FLOAT64), Var("e", FLOAT64)), "+"))),
    softmax(second=loop(J, N_I, Declare(Var("e", FLOAT64), shifted(J)),
                        Store(Y, J, div(Var("e", FLOAT64), SUM)))),
]  # fmt: skip


@pytest.mark.parametrize("function", KEPT)
def test_a_function_is_computed_once_and_results_stay(function: Function) -> None:
    after = kept(function)
    assert long_functions(after) == 1 < long_functions(function)
    np.testing.assert_allclose(result(after), result(function), rtol=1e-14)
    assert "exp once for two loops, kept in y between them" in notes(Module((after,)))


OTHER = Var("other", FLOAT64)
LEFT = [
    # What the function is of changes between the loops, or while the first runs.
    softmax(Assign(SHIFT, Const(1.0, FLOAT64))),
    softmax(first=loop(I, N_I, Assign(SUM, shifted(I), "+"), Assign(SHIFT, load(Z, I), "+"))),
    # Something between writes the result.
    softmax(Store(Y, Const(0), SUM)),
    softmax(Store(W, Const(0), SUM), Store(Y, Const(0), load(W, Const(0)))),
    # The result is read, added to, or written out of order.
    softmax(value=add(div(shifted(J), SUM), load(Y, J))),
    softmax(second=loop(J, N_I, Store(Y, J, shifted(J), "+"))),
    softmax(second=loop(J, N_I, Store(Y, sub(sub(N_I, 1), J), div(shifted(J), SUM)))),
    softmax(second=loop(J, N_I, Store(Y, Const(0), div(shifted(J), SUM)))),
    # The loops have other numbers.
    softmax(second=loop(J, sub(N_I, 1), Store(Y, J, div(shifted(J), SUM)))),
    # The functions differ, or are of other elements.
    softmax(value=div(apply("exp", load(X, J)), SUM)),
    softmax(value=div(apply("exp", sub(load(Z, J), SHIFT)), SUM)),
    # The first loop reads the result.
    softmax(first=loop(I, N_I, Assign(SUM, mul(shifted(I), load(Y, I)), "+"))),
]


@pytest.mark.parametrize("function", LEFT)
def test_what_may_not_be_kept_is_left(function: Function) -> None:
    assert keep_functions(Module((function,))).functions[0] is function


def test_a_result_of_another_type_keeps_nothing() -> None:
    function = softmax(second=loop(J, N_I, Store(NARROW, J, apply("exp", load(X, J)))))
    assert keep_functions(Module((function,))).functions[0] is function


def test_room_for_the_result_is_made_before_it_keeps_anything() -> None:
    grown = Array("y", FLOAT64, Storage.GROWING)
    first = loop(I, N_I, Assign(SUM, shifted(I), "+"))
    second = loop(J, N_I, Store(grown, J, div(shifted(J), SUM)))
    start = (Declare(SHIFT, Const(0.5, FLOAT64)), Declare(SUM, Const(0.0, FLOAT64)))
    whole = block(*start, first, Reserve(grown, N_I), second)
    after = kept(Function("grown", (X, grown), (N_I,), whole))
    room, *loops = [each for each in after.body.body if isinstance(each, For | Reserve)]
    assert isinstance(room, Reserve)
    assert [len(list(find(each, Apply))) for each in loops] == [1, 0, 0]

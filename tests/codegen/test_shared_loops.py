"""What the interpreter says of loops that threads share: races are found, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from codegen import build
from codegen.ir import Array, AtomicStore, Block, For, Function, Stmt, Storage, Store, Var
from codegen.ir.statements import LoopKind
from codegen.types import FLOAT64
from tests.codegen.interpreter import run

A = Array("a", FLOAT64, Storage.OUTPUT)
I = Var("i")  # noqa: E741 - as in the loop
ONE = build.const(1.0, FLOAT64)


def shared(*body: Stmt) -> Function:
    loop = For(I, build.const(0), build.const(4), Block(body), kind=LoopKind.PARALLEL)
    return Function("f", (A,), (), Block((loop,)))


@pytest.mark.parametrize(
    "body",
    [
        Store(A, build.const(0), ONE, "+"),
        Store(A, build.div(I, 2), ONE),
        Store(A, I, build.load(A, build.const(2))),
        AtomicStore(A, build.const(0), build.load(A, build.const(0)), "+"),
    ],
)
def test_races(body: Stmt) -> None:
    with pytest.raises(AssertionError, match=r"a race on a\[\d\]"):
        run(shared(body), {"a": np.zeros(4)}, {})


@pytest.mark.parametrize("body", [Store(A, I, ONE, "+"), AtomicStore(A, build.const(0), ONE, "+")])
def test_no_races(body: Stmt) -> None:
    assert run(shared(body), {"a": np.zeros(4)}, {}).arrays["a"].sum() == 4

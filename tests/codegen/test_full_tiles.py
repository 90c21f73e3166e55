"""Full tiles beside the last one: what loops are doubled, and that they do the same."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, block, div, load, minimum, mul
from codegen.ir import Declare, For, Function, If, LoopKind, Module, Store, Var
from codegen.passes.full_tiles import separate_full_tiles
from codegen.tree import find
from codegen.verify import verify
from tests.codegen.functions import N_I, I, X, Y, const
from tests.codegen.interpreter import run

TILE, END = Var("i0"), Var("i_end")


def tiled(unroll: int = 0, kind: LoopKind = LoopKind.SERIAL, size: int = 4) -> Function:
    """`y[i] = x[i]` in tiles."""
    start = mul(TILE, size)
    inner = For(I, start, END, block(Store(Y, I, load(X, I))), 1, kind, (), unroll)
    body = block(Declare(END, minimum(add(start, size), N_I), constant=True), inner)
    count = div(add(N_I, size - 1), size)
    return Function("copy", (X, Y), (N_I,), block(For(TILE, const(0), count, body)))


def separated(function: Function) -> Function:
    found = separate_full_tiles(Module((function,)))
    verify(found)
    return found.functions[0]


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 8, 11])
@pytest.mark.parametrize("kind", [LoopKind.SERIAL, LoopKind.VECTOR])
def test_full_tiles_have_a_constant_length(kind: LoopKind, size: int) -> None:
    function = separated(tiled(2 if kind is LoopKind.SERIAL else 0, kind))
    (choice,) = find(function, If)
    (whole,) = find(choice.then, For)
    (rest,) = find(choice.orelse, For)
    assert whole.stop == add(mul(TILE, 4), 4)
    assert (whole.kind, whole.unroll) == (rest.kind, rest.unroll)
    x = np.arange(size) + 1.0
    found = run(function, {"x": x, "y": np.zeros(size)}, {N_I.name: size})
    np.testing.assert_array_equal(found.arrays["y"], x)


def test_only_marked_loops_are_doubled() -> None:
    function = tiled()
    assert separated(function) is function


def test_what_is_done_is_done() -> None:
    once = separated(tiled(2))
    (choice,) = find(once, If)
    assert isinstance(choice.then.body[0], For)

"""Counters of kernels in 32 bits: which are, and that no value becomes another one."""

from __future__ import annotations

from codegen.build import add, block, const, div, load, mod, mul
from codegen.emit.expressions import widened
from codegen.ir import (
    Array,
    Block,
    Declare,
    For,
    Kernel,
    LoopKind,
    Module,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.passes.gpu.short_integers import MOST, count_in_short
from codegen.pretty import pretty
from codegen.tree import find
from codegen.types import FLOAT64, INT32, INT64

X = Array("x", FLOAT64, Storage.INPUT)
Y = Array("y", FLOAT64, Storage.OUTPUT)
N, T, K, PLACE = Var("n"), Var("t"), Var("k"), Var("place")


def shortened(*body: Stmt) -> Block:
    module = count_in_short(Module((), kernels=(Kernel("f", (Y, X), (N,), block(*body), 256),)))
    return module.kernels[0].body


def loop(var: Var, stop: int, *body: Stmt, kind: LoopKind = LoopKind.SERIAL) -> For:
    return For(var, const(0), const(stop), block(*body), kind=kind)


def test_counters_between_constants_and_what_is_computed_of_them() -> None:
    place = Declare(PLACE, add(mod(T, 8), mul(div(T, 8), 32), K), constant=True)
    body = loop(K, 4, place, Store(Y, add(N, PLACE), load(X, PLACE)))
    made = shortened(loop(T, 256, body, kind=LoopKind.THREADS))
    assert {each.var.type for each in find(made, For)} == {INT32}
    (declared,) = find(made, Declare)
    assert declared.var.type == INT32
    assert pretty(made) == pretty(block(loop(T, 256, body, kind=LoopKind.THREADS))).replace(
        "place: int64", "place: int32"
    )


def test_what_may_be_longer_keeps_its_bits() -> None:
    several = For(K, const(0), N, block(Store(Y, K, load(X, K))))
    grid = loop(T, 256, Store(Y, T, load(X, T)), kind=LoopKind.GRID)
    long = Declare(PLACE, mul(T, MOST), constant=True)
    for body in (several, grid):
        assert shortened(body) == block(body)
    made = shortened(loop(T, 256, long, Store(Y, PLACE, load(X, PLACE))))
    (declared,) = find(made, Declare)
    assert declared.var.type == INT64
    assert widened(declared.value) == f"(int64_t)t * {MOST}"

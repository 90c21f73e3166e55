"""Kernels out of functions: what each computes, what the host is left with, what is refused."""

from __future__ import annotations

import pytest

from codegen.build import add, block, const, load, lt, mul, sub
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Declare,
    Fill,
    For,
    Function,
    If,
    LoopKind,
    Module,
    NewTable,
    Stmt,
    Storage,
    Store,
    Table,
    Var,
)
from codegen.machine.target import CUDA, UnsupportedError
from codegen.passes.outline_kernels import outline_kernels
from codegen.pretty import pretty
from codegen.types import FLOAT64
from tests.codegen.functions import N_I, I, J, X, Y

SUM, LAST = Var("sum", FLOAT64), Var("last")


def shared(*body: Stmt, stop: Var = N_I) -> For:
    return For(I, const(0), stop, block(*body), kind=LoopKind.PARALLEL)


def text_of(*body: Stmt) -> str:
    function = Function("f", (Y, X), (N_I,), block(*body), threaded=True)
    return pretty(outline_kernels(Module((function,)), CUDA))


def test_a_shared_loop_is_a_kernel_with_the_constants_that_it_needs() -> None:
    copy = Store(Y, I, load(X, I))
    unused = Declare(Var("unused"), const(3), constant=True)
    found = text_of(unused, Declare(LAST, sub(N_I, 1), constant=True), shared(copy, stop=LAST))
    assert found == (
        "f(y: out float64[], x: in float64[], n_i: int64)\n"
        "  last: int64 = n_i - 1\n"
        "  launch f_1 by last threads, 256 a block\n\n"
        "f_1(y: out float64[], x: in float64[], n_i: int64)\n"
        "  last: int64 = n_i - 1\n"
        "  grid for i in 0..last:\n"
        "    y[i] = x[i]"
    )


def test_a_shared_loop_of_one_iteration_is_one_threads() -> None:
    """Whole warps are launched: the others have no iteration."""
    loop = For(I, const(0), const(1), block(Store(Y, I, load(X, I), "+")), kind=LoopKind.PARALLEL)
    found = text_of(loop)
    assert "launch f_1 by 1 threads, 256 a block" in found
    assert "grid for i in 0..1:" in found


def test_what_no_loop_shares_is_a_kernel_of_one_thread() -> None:
    loop = For(J, const(0), N_I, block(Store(Y, J, load(X, J))))
    found = text_of(loop, Store(Y, const(0), const(1.0, FLOAT64)))
    assert "launch f_1 by 1 threads, 1 a block" in found
    assert found.count("launch") == 1


def test_scalars_of_several_kernels_lie_in_memory() -> None:
    total = Array("total", FLOAT64, Storage.LOCAL)
    found = text_of(
        Declare(SUM, const(0.0, FLOAT64)),
        Allocate(total, const(1)),
        Store(total, const(0), const(0.0, FLOAT64)),
        shared(Store(Y, I, mul(load(X, I), load(X, I)))),
        Assign(SUM, load(total, const(0)), "+"),
        Store(Y, const(0), SUM),
    )
    host, first, grid, last = found.split("\n\n")
    assert "sum_cell = new float64[1]" in host and "total = new float64[1]" in host
    assert "sum_cell[0] = 0.0" in first and "total[0] = 0.0" in first
    assert "sum" not in grid
    assert "sum_cell[0] += total[0]" in last and "y[0] = sum_cell[0]" in last


def test_constants_that_kernels_would_find_changed_lie_in_memory() -> None:
    """`next` is made of `begin`; nothing writes what `last` is read from."""
    begin, following = Var("begin", FLOAT64), Var("next", FLOAT64)
    host, *kernels = text_of(
        Declare(begin, load(Y, const(0)), constant=True),
        Declare(LAST, load(X, const(0)), constant=True),
        Declare(following, add(begin, const(1.0, FLOAT64)), constant=True),
        Store(Y, const(0), const(2.0, FLOAT64)),
        shared(Store(Y, I, add(following, LAST))),
    ).split("\n\n")
    assert "begin_cell = new float64[1]" in host and "last_cell" not in host
    first, write, grid = kernels
    assert "begin_cell[0] = y[0]" in first and "y[0] = 2.0" in write
    assert "next: float64 = begin_cell[0] + 1.0" in grid and "last: int64 = x[0]" in grid


def test_elements_are_set_by_threads() -> None:
    found = text_of(Fill(Y, const(0), N_I, const(0.0, FLOAT64)))
    assert "grid for k in 0..n_i:" in found and "y[k] = 0.0" in found


def test_conditions_and_loops_around_launches_are_the_hosts() -> None:
    inner = If(lt(J, N_I), block(shared(Store(Y, add(I, J), load(X, I)))))
    host, kernel = text_of(For(J, const(0), N_I, block(inner))).split("\n\n")
    assert "for j in 0..n_i:\n    if j < n_i:\n      launch f_1" in host
    assert kernel.startswith("f_1(y: out float64[], x: in float64[], n_i: int64, j: int64)")


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (NewTable(Table("seen")), "hash tables"),
        (Allocate(Array("row", FLOAT64, Storage.LOCAL), N_I), "row would need memory"),
    ],
)
def test_threads_have_no_memory_of_any_size(statement: Stmt, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=reason):
        text_of(shared(statement, Store(Y, I, load(X, I))))

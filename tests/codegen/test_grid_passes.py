"""What threads of a grid share: running totals, slices of memory, loops that count at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen import build
from codegen.build import add, block, const, increment, load, mul, sub
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Fill,
    For,
    Function,
    LoopKind,
    Module,
    NewTable,
    Stmt,
    Storage,
    Store,
    Table,
    Team,
    Var,
)
from codegen.machine.target import CUDA, Target, UnsupportedError
from codegen.passes.gpu.counting_loops import count_at_once
from codegen.passes.gpu.slices import cut_slices
from codegen.pretty import pretty
from codegen.running_totals import running_totals, totals_functions
from codegen.tree import find
from codegen.types import FLOAT64, INT64
from codegen.verify import verify
from tests.codegen.functions import N_I, I, J, X, Y
from tests.codegen.interpreter import run

NUMBERS = Array("numbers", INT64, Storage.OUTPUT)
ROW = Array("row", FLOAT64, Storage.LOCAL)
PIECE, COUNT = Var("piece"), Var("count")


def function(*body: Stmt) -> Function:
    return Function("f", (Y, X), (N_I,), block(*body), threaded=True)


# ---------------------------------------------------------------- running totals


@pytest.mark.rotating(2)
@pytest.mark.parametrize("count", [0, 1, 255, 256, 257, 1000, 65536, 70001])
@pytest.mark.parametrize("op", ["+", "max"])
def test_running_totals(count: int, op: str) -> None:
    call = running_totals(NUMBERS, COUNT, op)
    whole = Function("f", (NUMBERS,), (COUNT,), block(call), threaded=True)
    module = Module((*totals_functions(whole), whole))
    verify(module)
    numbers = np.random.default_rng(count).integers(0, 9, count + 1)
    wanted = {"+": np.cumsum, "max": np.maximum.accumulate}[op]([0, *numbers[1:]])
    scalars = {"count": count, "threads": 1}
    found = run(whole, {"numbers": numbers}, scalars, module.functions[:-1]).arrays["numbers"]
    np.testing.assert_array_equal(found, wanted)


def test_threads_share_running_totals() -> None:
    call = running_totals(NUMBERS, COUNT)
    whole = Function("f", (NUMBERS,), (COUNT,), block(call), threaded=True)
    (totals,) = totals_functions(whole)
    shared = [loop for loop in find(totals, For) if loop.kind is LoopKind.PARALLEL]
    assert len(shared) == 4  # two of chunks, two that add what is before each


# ---------------------------------------------------------------- slices


def reversed_rows() -> Function:
    """y[2 * piece + k] = x[2 * piece + 1 - k], by a copy of each pair in own memory."""
    first = mul(PIECE, 2)
    copies = [Store(ROW, const(k), load(X, add(first, k))) for k in range(2)]
    back = [Store(Y, add(first, k), load(ROW, const(1 - k))) for k in range(2)]
    setup = block(Allocate(ROW, const(2)))
    clear = Fill(ROW, const(0), const(2), const(0.0, FLOAT64))
    return function(Team(PIECE, N_I, setup, block(clear, *copies, *back)))


def on_gpu(**changes: int) -> Target:
    """The nominal GPU with other figures."""
    return replace(CUDA, machine=replace(CUDA.gpu, **changes))


@pytest.mark.parametrize("slices", [1, 2, 1 << 16])
def test_each_thread_has_a_slice(slices: int) -> None:
    (found,) = cut_slices(Module((reversed_rows(),)), on_gpu(slice_threads=slices)).functions
    verify(found)
    x = np.arange(10.0)
    y = run(found, {"y": np.zeros(10), "x": x}, {"n_i": 5}).arrays["y"]
    np.testing.assert_array_equal(y.reshape(5, 2), x.reshape(5, 2)[:, ::-1])


def test_slices_take_as_much_memory_as_there_is() -> None:
    (found,) = cut_slices(Module((reversed_rows(),)), on_gpu(slice_bytes=50)).functions
    (allocate,) = find(found, Allocate)
    state = run(found, {"y": np.zeros(10), "x": np.arange(10.0)}, {"n_i": 5})
    assert "min(n_i" in pretty(found) and isinstance(allocate.size, build.Binary)
    assert state.arrays["y"][0] == 1


def test_pieces_without_memory_are_iterations() -> None:
    team = Team(PIECE, N_I, Block(), block(Store(Y, PIECE, load(X, PIECE))))
    (found,) = cut_slices(Module((function(team),)), CUDA).functions
    assert "parallel for piece in 0..n_i:" in pretty(found)


def test_threads_have_no_tables() -> None:
    team = Team(PIECE, N_I, block(NewTable(Table("seen"))), Block())
    with pytest.raises(UnsupportedError, match="no hash tables"):
        cut_slices(Module((function(team),)), CUDA)


# ---------------------------------------------------------------- counting

TOTAL, LAST = Var("total"), Var("last")


def counted(*body: Stmt, stop: object = N_I) -> str:
    loop = For(I, const(2), stop, block(*body))  # type: ignore[arg-type]
    zero = build.block(build.Declare(TOTAL, const(0)), loop, Store(Y, TOTAL, load(X, TOTAL)))
    (found,) = count_at_once(Module((function(zero),))).functions
    return pretty(found)


def test_a_loop_that_counts() -> None:
    assert "total += max(n_i - 2, 0)" in counted(increment(TOTAL))
    assert "total += max(n_i - 2, 0) * 3" in counted(increment(TOTAL, 3))


def test_a_loop_that_does_more() -> None:
    assert "for i in 2..n_i" in counted(increment(TOTAL), Store(Y, I, load(X, I)))
    assert "for i in 2..n_i" in counted(increment(TOTAL, I))


def test_a_loop_whose_end_it_counts() -> None:
    assert "for i in 2..total" in counted(increment(TOTAL), stop=TOTAL)


def test_a_loop_of_one_round() -> None:
    inner = For(J, I, add(I, 1), block(Store(Y, J, load(X, J))))
    loop = For(I, const(0), sub(N_I, 1), block(inner))
    (found,) = count_at_once(Module((function(loop),))).functions
    assert "j: const int64 = i" in pretty(found) or "j: int64 = i" in pretty(found)
    assert "for j" not in pretty(found)

"""Loops made from schedules: every instance once, in the schedule's order; and compiled C."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from codegen.build import add, mul
from codegen.emit.c import emit_c
from codegen.ir import (
    Array,
    Block,
    Const,
    Expr,
    For,
    Function,
    Load,
    LoopKind,
    Module,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.order import run_passes
from codegen.pretty import pretty
from codegen.tree import walk
from codegen.types import FLOAT64, INT64
from codegen.verify import verify
from polyhedral.affine import variable
from polyhedral.band_schedule import Row, Schedule, Tag, original, rearrange
from polyhedral.errors import BudgetExceededError
from polyhedral.model import Nest, nest, statement
from polyhedral.nests.tile import tile
from polyhedral.nests.to_loops import to_loops
from tests.codegen.interpreter import run
from tests.codegen.test_emit import compile_c, needs_compiler
from tests.polyhedral.brute_force import new_key, written
from tests.polyhedral.random_nests import PARAMETERS, changes, nests

LOG = Array("entries", INT64, Storage.OUTPUT)
LENGTH = Array("length", INT64, Storage.OUTPUT)
A, B, C = (Array(n, FLOAT64, Storage.INPUT if n != "C" else Storage.OUTPUT) for n in "ABC")
N = Var("N")
GEMM = nest(
    statement("Z", "i in 0..N, j in 0..N", "C[i,j] =", (0, 0, 0)),
    statement("S", "i in 0..N, j in 0..N, k in 0..N", "C[i,j] +=; A[i,k]; B[k,j]", (0, 0, 1, 0)),
)
PRODUCT = nest(statement("S", "i in 0..N, j in 0..N, k in 0..N", "C[i,j] +=; A[i,k]; B[k,j]"))


def logging(made: Nest) -> dict[str, Any]:
    """Bodies that write the number of their statement and the values of its loops to a log."""

    def body(number: int, names: tuple[str, ...]) -> Any:
        def log(values: Mapping[str, Expr]) -> Stmt:
            start = mul(Load(LENGTH, Const(0)), 4)
            words = [Const(number), *(values[name] for name in names)]
            stores = [Store(LOG, add(start, at), word) for at, word in enumerate(words)]
            return Block((*stores, Store(LENGTH, Const(0), Const(1), "+")))

        return log

    return {each.name: body(at, each.variables) for at, each in enumerate(made.statements)}


def run_log(made: Nest, loops: Block) -> list[tuple[int, ...]]:
    function = Function("f", (LOG, LENGTH), tuple(map(Var, made.parameters)), loops)
    verify(Module((function,)))
    arrays = {"entries": np.zeros(4 * 400, np.int64), "length": np.zeros(1, np.int64)}
    state = run(function, arrays, PARAMETERS)
    entries = state.arrays["entries"].reshape(-1, 4)[: state.arrays["length"][0]]
    depths = [len(each.loops) for each in made.statements]
    return [tuple(int(v) for v in entry[: 1 + depths[entry[0]]]) for entry in entries]


def marked(schedule: Schedule) -> Schedule:
    """With full tiles in loops of their own."""
    return Schedule(tuple((name, _marked(rows)) for name, rows in schedule.rows))


def _marked(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    last = max((at for at, row in enumerate(rows) if row.size > 1), default=-1)
    return tuple(replace(row, separates=at == last) for at, row in enumerate(rows))


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_instance_runs_once_in_the_order_of_the_schedule(data: Any) -> None:
    made = data.draw(nests())
    change = data.draw(changes(made))
    schedule = rearrange(made, change.loops, change.rows)
    schedule = marked(schedule) if data.draw(st.booleans()) else schedule
    loops = to_loops(made, schedule, logging(made))
    note(f"{made}\n{schedule}\n{pretty(loops)}")
    numbers = {each.name: at for at, each in enumerate(made.statements)}
    expected = [
        (numbers[each.name], *(point[name] for name in each.variables))
        for each, point in sorted(
            written(made, PARAMETERS), key=lambda instance: new_key(schedule, instance)
        )
    ]
    assert run_log(made, loops) == expected


# ---------------------------------------------------------------- as text


def product(values: Mapping[str, Expr]) -> Stmt:
    def at(array: Array, row: str, column: str) -> Load:
        return Load(array, add(mul(values[row], N), values[column]))

    value = mul(at(A, "i", "k"), at(B, "k", "j"))
    return Store(C, at(C, "i", "j").index, value, "+")


def cleared(values: Mapping[str, Expr]) -> Stmt:
    return Store(C, add(mul(values["i"], N), values["j"]), Const(0.0, FLOAT64))


BODIES = {"S": product, "Z": cleared}


def test_a_tiled_product_reads_as_expected() -> None:
    schedule = tile(GEMM, "ij", {"i": 32, "j": 64}).tagged("i_tile", Tag.PARALLEL)
    assert pretty(to_loops(GEMM, schedule, BODIES)) == (
        """\
parallel for i_tile in 0..(N - 1 < 0 ? (N - 32) / 32 : (N - 1) / 32) + 1:
  for j_tile in 0..(N - 1) / 64 + 1:
    for i in i_tile * 32..min(N, i_tile * 32 + 32):
      for j in j_tile * 64..min(N, j_tile * 64 + 64):
        C[i * N + j] = 0.0
        for k in 0..N:
          C[i * N + j] += A[i * N + k] * B[k * N + j]"""
    )


def test_full_tiles_of_a_triangle_run_in_loops_of_their_own() -> None:
    made = nest(statement("S", "i in 0..N, j in 0..i", "x[i,j] ="))
    rows = tile(made, "ij", {"i": 3, "j": 2}).of("S")
    schedule = Schedule((("S", tuple(replace(r, separates=r.name == "j_tile") for r in rows)),))
    whole = (
        "for j_tile in 0..i_tile + i_tile / 2:\n"
        "        for i in i_tile * 3..i_tile * 3 + 3:\n"
        "          for j in j_tile * 2..j_tile * 2 + 2:\n"
    )
    assert whole in pretty(to_loops(made, schedule, logging(made)))


def test_parameters_may_be_any_expressions() -> None:
    given = {"N": Load(LENGTH, Const(0))}
    made = nest(statement("S", "i in 0..N", "x[i] ="))
    loops = to_loops(made, original(made), logging(made), given)
    assert pretty(loops).startswith("for i in 0..length[0]:")


def test_names_of_loops_differ_from_those_around_them() -> None:
    made = nest(statement("S", "N_tile in 0..N, double in 0..N", "x[double] +="))
    loops = to_loops(made, tile(made, ("double",), {"double": 4}), logging(made))
    names = [node.var.name for node in walk(loops) if isinstance(node, For)]
    assert len(set(names)) == 3
    assert "double" not in names


def test_an_exhausted_budget_says_so() -> None:
    with pytest.raises(BudgetExceededError, match="within 100 operations"):
        to_loops(GEMM, original(GEMM), BODIES, budget=100)


# ---------------------------------------------------------------- compiled

SCHEDULES = {
    "written": original(PRODUCT),
    "tiled": tile(PRODUCT, "ijk", {"i": 8, "j": 16, "k": 4}, points="ikj"),
    "tiled_twice": tile(PRODUCT, "ijk", {"i": 16, "k": 8}, {"i": 4, "j": 8}, points="jki"),
    "skewed": tile(PRODUCT, "ikj", {"k": 5}, planes={"j": variable("j") + variable("k")}),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The product in every order, after all passes, in C."""
    target = Target(machine=Processor(vector_bytes=16))
    functions = [
        Function(name, (A, B, C), (N,), to_loops(PRODUCT, schedule, BODIES))
        for name, schedule in SCHEDULES.items()
    ]
    folder = tmp_path_factory.mktemp("loops")
    text = emit_c(run_passes(Module(tuple(functions)), target), target)
    flags = ["-O1", "-fopenmp-simd", "-fPIC", "-shared", "-o", str(folder / "kernel.so")]
    compile_c(text, folder, *flags)
    return ctypes.CDLL(str(folder / "kernel.so"))


@needs_compiler
@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("size", [0, 1, 7, 33])
def test_compiled_products(library: ctypes.CDLL, name: str, size: int) -> None:
    generator = np.random.default_rng(size)
    a, b = generator.integers(-9, 9, (2, size, size)).astype(float)
    c = np.zeros((size, size))
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, c)]
    assert getattr(library, name)(*pointers, ctypes.c_int64(size)) == 0
    np.testing.assert_array_equal(c, a @ b)


def test_tags_are_kinds_of_loops() -> None:
    tagged = original(PRODUCT).tagged("i", Tag.PARALLEL).tagged("j", Tag.VECTOR)
    kinds = [n.kind for n in walk(to_loops(PRODUCT, tagged, BODIES)) if isinstance(n, For)]
    assert kinds == [LoopKind.PARALLEL, LoopKind.VECTOR, LoopKind.SERIAL]

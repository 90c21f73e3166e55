"""Loops over several long functions, cut: what is cut, what is not, and that results stay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.build import add, apply, block, cast, load, mul
from codegen.infer import c_function, type_of
from codegen.ir import Apply, Array, Expr, For, Function, LoopKind, Module, Storage, Store
from codegen.passes.function_chains import BLOCK, split_function_chains
from codegen.passes.vectorize import vectorize
from codegen.tree import find
from codegen.types import FLOAT32, FLOAT64
from codegen.verify import verify
from tests.codegen.functions import N_I, I, X, Y, loop
from tests.codegen.interpreter import run

NARROW = Array("x32", FLOAT32, Storage.INPUT)
Z = Array("z", FLOAT64, Storage.INPUT)
x, z = load(X, I), load(Z, I)
sine, root = apply("sin", x), apply("sqrt", apply("abs", z))


def each(value: Expr, op: str | None = None) -> Function:
    body = block(loop(I, N_I, Store(Y, I, value, op)))
    module = Module((Function("each", (X, Z, NARROW, Y), (N_I,), body),))
    return vectorize(module).functions[0]


def cut(function: Function) -> Function:
    module = split_function_chains(Module((function,)))
    verify(module)
    return module.functions[0]


CASES: list[tuple[Expr, int]] = [
    (sine, 1),
    (apply("exp", sine), 2),
    (apply("exp", apply("tanh", add(sine, z))), 3),
    (mul(root, apply("exp", add(root, sine))), 2),
    # Where the first is done, the second is what the first was of: they are not one.
    (apply("sin", mul(apply("sin", mul(sine, z)), z)), 3),
    (add(apply("exp", x), sine), 2),
    (mul(apply("exp", x), apply("exp", x)), 2),
    # What is kept first must not be lost: two functions are left of each other in the last loop.
    (add(apply("exp", x), mul(sine, apply("tanh", z))), 2),
    (add(apply("exp", sine), apply("exp", apply("cos", z))), 3),
    # What lies between is of another type than the result.
    (apply("exp", cast(FLOAT64, apply("sin", load(NARROW, I)))), 1),
]


@pytest.mark.parametrize(("value", "loops"), CASES)
@pytest.mark.parametrize("size", [0, 3, BLOCK, 2 * BLOCK + 5])
def test_results_stay(value: Expr, loops: int, size: int) -> None:
    function = each(value)
    after = cut(function)
    inner = [loop for loop in find(after.body, For) if not any(find(loop.body, For))]
    assert len(inner) == loops
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=size) for name in "xzy"} | {
        "x32": rng.normal(size=size).astype(np.float32)
    }
    expected, found = (run(f, arrays, {"n_i": size}).arrays["y"] for f in (function, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_loop_that_reads_its_result_is_left() -> None:
    chain = apply("exp", sine)
    for function in (each(chain, "+"), each(add(chain, load(Y, I)))):
        assert cut(function) is function


def test_each_loop_has_one_long_function() -> None:
    value: Expr = x
    for name in ("sin", "exp", "sqrt", "log1p", "tanh"):
        value = apply(name, value)
    assert type_of(value) == FLOAT64
    loops = [loop for loop in find(cut(each(value)).body, For) if not any(find(loop.body, For))]
    longs = [[c for c in find(loop.body, Apply) if c_function(c).is_long] for loop in loops]
    assert [len(functions) for functions in longs] == [1, 1, 1, 1]


@pytest.mark.parametrize(("value", "loops"), [(sine, 1), (apply("exp", sine), 2), (x, 1)])
def test_loops_that_threads_share_take_lanes_in_blocks(value: Expr, loops: int) -> None:
    shared = replace(loop(I, N_I, Store(Y, I, value)), kind=LoopKind.PARALLEL)
    function = Function("each", (X, Y), (N_I,), block(shared), threaded=True)
    after = cut(vectorize(Module((function,))).functions[0])
    kinds = [each.kind for each in find(after.body, For)]
    assert kinds == [LoopKind.PARALLEL, *[LoopKind.VECTOR] * loops]
    arrays = {name: np.random.default_rng(0).normal(size=2 * BLOCK + 5) for name in "xy"}
    sizes = {"n_i": 2 * BLOCK + 5}
    expected, found = (run(f, arrays, sizes).arrays["y"] for f in (function, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6)

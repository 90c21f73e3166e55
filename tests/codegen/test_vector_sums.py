"""Sums in vector lanes cut into parts: what is cut, what is not, and that results stay the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from codegen.build import add, block, eq, load, sub
from codegen.ir import (
    Array,
    Assign,
    Binary,
    Const,
    Declare,
    For,
    Function,
    If,
    LoopKind,
    Module,
    Select,
    Storage,
    Store,
    Var,
)
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.sums.vector_sums import ROUND_TO, split_sums_of_streams, split_vector_sums
from codegen.passes.sums.vector_sums import SUMS as TOGETHER
from codegen.passes.vectorize import vectorize
from codegen.tree import find
from codegen.types import FLOAT64, INT32
from codegen.verify import verify
from tests.codegen.functions import N_I, N_J, I, J, const, result, source
from tests.codegen.interpreter import run

LONG = TOGETHER * ROUND_TO
A, X, Y = source("A"), source("x"), result("y")
SUMS = tuple(Var(f"t_{n}", FLOAT64) for n in range(4))
PRODUCT = Var("product", FLOAT64)


def sums(count: int = 1, op: str = "+") -> Function:
    """y[n] = y[n] + sum(j from n_i to n_j - 1, A[j] * x[j - n_i]), `count` times."""
    value = Binary("*", load(A, J), load(X, sub(J, N_I)))
    updates = [Assign(total, PRODUCT, op) for total in SUMS[:count]]
    body = block(Declare(PRODUCT, value), *updates)
    function = Function(
        "sums",
        (A, X, Y),
        (N_I, N_J),
        block(
            *(Declare(total, Const(1.0, FLOAT64)) for total in SUMS[:count]),
            For(J, N_I, N_J, body),
            *(Store(Y, const(n), total, "+") for n, total in enumerate(SUMS[:count])),
        ),
    )
    return vectorize(Module((function,))).functions[0]


def cut(function: Function, vector_bytes: int = 16) -> Function:
    module = split_vector_sums(
        Module((function,)), Target(machine=Processor(vector_bytes=vector_bytes))
    )
    verify(module)
    return module.functions[0]


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("length", [0, 1, LONG - 1, LONG, LONG + 1, LONG + 3, 3 * LONG])
@pytest.mark.parametrize(("count", "together"), [(1, 4), (2, 4)])
def test_results_stay(start: int, length: int, count: int, together: int) -> None:
    function = sums(count)
    after = cut(function)
    assert [len(loop.reductions) for loop in find(after.body, For)] == [together, count]
    rng = np.random.default_rng(0)
    arrays = {name: rng.integers(-4, 5, start + length + 4).astype(float) for name in "Axy"}
    scalars = {"n_i": start, "n_j": start + length}
    expected, found = (run(f, arrays, scalars).arrays["y"] for f in (function, after))
    np.testing.assert_array_equal(found, expected)


def serial() -> Function:
    (loop,) = find(sums().body, For)
    return replace(sums(), body=block(Declare(SUMS[0], Const(1.0, FLOAT64)), replace(
        loop, kind=LoopKind.SERIAL, reductions=()
    )))  # fmt: skip


def stores() -> Function:
    """y[i] = x[i] + x[i]."""
    body = block(Store(Y, I, add(load(X, I), load(X, I))))
    loop = For(I, const(0), N_I, body, 1, LoopKind.VECTOR)
    return Function("stores", (X, Y), (N_I,), block(loop))


@pytest.mark.parametrize(
    "function", [sums(4), sums(op="*"), serial(), stores()], ids=["four", "product", "serial", "no"]
)
def test_what_is_left_alone(function: Function) -> None:
    module = Module((function,))
    assert split_vector_sums(module, Target()) is module


@pytest.mark.parametrize("use", ["bound", "condition", "place"])
def test_sums_beside_coordinates_are_left_alone(use: str) -> None:
    crd = Array("crd", INT32, Storage.INPUT)
    dense, function = Module((sums(),)), sums()
    entry = load(crd, const(0))
    reader = {
        "bound": For(Var("p"), const(0), entry, block()),
        "condition": If(eq(entry, const(0)), block()),
        "place": Store(Y, entry, const(0)),
    }[use]
    arrays = (crd, *function.arrays)
    body = block(*function.body.body, reader)
    sparse = Module((replace(function, arrays=arrays, body=body),))
    target = Target()
    assert split_sums_of_streams(sparse, target) is sparse
    chosen = Select(eq(entry, const(0)), load(X, entry), const(0))
    label = replace(function, arrays=arrays, body=block(*function.body.body, Store(Y, I, chosen)))
    assert split_sums_of_streams(Module((label,)), target) != Module((label,))
    assert split_sums_of_streams(dense, target) == split_vector_sums(dense, target) != dense


@pytest.mark.parametrize(("bytes", "least"), [(16, LONG), (32, 2 * LONG), (64, 4 * LONG)])
def test_parts_have_several_vectors(bytes: int, least: int) -> None:
    """Shorter rows are one sum."""
    function = cut(sums(), bytes)
    for length in (LONG - 1, LONG, least - 1, least, least + 1):
        arrays = {name: np.arange(1.0, length + 5) for name in "Axy"}
        scalars = {"n_i": 0, "n_j": length}
        expected, found = (run(f, arrays, scalars) for f in (sums(), function))
        np.testing.assert_array_equal(found.arrays["y"], expected.arrays["y"])
    (part,) = (d.value for d in find(function.body, Declare) if d.var.name == "part")
    shortest = [select.condition.right.value for select in find(part, Select)]
    assert shortest == ([least] if least > LONG else [])

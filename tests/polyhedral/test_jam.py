"""Unroll-and-jam and sums in lanes: as text, and run against the loops they come from."""

from __future__ import annotations

import numpy as np
import pytest

from codegen.build import add, mul
from codegen.ir import Array, Block, For, Function, Load, LoopKind, Module, Storage, Store, Var
from codegen.names import Names
from codegen.pretty import pretty
from codegen.types import FLOAT64
from codegen.verify import verify
from polyhedral.nests.jam_plan import unroll_and_jam
from polyhedral.nests.lane_sums import hoist_sums
from tests.codegen.interpreter import run

A, B = (Array(name, FLOAT64, Storage.INPUT) for name in "AB")
C = Array("C", FLOAT64, Storage.OUTPUT)
ROW, J, K, N = map(Var, "ijkN")


def at(array: Array, row: Var, column: Var) -> Load:
    return Load(array, add(mul(row, N), column))


UPDATE = Store(C, at(C, ROW, J).index, mul(at(A, ROW, K), at(B, K, J)), "+")


def product(first: int, second: int, triangle: bool = False) -> Block:
    inner = For(J, K if triangle else Var("zero"), N, Block((UPDATE,)))
    middle = For(K, Var("zero"), N, Block((inner,)), unroll=second)
    return Block((For(ROW, Var("zero"), N, Block((middle,)), unroll=first),))


def computed(loops: Block, size: int) -> np.ndarray:
    function = Function("f", (A, B, C), (N, Var("zero")), loops)
    verify(Module((function,)))
    generator = np.random.default_rng(0)
    arrays = {name: generator.integers(0, 9, size * size).astype(float) for name in "ABC"}
    return run(function, arrays, {"N": size, "zero": 0}).arrays["C"]


@pytest.mark.parametrize("triangle", [False, True])
@pytest.mark.parametrize("factors", [(1, 2), (2, 1), (2, 4), (4, 2), (8, 1)])
@pytest.mark.parametrize("size", [0, 1, 2, 5, 9])
def test_jammed_loops_compute_the_same(factors: tuple[int, int], size: int, triangle: bool) -> None:
    plain = product(1, 1, triangle)
    jammed = unroll_and_jam(product(*factors, triangle), Names("ijkNABC"))
    np.testing.assert_array_equal(computed(jammed, size), computed(plain, size))


def test_a_sum_stays_in_one_statement() -> None:
    text = pretty(unroll_and_jam(product(1, 2), Names("ijkNABC")))
    one = "C[i * N + j] = C[i * N + j] + A[i * N + k] * B[k * N + j]"
    assert f"{one} + A[i * N + (k + 1)] * B[(k + 1) * N + j]" in text
    assert "for k in zero..k_rest step 2:" in text
    assert "for k in k_rest..N:" in text


def test_bounds_that_differ_are_compared_when_they_are_reached() -> None:
    text = pretty(unroll_and_jam(product(1, 2, triangle=True), Names("ijkNABC")))
    assert "if k + 1 == k:" in text


def test_sums_of_vector_loops_run_in_variables() -> None:
    dot = Store(C, ROW, mul(at(A, ROW, K), at(A, J, K)), "-")
    loop = For(K, Var("zero"), N, Block((dot,)), kind=LoopKind.VECTOR)
    assert pretty(hoist_sums(Block((loop,)), Names("ijkNAC"))) == (
        """\
sum: float64 = 0.0
vector for k in zero..N reducing + sum:
  sum += -(A[i * N + k] * A[j * N + k])
C[i] += sum"""
    )


def test_serial_loops_keep_their_sums() -> None:
    loop = For(K, Var("zero"), N, Block((Store(C, ROW, Load(A, K), "+"),)))
    assert hoist_sums(Block((loop,)), Names()) == Block((loop,))

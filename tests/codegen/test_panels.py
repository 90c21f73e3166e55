"""Panels of rows in vector registers: where they are made, and what is told of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from codegen.build import add, block, load, mul
from codegen.ir import (
    Binary,
    Block,
    Const,
    Declare,
    Fill,
    For,
    Function,
    If,
    Store,
    VectorLoad,
    VectorStore,
)
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.notes import notes
from codegen.passes.order import run_passes, tidy
from codegen.passes.panels import tile_panels
from codegen.tree import find, rewrite
from codegen.types import FLOAT32, FLOAT64, INT64, ScalarType
from codegen.variables import free_vars
from tests.codegen.functions import (
    CRD,
    N_I,
    N_J,
    N_K,
    POS,
    ZERO,
    I,
    J,
    K,
    P,
    X,
    Y,
    load_index,
    loop,
    mttkrp,
    result,
    segment,
    spmm,
)
from tests.codegen.inputs import arguments
from tests.codegen.interpreter import run
from tests.codegen.test_passes import AVX2, AVX512, body_of, module


def without_fill(function: Function) -> Function:
    return rewrite(
        function,
        lambda node: (
            Block(tuple(s for s in node.body if not isinstance(s, Fill)))
            if isinstance(node, Block)
            else node
        ),
    )


def with_free_places(function: Function) -> Function:
    """The same where coordinates below zero stand for no term."""

    def guarded(node: object) -> object:
        if not isinstance(node, For) or node.var != P:
            return node
        declares, columns = node.body.body
        condition = Binary(">=", load_index(CRD, P), Const(0, INT64))
        return replace(node, body=block(declares, If(condition, block(columns))))

    return rewrite(function, guarded)


def test_rows_with_free_places_are_held_too() -> None:
    plain, free = (
        body_of(tidy(tile_panels(module(each), AVX2)))
        for each in (spmm(), with_free_places(spmm()))
    )
    assert "C_vals_7: float64x4 = " in free
    assert free.count(">= 0") == plain.count("for p in") > 1


def test_columns_are_held_in_registers() -> None:
    text = body_of(tidy(tile_panels(module(without_fill(spmm())), AVX2)))
    assert "for k in 0..n_k - 31 step 32:" in text
    assert "C_vals_7: float64x4 = C_vals[i * n_k + k + 28:+4]" in text
    assert "C_vals_7 += {A_vals[p] x 4} * B_vals[j * n_k + k + 28:+4]" in text


def test_sums_start_from_what_the_row_was_filled_with() -> None:
    found = tile_panels(module(spmm()), AVX2)
    assert not any(find(found, Fill))
    assert "C_vals_7: float64x4 = {0.0 x 4}" in body_of(found)


OTHER_FILLS = {
    "another place": Fill(result("C_vals"), N_K, N_K, ZERO),
    "another length": Fill(result("C_vals"), mul(I, N_K), N_J, ZERO),
    "another array": Fill(result("y"), mul(I, N_K), N_K, ZERO),
}


@pytest.mark.parametrize("fill", OTHER_FILLS.values(), ids=OTHER_FILLS)
def test_other_fills_stay(fill: Fill) -> None:
    function = rewrite(spmm(), lambda node: fill if isinstance(node, Fill) else node)
    found = tile_panels(module(function), AVX2)
    assert list(find(found, Fill)) == [fill]
    assert "C_vals_7: float64x4 = C_vals[i * n_k + k + 28:+4]" in body_of(tidy(found))


def test_a_static_number_of_columns_leaves_one_panel() -> None:
    found = run_passes(module(spmm(32)), AVX2)
    assert len(list(find(found, VectorStore))) == 8
    assert len(list(find(found, For))) == 2


WHOLE, LAST = "k by 32: a panel of C_vals in 8 registers of 4", "k, up to 31 that are left: a panel"


@pytest.mark.parametrize(
    ("columns", "panels"),
    [(8, [LAST]), (31, [LAST]), (32, [WHOLE]), (36, [WHOLE, LAST]), (64, [WHOLE])],
)
def test_panels_of_one_round_are_told_as_others_are(columns: int, panels: list[str]) -> None:
    """Their loop over columns is gone; those without a round are not told."""
    told = notes(run_passes(module(spmm(columns)), AVX2))
    found = [line for line in told if "a panel of C_vals" in line]
    assert all(line.startswith(start) for line, start in zip(found, panels, strict=True))
    assert "  vector loop: k, along rows of C_vals, B_vals" in told


# columns, and the lanes of the registers of each pass over the sparse operand
PASSES = (
    (1, [[]]), (2, [[2, 2]]), (3, [[2, 2]]), (4, [[4]]), (5, [[4, 4]]), (8, [[4, 4]]),
    (10, [[4] * 3]), (16, [[4] * 4]), (17, [[4] * 6]), (31, [[4] * 8]), (32, [[4] * 8]),
    (34, [[4] * 8, [2, 2]]), (50, [[4] * 8, [4] * 6]), (100, [[4] * 8, [4]]),
)  # fmt: skip


@pytest.mark.parametrize(("columns", "passes"), PASSES)
def test_all_columns_that_are_left_come_in_one_pass(columns: int, passes: list[list[int]]) -> None:
    found = run_passes(module(spmm(columns)), AVX2)
    loops = [loop for loop in find(found, For) if loop.var == P]
    assert [[load.lanes for load in find(loop, VectorLoad)] for loop in loops] == passes


EVERY = (*range(1, 70), 127, 129, 200, 300)
SOME = (*range(1, 18), 23, 31, 32, 33, 47, 63, 64, 65, 129, 200)
"""Numbers of columns: whole panels of 32, 64 and 128, and parts of every kind of length."""


@pytest.mark.parametrize("filled", [True, False])
@pytest.mark.parametrize("element", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["AVX2", "AVX512"])
def test_any_number_of_columns(
    target: Target, element: ScalarType, filled: bool, thorough: bool
) -> None:
    function = spmm(None, element) if filled else without_fill(spmm(None, element))
    (tiled,) = tile_panels(module(function), target).functions
    arrays, _ = arguments("spmm", 1)
    a = sp.csr_array((arrays["A_vals"], arrays["A2_crd"], arrays["A2_pos"]), shape=(5, 70))
    for columns in EVERY if thorough else SOME:
        b = np.arange(70.0 * columns, dtype=element.name).reshape(70, columns) % 7
        given = arrays | {"B_vals": b.ravel(), "C_vals": np.ones(5 * columns, element.name)}
        found = run(tiled, given, {"n_i": 5, "n_k": columns}).arrays["C_vals"]
        wanted = a @ b + (0 if filled else 1)  # of small integers, which are exact
        np.testing.assert_array_equal(found, wanted.ravel())


def test_wide_registers_make_fewer_vectors() -> None:
    assert len(list(find(run_passes(module(spmm(32)), AVX512), VectorStore))) == 4
    single = run_passes(module(spmm(32, FLOAT32)), AVX2)
    assert len(list(find(single, VectorStore))) == 4


def test_a_nest_of_sums_is_one_sum() -> None:
    text = body_of(tile_panels(module(mttkrp()), AVX2))
    assert text.index("for r in 0..n_r - 31") < text.index("for p in")


def test_no_vectors_no_panels() -> None:
    plain = module(spmm())
    found = tile_panels(plain, Target(machine=Processor(vector_bytes=0)))
    assert body_of(found) == body_of(plain)
    assert notes(found)[0] == "no panels of C_vals: float64 has no vectors here"


ILLEGAL_NESTS = {
    "no panels of y: each term adds to a row of its own": Store(
        Y, add(mul(J, N_K), K), load(X, K), "+"
    ),
    "no panels of y: the sum reads it": Store(Y, add(mul(I, N_K), K), load(Y, K), "+"),
    "none: no row stays the same while a sum runs over it": Store(
        Y, add(mul(I, N_K), K), load(X, K)
    ),
    "no panels of y: k runs along elements of it that are no neighbours": Store(
        Y, add(mul(K, N_K), I), load(X, K), "+"
    ),
    "no panels of y: what is added has no neighbours along k": Store(
        Y, add(mul(I, N_K), K), load(X, load(CRD, K)), "+"
    ),
}


@pytest.mark.parametrize("why", ILLEGAL_NESTS)
def test_other_nests_are_left_alone_and_say_why(why: str) -> None:
    nest = segment(P, POS, I, Declare(J, load(CRD, P)), loop(K, N_K, ILLEGAL_NESTS[why]))
    function = module(Function("f", (POS, CRD, X, Y), (N_I, N_K), block(loop(I, N_I, nest))))
    assert free_vars(function.functions[0].body) <= {N_I, N_K}
    found = tile_panels(function, AVX2)
    assert body_of(found) == body_of(function)
    assert notes(found)[0] == why


def test_columns_whose_number_the_sum_changes_are_left_alone() -> None:
    inner = loop(K, J, Store(Y, add(mul(I, N_K), K), load(X, K), "+"))
    nest = segment(P, POS, I, Declare(J, load(CRD, P)), inner)
    function = module(Function("f", (POS, CRD, X, Y), (N_I, N_K), block(loop(I, N_I, nest))))
    assert body_of(tile_panels(function, AVX2)) == body_of(function)

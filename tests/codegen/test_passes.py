"""Each pass does what its docstring shows, keeps the meaning, and leaves legal loop IR."""

from __future__ import annotations

import pytest
from numpy.testing import assert_array_equal

from codegen.build import add, block, load, lt, mul
from codegen.ir import (
    Allocate,
    Assign,
    Block,
    Combine,
    Const,
    Declare,
    For,
    Function,
    If,
    LoopKind,
    Module,
    Prefetch,
    Store,
    Var,
    While,
)
from codegen.machine.cpu import Processor
from codegen.machine.target import Target
from codegen.passes.copy_propagation import propagate_copies
from codegen.passes.dead_code import clean, remove_dead_code
from codegen.passes.order import C_PASSES, passes_for, run_passes
from codegen.passes.parameters import prune
from codegen.passes.phases import structure_only
from codegen.passes.sums.accumulators import split_accumulators
from codegen.passes.vectorize import vectorize
from codegen.pretty import pretty
from codegen.tree import find
from codegen.types import COMPLEX128, FLOAT64
from codegen.verify import verify
from tests.codegen.functions import (
    CRD,
    N_I,
    N_K,
    POS,
    VALS,
    ZERO,
    I,
    J,
    K,
    P,
    X,
    Y,
    all_functions,
    const,
    dot,
    local,
    loop,
    result,
    row_append,
    segment,
    source,
    spmv,
)
from tests.codegen.inputs import arguments
from tests.codegen.interpreter import State, run

AVX2 = Target(machine=Processor(vector_bytes=32), openmp=True)
AVX512 = Target(machine=Processor(vector_bytes=64, registers=32))
FUNCTIONS = {function.name: function for function in all_functions()}


def module(function: Function) -> Module:
    return Module((function,))


def body_of(found: Module) -> str:
    """The text of the one function, without its head."""
    lines = pretty(found.functions[0]).splitlines()[1:]
    return "\n".join(line.removeprefix("  ") for line in lines)


def assert_same(one: State, other: State) -> None:
    assert one.lengths == other.lengths
    for name in one.arrays.keys() & other.arrays.keys():
        assert_array_equal(one.arrays[name], other.arrays[name])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("target", [AVX2, AVX512], ids=["avx2", "avx512"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_pass_keeps_the_meaning(name: str, target: Target, seed: int) -> None:
    arrays, scalars = arguments(name, seed)
    wanted = run(FUNCTIONS[name], arrays, scalars)
    current = module(FUNCTIONS[name])
    verify(current)
    for step in passes_for(target):
        current = step.run(current, target)
        verify(current)
        assert_same(run(current.functions[0], arrays, scalars), wanted)


def test_passes_are_idempotent_on_their_own_result() -> None:
    once = run_passes(module(row_append()), AVX2)
    assert run_passes(once, AVX2) == once


def test_each_step_says_why_it_stands_there() -> None:
    assert all(step.reason for step in C_PASSES)
    assert len({step.name for step in C_PASSES}) == len(C_PASSES)


def test_another_language_is_refused() -> None:
    with pytest.raises(ValueError, match="Expected the language"):
        passes_for(Target(language="fortran"))


# ---------------------------------------------------------------- copies and dead code

T = Var("t")
OUT = result("out")


def function_of(*body: object) -> Function:
    return Function("f", (X, Y), (N_I,), block(*body))  # type: ignore[arg-type]


def test_copies_are_propagated() -> None:
    copies = function_of(
        loop(P, N_I, Declare(J, P, constant=True), Store(Y, J, load(X, J))),
        Declare(T, const(3)),
        Store(Y, T, ZERO),
    )
    assert body_of(propagate_copies(module(copies))) == (
        "for p in 0..n_i:\n  y[p] = x[p]\ny[3] = 0.0"
    )


def test_a_variable_that_changes_is_no_copy() -> None:
    source_changes = function_of(
        Declare(P, const(0)), Declare(J, P), Assign(P, const(1), "+"), Store(Y, J, ZERO)
    )
    found = propagate_copies(module(source_changes))
    assert found.functions[0] is source_changes


def test_a_copy_ends_with_its_block() -> None:
    twice = function_of(
        If(lt(N_I, 3), block(Declare(J, const(1)), Store(Y, J, ZERO))),
        If(lt(N_I, 4), block(Declare(J, const(2)), Store(Y, J, ZERO))),
    )
    assert body_of(propagate_copies(module(twice))) == (
        "if n_i < 3:\n  y[1] = 0.0\nif n_i < 4:\n  y[2] = 0.0"
    )


W = local("w")
KEEP = Store(Y, const(0), ZERO)
DEAD = {
    "declaration": ((Declare(T, load(X, const(0)).index),), ""),
    "assignment": ((Declare(T, const(0)), Assign(T, const(1), "+")), ""),
    "array": ((Allocate(W, N_I), Store(W, const(0), ZERO)), ""),
    "if": ((If(lt(N_I, 3), Block()),), ""),
    "else": ((If(lt(N_I, 3), Block(), Block((KEEP,))),), "if n_i >= 3:\n  y[0] = 0.0"),
    "for": ((loop(I, N_I),), ""),
    "idle for": ((Declare(T, const(0)), loop(I, N_I, Assign(T, I, "+"))), ""),
    "idle while": (
        (Declare(P, const(0)), While(lt(P, N_I), block(Assign(P, const(1), "+")))),
        "",
    ),
    "prefetch": ((loop(I, N_I, Prefetch(X, I)),), ""),
    "prefetch of what is written": (
        (loop(I, N_I, Prefetch(Y, I)), KEEP),
        "for i in 0..n_i:\n  prefetch y[i]\ny[0] = 0.0",
    ),
    "effect": ((KEEP,), "y[0] = 0.0"),
}


@pytest.mark.parametrize("name", DEAD)
def test_dead_code(name: str) -> None:
    body, after = DEAD[name]
    assert body_of(remove_dead_code(module(function_of(*body)))) == after


def test_a_loop_whose_result_is_read_stays() -> None:
    live = function_of(
        Declare(P, const(0)),
        While(lt(P, N_I), block(Assign(P, const(1), "+"))),
        Store(Y, P, ZERO),
    )
    assert clean(live) is live


def test_unused_parameters_go() -> None:
    used = Function("f", (X, Y, VALS), (N_I, N_K), block(Store(Y, N_I, ZERO)))
    assert prune(used) == Function("f", (Y,), (N_I,), used.body)
    pruned = prune(used)
    assert prune(pruned) is pruned


# ---------------------------------------------------------------- phases


def test_assemble_writes_the_structure_only() -> None:
    found = structure_only(row_append())
    assert [a.name for a in found.arrays] == [
        "A2_pos", "A2_crd", "B2_pos", "B2_crd", "C2_pos", "C2_crd",
    ]  # fmt: skip
    verify(found)


@pytest.mark.parametrize("seed", range(3))
def test_the_structure_is_that_of_the_whole(seed: int) -> None:
    arrays, scalars = arguments("row_append", seed)
    whole = run(row_append(), arrays, scalars)
    pattern = run(structure_only(row_append()), arrays, scalars)
    assert pattern.lengths == {"C2_crd": whole.lengths["C2_crd"]}
    assert_array_equal(pattern.arrays["C2_crd"], whole.arrays["C2_crd"])
    assert_array_equal(pattern.arrays["C2_pos"], whole.arrays["C2_pos"])


# ---------------------------------------------------------------- vectorize

FLAG = Var("flag")
TOTAL = Var("total", FLOAT64)
PLACE = add(mul(I, N_K), K)
LOOPS = {
    "dot product": (loop(K, N_K, Assign(TOTAL, mul(load(X, K), load(VALS, PLACE)), "+")), True),
    "scaled row": (loop(K, N_K, Store(Y, PLACE, mul(load(X, K), TOTAL), "+")), True),
    "same place": (loop(K, N_K, Store(Y, K, mul(load(Y, K), TOTAL))), True),
    "through a variable": (
        loop(K, N_K, Declare(J, add(K, I)), Assign(TOTAL, load(X, J), "+")),
        True,
    ),
    "indirect load": (loop(K, N_K, Assign(TOTAL, load(X, load(CRD, K)), "+")), False),
    "indirect store": (loop(K, N_K, Store(Y, load(CRD, K), TOTAL, "+")), False),
    "strided load": (loop(K, N_K, Assign(TOTAL, load(X, mul(K, N_K)), "+")), False),
    "neighbour": (loop(K, N_K, Store(Y, add(K, 1), load(Y, K))), False),
    "one element": (loop(K, N_K, Store(Y, I, load(X, K), "+")), False),
    "carried scalar": (loop(K, N_K, Assign(TOTAL, load(X, K))), False),
    "prefix sum": (
        loop(K, N_K, Assign(TOTAL, load(X, K), "+"), Store(Y, K, TOTAL)),
        False,
    ),
    "maximum of floats": (loop(K, N_K, Assign(TOTAL, load(X, K), "max")), True),
    "maximum of integers": (loop(K, N_K, Assign(FLAG, K, "max")), True),
    "control flow": (loop(K, N_K, If(lt(K, 3), block(Store(Y, K, TOTAL)))), False),
    "nothing": (loop(K, N_K), False),
}


@pytest.mark.parametrize("name", LOOPS)
def test_vectorize_marks_legal_loops_only(name: str) -> None:
    inner, wanted = LOOPS[name]
    around = Function("f", (X, Y, VALS, CRD), (I, N_K, TOTAL, FLAG), Block((inner,)))
    (found,) = find(vectorize(module(around)), For)
    assert (found.kind is LoopKind.VECTOR) == wanted


def test_vectorize_names_the_reductions() -> None:
    (found,) = find(vectorize(module(dot())), For)
    assert [(r.op, r.var.name) for r in found.reductions] == [("+", "total")]


# ---------------------------------------------------------------- accumulators


def test_sums_over_indirect_loads_are_split() -> None:
    text = body_of(split_accumulators(module(spmv())))
    assert "for p in first..rest step 8:" in text
    assert "total_3 += A_vals[p + 7] * x[A2_crd[p + 7]]" in text
    assert "prefetch A2_crd[p + 384]" in text
    assert "total += total_1 + total_2 + total_3" in text
    assert "for p in rest..stop:" in text


def test_a_complex_sum_is_split_too() -> None:
    x, total = source("xc", COMPLEX128), Var("total", COMPLEX128)
    sparse = segment(P, POS, const(0), Assign(total, load(x, load(CRD, P)), "+"))
    function = Function(
        "f", (POS, CRD, x), (), block(Declare(total, Const(0j, COMPLEX128)), sparse)
    )
    assert "total_3" in body_of(split_accumulators(module(function)))


@pytest.mark.parametrize("terms", [63, 64])
def test_a_sum_that_is_known_to_be_short_stays_one_loop(terms: int) -> None:
    sparse = loop(P, const(terms), Assign(TOTAL, load(X, load(CRD, P)), "+"))
    function = module(Function("f", (CRD, X), (TOTAL,), block(sparse)))
    assert (split_accumulators(function) is function) == (terms < 64)


def test_products_stay_in_order() -> None:
    sparse = segment(P, POS, const(0), Assign(TOTAL, load(X, load(CRD, P)), "*"))
    function = module(Function("f", (POS, CRD, X), (TOTAL,), block(sparse)))
    assert split_accumulators(function) is function


def test_units_combine_no_variable_that_nothing_reads() -> None:
    unread, total = Var("unread", FLOAT64), Var("total", FLOAT64)
    combined = [Combine(var, "+", LoopKind.THREADS) for var in (unread, total)]
    body = Block(
        (Declare(unread, ZERO), Declare(total, ZERO), *combined, Store(Y, const(0), total))
    )
    left = clean(Function("f", (Y,), (), body)).body
    assert [stmt.var for stmt in find(left, Combine)] == [total]
    assert [stmt.var for stmt in find(left, Declare)] == [total]

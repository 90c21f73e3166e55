"""What is illegal in the loop IR is found, and named with the way to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codegen.build import block, load, lt
from codegen.ir import (
    Allocate,
    Assign,
    AtomicStore,
    Binary,
    Block,
    Broadcast,
    Const,
    Declare,
    Expr,
    Fill,
    For,
    Function,
    If,
    Insert,
    LoopKind,
    Module,
    Prefetch,
    Reduction,
    Reserve,
    SetLength,
    Sort,
    Stmt,
    Store,
    Table,
    Unary,
    Var,
    VectorStore,
)
from codegen.types import BOOL, COMPLEX128, FLOAT64, INT32
from codegen.verify import IRError, verify
from tests.codegen.functions import (
    CRD,
    N_I,
    VALS,
    ZERO,
    I,
    J,
    X,
    Y,
    all_functions,
    all_in_one,
    const,
    growing,
    local,
    loop,
    spmv,
)

C = growing("c")
TOTAL = Var("total", FLOAT64)
NOT_LIKE_THIS = Var("n_i", FLOAT64)
SUM = Assign(TOTAL, load(X, I), "+")
PARALLEL = For(I, const(0), N_I, block(SUM), kind=LoopKind.PARALLEL)
FLOAT_INDEX = load(X, Const(0.0, FLOAT64))
COMPLEX = Const(0j, COMPLEX128)


def function_of(*body: Stmt) -> Function:
    return Function("f", (X, CRD, Y, C), (N_I, TOTAL), Block(body), threaded=True)


ILLEGAL: dict[str, tuple[Stmt, ...]] = {
    "j used before it is introduced": (Store(Y, J, ZERO),),
    "j used before it is introduced, or out of its scope": (loop(J, N_I), Store(Y, J, ZERO)),
    "introduced where a scope has that name": (loop(I, N_I, loop(I, N_I)),),
    "n_i introduced where": (Declare(N_I, const(0)),),
    "used, but in scope is": (Store(Y, const(0), NOT_LIKE_THIS),),
    "A_vals used before it is introduced": (Store(Y, const(0), load(VALS, const(0))),),
    "the reserved name double": (Declare(Var("double"), const(0)),),
    "joins a float64 and a int64": (Store(Y, const(0), Binary("+", TOTAL, N_I)),),
    "no % for float64": (Store(Y, const(0), Binary("%", TOTAL, TOTAL)),),
    "no < for complex128": (If(Binary("<", COMPLEX, COMPLEX), Block()),),
    "n_i is a int64 where a bool is wanted": (If(N_I, Block()),),
    "0.0 is a float64 where a int64 is wanted": (Store(Y, const(0), FLOAT_INDEX),),
    "total is a float64 where a int64 is wanted": (Declare(J, TOTAL),),
    "a float64 where a int64": (loop(I, TOTAL),),
    "! of a int64": (If(Unary("!", N_I), Block()),),
    "- of a bool": (Declare(Var("b", BOOL), Unary("-", Const(True, BOOL))),),
    "the constant 1 as a float64": (Store(Y, const(0), Const(1, FLOAT64)),),
    "the constant True as a int64": (Store(Y, Const(True), ZERO),),
    "the update %= of a float64": (Store(Y, const(0), ZERO, "%"),),
    "INPUT x written": (Store(X, const(0), ZERO),),
    "y, not LOCAL, allocated": (Allocate(Y, N_I),),
    "w used before it is introduced": (Store(local("w"), const(0), ZERO),),
    "y, output, resized": (Reserve(Y, N_I),),
    "w, local, resized": (Allocate(local("w"), N_I), SetLength(local("w"), N_I)),
    "y, of float64, sorted": (Sort(Y, const(0), N_I),),
    "t used before it is introduced": (Insert(Table("t"), N_I, J),),
    "a loop of step 0": (For(I, const(0), N_I, Block(), step=0),),
    "a loop counter of type int32": (For(Var("m", INT32), const(0), N_I, Block()),),
    "threads assign total, which is no reduction": (PARALLEL,),
    "threads resize c": (replace(PARALLEL, body=block(Reserve(C, N_I))),),
    "a parallel loop in another": (
        replace(PARALLEL, body=block(replace(PARALLEL, var=J, body=Block()))),
    ),
    "a float64 stored in y": (VectorStore(Y, const(0), TOTAL),),
    "the atomic update min= of a float64": (AtomicStore(Y, const(0), ZERO, "min"),),
    "a int64x4 stored in y": (VectorStore(Y, const(0), Broadcast(N_I, 4)),),
}


@pytest.mark.parametrize("message", ILLEGAL)
def test_illegal_code_is_refused(message: str) -> None:
    with pytest.raises(IRError) as caught:
        verify(function_of(*ILLEGAL[message]))
    assert message in caught.value.message


LEGAL: dict[str, tuple[Stmt, ...]] = {
    "siblings may share a name": (loop(I, N_I), loop(I, N_I)),
    "reduction": (replace(PARALLEL, reductions=(Reduction("+", TOTAL),)),),
    "threads": (Declare(J, Var("threads", INT32)),),
    "own memory": (replace(PARALLEL, body=block(Allocate(local("w"), N_I))),),
    "atomic addition": (replace(PARALLEL, body=block(AtomicStore(Y, I, ZERO, "+"))),),
    "prefetch of an input": (Prefetch(X, N_I),),
    "narrow store": (Fill(C, const(0), N_I, ZERO),),
    "widths of integers": (If(lt(load(CRD, const(0)), N_I), Block()),),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal_code_passes(name: str) -> None:
    verify(function_of(*LEGAL[name]))


@pytest.mark.parametrize("function", all_functions(), ids=lambda f: f.name)
def test_the_kernels_of_the_tests_are_legal(function: Function) -> None:
    verify(function)


def test_a_module_has_one_function_of_each_name() -> None:
    verify(all_in_one())
    with pytest.raises(IRError, match="one function of each name, found spmv twice"):
        verify(Module((spmv(), spmv())))


def test_parallel_loops_need_threads() -> None:
    with pytest.raises(IRError, match="a parallel loop in a function without threads"):
        verify(replace(spmv(), threaded=False))


def test_the_path_leads_to_the_statement() -> None:
    wrong: Expr = load(X, TOTAL)
    inner = loop(I, N_I, If(lt(I, 3), block(Store(Y, I, wrong))))
    with pytest.raises(IRError) as caught:
        verify(function_of(inner))
    assert caught.value.path == ("function f", "for i in 0..n_i:", "if i < 3:", "y[i] = x[total]")
    assert str(caught.value).endswith("  in y[i] = x[total]")

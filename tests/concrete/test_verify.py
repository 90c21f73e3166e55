"""The rules of concrete notation: what concretize makes keeps them, what breaks one is refused."""

from __future__ import annotations

import pytest

from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Mode,
    Race,
    Sequence,
    Statement,
    Where,
    Workspace,
    WorkspaceKind,
    forall,
)
from taco_py.compiler.concrete.verify import verify
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.nodes import Access, Call, Expr, Reduce
from taco_py.language.notation.operators import ADD, MUL, SUB
from tests.problems import problem

A = Access("A", ("i", "j"))
X = Access("x", ("j",))
Y = Access("y", ("i",))
X_I = Access("x", ("i",))
AX = Call(MUL, (A, X))
SPMV = problem("y[i] = A[i,j] * x[j]", {"A": "CSR"}, "d")
SPARSE = problem("y[i] = A[i,j] * x[j]", {"A": "CSC"}, "s")
T = Workspace("t", (), WorkspaceKind.SCALAR, "float64")
W = Workspace("w", ("i",), WorkspaceKind.ROW, "float64")


def gather(value: Expr = AX, into: Access = T.access, write: Expr = T.access) -> Statement:
    """forall i (where(y[i] = write, forall j into += value))"""
    producer = forall(("j",), Assign(into, value, ADD))
    return forall(("i",), Where(T, Assign(Y, write), producer))


def scatter(workspace: Workspace = W) -> Statement:
    """where(forall i y[i] = w[i], forall j forall i w[i] += A * x)"""
    drain = forall(("i",), Assign(Y, workspace.access))
    return Where(workspace, drain, forall(("j", "i"), Assign(workspace.access, AX, ADD)))


def add(order: str, op: object = ADD) -> Statement:
    return forall(tuple(order), Assign(Y, AX, op))  # type: ignore[arg-type]


LEGAL = {
    "gathered": gather(),
    "added in place": add("ij"),
    "scattered": add("ji"),
    "through a row": scatter(),
    "parallel": Forall("i", add("j"), mode=Mode(parallel=Race.NONE)),
    "in parts": Sequence((add("ij"), add("ji"))),
    "assigned, then added to": Sequence((forall(("i",), Assign(Y, X_I)), add("ij"))),
    "nothing": Sequence(()),
}


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    verify(SPMV, LEGAL[name])


B = Access("B", ("i", "j"))
ILLEGAL: dict[str, tuple[Statement, str]] = {
    "loop twice": (add("iji"), "a loop over i inside another"),
    "inner parallel": (
        Forall(
            "i",
            Forall("j", Assign(Y, AX, ADD), mode=Mode(parallel=Race.NONE)),
            mode=Mode(parallel=Race.NONE),
        ),
        "the parallel loop over j inside another",
    ),
    "target unbound": (add("j"), "y[i] is assigned outside loops over ['i']"),
    "value unbound": (add("i"), "A[i,j] is read outside loops over ['j']"),
    "wrong indices": (
        forall(("i", "j"), Assign(Access("y", ("j",)), AX, ADD)),
        "y[j] is assigned, not y[i]",
    ),
    "operand written": (forall(("i", "j"), Assign(A, AX, ADD)), "A[i,j] is assigned, not y[i]"),
    "result in producer": (gather(into=Y), "y[i] is assigned, not t[]"),
    "workspace in consumer": (
        forall(("i",), Where(T, Assign(T.access, Access("x", ("i",))), Sequence(()))),
        "t[] is assigned, not y[i]",
    ),
    "workspace read early": (gather(value=T.access), "t[] is read where it is no operand"),
    "workspace read late": (
        forall(("i",), Sequence((Where(T, Sequence(()), Sequence(())), Assign(Y, T.access, ADD)))),
        "t[] is read where it is no operand and not filled",
    ),
    "unknown operand": (gather(value=B), "B[i,j] is read where it is no operand"),
    "result read": (gather(write=Y), "y[i] is read where it is no operand"),
    "wrong order": (gather(write=Access("A", ("i",))), "A[i] is read where it is no operand"),
    "diagonal": (gather(value=Access("A", ("i", "i"))), "A[i,i] has an index twice"),
    "reduction left": (
        forall(("i",), Assign(Y, Reduce(ADD, "j", AX))),
        "a value with a reduction in it",
    ),
    "overwritten": (add("ij", None), "y[i] is overwritten in a loop over ['j']"),
    "order matters": (add("ij", SUB), "y[i] accumulates by sub, whose order matters"),
    "assigned twice": (
        forall(("i",), Sequence((Assign(Y, Access("x", ("i",))),) * 2)),
        "y[i] is assigned by a later part of a sequence",
    ),
    "one name": (scatter(Workspace("x", ("i",), WorkspaceKind.ROW, "float64")), "are called x"),
    "shadowed": (Forall("i", scatter()), "the workspace w inside a loop over its own ['i']"),
    "a row of two": (
        scatter(Workspace("w", ("i", "j"), WorkspaceKind.ROW, "float64")),
        "w over 2 indices is a row",
    ),
    "a scalar of one": (
        scatter(Workspace("w", ("i",), WorkspaceKind.SCALAR, "float64")),
        "w over 1 indices is a scalar",
    ),
    "index twice": (
        scatter(Workspace("w", ("i", "i"), WorkspaceKind.HASH, "float64")),
        "the workspace w has an index twice",
    ),
}


@pytest.mark.parametrize("name", ILLEGAL)
def test_illegal(name: str) -> None:
    statement, message = ILLEGAL[name]
    with pytest.raises(InternalError) as caught:
        verify(SPMV, statement)
    assert message in str(caught.value)
    assert caught.value.message.startswith("Illegal concrete notation: ")


def test_sparse_results_are_met_in_order() -> None:
    verify(SPARSE, scatter())
    verify(SPARSE, add("ij"))
    with pytest.raises(InternalError, match=r"appended to in the order \('j',\), not \('i',\)"):
        verify(SPARSE, add("ji"))
    with pytest.raises(InternalError, match="a sequence that appends to one sparse level"):
        verify(SPARSE, Sequence((add("ij"), add("ij"))))


def test_levels_above_the_last_sparse_one_are_all_in_order() -> None:
    tall = problem("C[i,j] = A[i,k] * B[k,j]", {"A": "DCSR"}, "sd")
    verify(tall, concretize(tall, (("i", "k", "j"),)))
    value = Call(MUL, (Access("A", ("i", "k")), Access("B", ("k", "j"))))
    part = Assign(Access("C", ("i", "j")), value, ADD)
    verify(tall, forall(("i", "k", "j"), part))
    with pytest.raises(InternalError, match="appended to"):
        verify(tall, forall(("k", "i", "j"), part))

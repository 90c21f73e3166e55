"""Iteration graphs: their text, what kernels take for granted, which orders conflict."""

from __future__ import annotations

import pytest

from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.iteration.graph import IterationGraph, build_graph, conflicts
from taco_py.compiler.iteration.printer import graph_text
from taco_py.language.notation.checks import accesses
from tests.problems import problem


def graph(
    text: str, formats: dict[str, str], orders: str, result: str | None = None
) -> IterationGraph:
    whole = problem(text, formats, result)
    return build_graph(whole, concretize(whole, tuple(tuple(o) for o in orders.split())))


SPMV = "y[i] = A[i,j] * x[j]"
ADD = "C[i,j] = A[i,j] + B[i,j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
CSRS = {"A": "CSR", "B": "CSR"}

TEXTS = (
    (SPMV, {"A": "CSR"}, "ij", None, "i: the whole dimension\n  j: A2"),
    (SPMV, {"A": "DCSR"}, "ij", None, "i: A1\n  j: A2"),
    (
        SPMV,
        {"A": "CSR", "x": "s"},
        "ij",
        None,
        "i: the whole dimension\n  j: (A2 ∩ x1), merge lattice {A2,x1}",
    ),
    (
        ADD,
        CSRS,
        "ij ij",
        None,
        "i: the whole dimension\n  j: (A2 ∪ B2), merge lattice {A2,B2} {A2} {B2}",
    ),
    (
        ADD,
        {"A": "DCSR"},
        "ij ij",
        "dd",
        "i: (A1 ∪ all), merge lattice {A1,all} {all}\n"
        "  j: (A2 ∪ all), merge lattice {A2,all} {all}",
    ),
    (PRODUCT, CSRS, "ikj", None, "i: the whole dimension\n  k: A2\n    j: B2\n  j: w1"),
    (
        "y[i] = b[i] / (A[i,j] * x[j])",
        {"A": "DCSR", "b": "s"},
        "ij",
        None,
        "i: (b1 ∩ (all ∪ A1)), merge lattice {b1,A1} {b1}\n  j: A2",
    ),
)


@pytest.mark.parametrize(("text", "formats", "orders", "result", "expected"), TEXTS)
def test_text(
    text: str, formats: dict[str, str], orders: str, result: str | None, expected: str
) -> None:
    assert graph_text(graph(text, formats, orders, result)) == expected


REQUIREMENTS = (
    # added up as they come: nothing is asked
    (SPMV, {"A": "CSR"}, "ij", "d", ""),
    (SPMV, {"A": "CSC"}, "ji", "d", ""),
    (SPMV, {"A": "COO"}, "ij", "d", ""),
    (PRODUCT, CSRS, "ikj", "ds", ""),
    ("s = A[i,j]", {"A": "CSR"}, "ij", None, ""),
    # merged: ordered and unique
    (ADD, CSRS, "ij ij", "ds", "A:ou B:ou"),
    (SPMV, {"A": "CSR", "x": "s"}, "ij", "d", "A:ou x:ou"),
    # appended to an ordered result
    ("C[i,j] = 2 * A[i,j]", {"A": "CSR"}, "ij", "ds", "A:ou"),
    ("C[i,j] = A[i,j] * x[j]", {"A": "COO"}, "ij", "COO", "A:o"),
    # written to a dense result by =, which duplicates would overwrite
    ("C[i,j] = A[i,j]", {"A": "CSR"}, "ij", "dd", "A:u"),
    # not linear in its entries
    ("s = A[i,j] * A[i,j]", {"A": "CSR"}, "ij", None, "A:u"),
    ("s = 1 / A[i,j]", {"A": "CSR"}, "ij", None, "A:ou"),
    ("s = A[i,j] / B[i,j]", {"A": "CSR"}, "ij", None, ""),
)


@pytest.mark.parametrize(("text", "formats", "orders", "result", "expected"), REQUIREMENTS)
def test_requirements(
    text: str, formats: dict[str, str], orders: str, result: str | None, expected: str
) -> None:
    found = graph(text, formats, orders, result).requirements
    flags = [f"{r.tensor}:{'o' * r.ordered}{'u' * r.unique}" for r in found]
    assert " ".join(flags) == expected


COVERS = (
    (SPMV, {"A": "CSR"}, "ij", "d", True),
    (SPMV, {"A": "CSC"}, "ji", "d", False),
    (SPMV, {"A": "DCSR"}, "ij", "d", False),
    (ADD, CSRS, "ij ij", "dd", False),
    ("C[i,j] = A[i,j] + B[i,j]", {}, "ij ij", "dd", True),
    # added to, each row zeroed where its loop begins
    (PRODUCT, {"A": "CSR", "B": "dd"}, "ikj", "dd", True),
    (PRODUCT, {"A": "CSC", "B": "dd"}, "kij", "dd", False),
    (PRODUCT, {"A": "DCSR", "B": "dd"}, "ikj", "dd", False),
    (PRODUCT, {"A": "dd", "B": "CSC"}, "jki", "dd", False),
    (PRODUCT, {"A": "dd", "B": "CSC"}, "jki", "dd:1,0", True),
    ("C[i,j] = 0 * A[i,j]", {}, "ij", "dd", True),  # a number is a value
    ("s = a[i]", {"a": "s"}, "i", None, True),
)


@pytest.mark.parametrize(("text", "formats", "orders", "result", "expected"), COVERS)
def test_covers_result(
    text: str, formats: dict[str, str], orders: str, result: str | None, expected: bool
) -> None:
    assert graph(text, formats, orders, result).covers_result == expected


CONFLICTS = (
    ("CSR", "ij", False),
    ("CSR", "ji", True),
    ("CSC", "ji", False),
    ("CSC", "ij", True),
    ("dense", "ji", False),
    ("COO", "ji", True),
    ("sd", "ji", False),  # a dense level is located from any loop
    ("ss:1,0", "ji", False),
)


@pytest.mark.parametrize(("form", "order", "expected"), CONFLICTS)
def test_conflicts(form: str, order: str, expected: bool) -> None:
    whole = problem("C[i,j] = A[i,j]", {"A": form}, "dd")
    (access,) = accesses(whole.assignment)
    assert conflicts(whole, access, tuple(order)) == expected


def test_loops_say_what_is_around_them_and_whether_they_write() -> None:
    loops = graph(PRODUCT, CSRS, "ikj").loops
    assert [(loop.index, loop.outer, loop.writes_result) for loop in loops] == [
        ("i", (), True),
        ("k", ("i",), False),
        ("j", ("i", "k"), False),
        ("j", ("i",), True),
    ]

"""Results that are added to and whose first addend assigns all of them."""

from __future__ import annotations

import pytest

from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.concrete.verify import verify
from taco_py.compiler.iteration.graph import build_graph
from taco_py.compiler.schedule.assigned import assign_first
from taco_py.language.provenance.provenance import UNDERIVED
from tests.problems import problem

FIRST = (
    # the first term, and the second where both orders round alike
    ("C[i,j] = D[i,j] + A[i,j]", {"A": "CSC"}, "ij ji", "C = D; C += A"),
    ("C[i,j] = A[i,j] + D[i,j]", {"A": "CSC"}, "ji ij", "C = D; C += A"),
    ("C[i,j] = A[i,j] - D[i,j]", {"A": "COO"}, "ij ij", "C = 0 - D; C += A"),
    ("C[i,j] = D[i,j] + A[i,k] * B[k,j]", {"A": "CSR"}, "ij ikj", "C = D; C += A * B"),
    ("y[i] = d[i] + A[i,j] * x[j]", {"A": "CSC"}, "i ji", "y = d; y += A * x"),
    # not after two terms, nor after a sum
    (
        "C[i,j] = A[i,j] + B[i,j] + D[i,j]",
        {"A": "CSC", "B": "CSC"},
        "ji ji ij",
        "C += A; C += B; C += D",
    ),
    ("C[i,j] = A[i,k] * B[k,j] + D[i,j]", {"A": "CSR"}, "ikj ij", "C += A * B; C += D"),
    # no term meets everything
    ("C[i,j] = A[i,j] + B[i,j]", {"A": "CSC", "B": "COO"}, "ji ij", "C += A; C += B"),
    ("C[i,j] = B[i,j] + A[i,j]", {"A": "CSC", "B": "sd"}, "ij ji", "C += B; C += A"),
)


@pytest.mark.parametrize(("text", "formats", "orders", "expected"), FIRST)
def test_first(text: str, formats: dict[str, str], orders: str, expected: str) -> None:
    before = problem(text, formats, "d" * text.partition(" =")[0].count(",") + "d")
    made = concretize(before, tuple(tuple(order) for order in orders.split()))
    statement = assign_first(before, made, UNDERIVED)
    verify(before, statement)
    lines = (line.strip() for line in to_text(statement).splitlines())
    assigned = "; ".join(line for line in lines if "=" in line)
    for indices in ("[i,j]", "[i,k]", "[k,j]", "[i]", "[j]"):
        assigned = assigned.replace(indices, "")
    assert assigned == expected
    graph = build_graph(before, statement)
    covered = " = " in expected
    assert graph.assigns_first == covered
    assert graph.zeroing is None or not covered
    if covered:
        assert graph.covers_result


def test_integers_are_added_in_any_order() -> None:
    text = "C[i,j] = A[i,j] + B[i,j] + D[i,j]"
    names = dict.fromkeys("ABD", "int32")
    whole = problem(text, {"A": "CSC", "B": "CSC"}, "dd", names)
    made = concretize(whole, (("j", "i"), ("j", "i"), ("i", "j")))
    assert to_text(assign_first(whole, made, UNDERIVED)).startswith(
        "forall i\n  forall j\n    C[i,j] = D[i,j]\n"
    )

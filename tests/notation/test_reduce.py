"""Which sums the notation implies, and where."""

from __future__ import annotations

import pytest
from hypothesis import assume, given

from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import insert_reductions
from tests.notation import strategies

SUMS = [
    # each additive term by itself
    (
        "y[i] = A[i,j]*x[j] + B[i,j]*z[j] + b[i]",
        "y[i] = sum(j, A[i,j] * x[j]) + sum(j, B[i,j] * z[j]) + b[i]",
    ),
    ("r[i] = b[i] - A[i,j]*x[j]", "r[i] = b[i] - sum(j, A[i,j] * x[j])"),
    ("y = -x[i] - 2", "y = -sum(i, x[i]) - 2"),
    ("y[i] = -(A[i,j]*x[j])", "y[i] = -sum(j, A[i,j] * x[j])"),
    ("y[i] = A[i,j] + B[i,j]", "y[i] = sum(j, A[i,j]) + sum(j, B[i,j])"),
    ("y[i] = A[i,j] + B[i,k]", "y[i] = sum(j, A[i,j]) + sum(k, B[i,k])"),
    # the smallest part that holds all uses
    ("y[i] = (A[i,j] + B[i,j]) * x[j]", "y[i] = sum(j, (A[i,j] + B[i,j]) * x[j])"),
    ("y[i] = (A[i,j] + b[i]) * x[j]", "y[i] = sum(j, (A[i,j] + b[i]) * x[j])"),
    ("y[i] = (A[i,j] + b[i]) * x[i]", "y[i] = (sum(j, A[i,j]) + b[i]) * x[i]"),
    ("y[i] = B[i,k] * (C[k,j] * x[j])", "y[i] = sum(k, B[i,k] * sum(j, C[k,j] * x[j]))"),
    ("y[i] = B[i,k] * C[k,j] * x[j]", "y[i] = sum(j, sum(k, B[i,k] * C[k,j]) * x[j])"),
    ("y[i] = 2 * A[i,j] * x[j]", "y[i] = sum(j, 2 * A[i,j] * x[j])"),
    ("y[i] = 2 * (A[i,j] * x[j])", "y[i] = 2 * sum(j, A[i,j] * x[j])"),
    ("y[i] = b[i] / (A[i,j] * x[j])", "y[i] = b[i] / sum(j, A[i,j] * x[j])"),
    ("y[i] = A[i,j] / x[j]", "y[i] = sum(j, A[i,j] / x[j])"),
    ("D[i,j] = S[i,j]*U[i,k]*V[j,k]", "D[i,j] = sum(k, S[i,j] * U[i,k] * V[j,k])"),
    # several at one place: the first used outermost
    ("s = A[i,j] * B[j,i]", "s = sum(i, j, A[i,j] * B[j,i])"),
    ("s = A[i,i]", "s = sum(i, A[i,i])"),
    ("s = A[i,j]", "s = sum(i, j, A[i,j])"),
    # beside explicit sums
    ("y[i] = sum(j, A[i,j]) + B[i,j]", "y[i] = sum(j, A[i,j]) + sum(j, B[i,j])"),
    ("y[i] = sum(j, A[i,j] * B[j,k])", "y[i] = sum(j, A[i,j] * sum(k, B[j,k]))"),
    ("y[i] = sum(j, A[i,j] * z[k] * w[k])", "y[i] = sum(j, k, A[i,j] * z[k] * w[k])"),
    ("y[i] = x[j] * sum(j, A[i,j])", "y[i] = sum(j, x[j]) * sum(j, A[i,j])"),
    # nothing to sum
    ("C[i,j] = b[i] * c[j] + 1", "C[i,j] = b[i] * c[j] + 1"),
    ("y[i] += sum(j, A[i,j])", "y[i] += sum(j, A[i,j])"),
]


@pytest.mark.parametrize(("text", "summed"), SUMS, ids=[text for text, _ in SUMS])
def test_sums(text: str, summed: str) -> None:
    assert to_text(insert_reductions(parse_assignment(text))) == summed


@given(strategies.assignments)
def test_all_indices_are_bound_and_a_second_time_changes_nothing(assignment: Assignment) -> None:
    try:
        once = insert_reductions(assignment)
    except NotationError:
        assume(False)
    assert set(free_indices(once.value)) <= set(assignment.target.indices)
    assert insert_reductions(once) is once


def test_an_implied_sum_may_not_hide_an_explicit_one() -> None:
    with pytest.raises(NotationError) as caught:
        insert_reductions(parse_assignment("y[i] = (x[j] + sum(j, A[i,j])) * z[j]"))
    assert str(caught.value) == (
        "Expected a sum over an index of its own, found j summed inside a sum over j\n"
        "  y[i] = (x[j] + sum(j, A[i,j])) * z[j]\n"
        "                 ^^^^^^^^^^^^^^\n"
        "hint: rename one of the two, for instance the inner one to j2"
    )

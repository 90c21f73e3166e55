"""What is wrong with an assignment whatever its operands are, and the questions asked of one."""

from __future__ import annotations

import pytest

from taco_py.language.diagnostics.errors import (
    InternalError,
    NotationError,
    OperandError,
    TacoError,
)
from taco_py.language.notation.checks import (
    accesses,
    all_indices,
    check_assignment,
    free_indices,
    operand_names,
    rename,
)
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import insert_reductions

ERRORS: list[tuple[str, type[TacoError], str]] = [
    (
        "y[i,i] = A[i,i]",
        NotationError,
        "Expected each index once on the left-hand side, found i twice in y[i,i]\n"
        "  y[i,i] = A[i,i]\n  ^^^^^^\n"
        "hint: a diagonal can be read, as in d[i] = A[i,i], but not assigned; assign a vector and "
        "build the matrix from it",
    ),
    (
        "y[i] = b[i] + y[i]",
        NotationError,
        "Expected operands other than the result, found y on both sides\n"
        "  y[i] = b[i] + y[i]\n                ^^^^\n"
        "hint: write y[…] += … to add to it, or give the result another name",
    ),
    (
        "y[i] = A[i,j] + A[i]",
        OperandError,
        "Expected A with 2 indices, as where it is first used, found it with 1\n"
        "  y[i] = A[i,j] + A[i]\n                  ^^^^\nhint: give two tensors two names",
    ),
    (
        "y[i,j] = A[i,k]",
        NotationError,
        "Expected index j of y in an operand, found only i, k on the right-hand side\n"
        "  y[i,j] = A[i,k]\n  ^^^^^^\n"
        "hint: remove j from the left-hand side, or use it on an operand; its size comes from "
        "there",
    ),
    (
        "y[i] = 2",
        NotationError,
        "Expected index i of y in an operand, found no index on the right-hand side\n"
        "  y[i] = 2\n  ^^^^\n"
        "hint: remove i from the left-hand side, or use it on an operand; its size comes from "
        "there",
    ),
    (
        "y[i] = b[i] * sum(i, x[i])",
        NotationError,
        "Expected a sum over an index that is not on the left-hand side, found i, an index of y\n"
        "  y[i] = b[i] * sum(i, x[i])\n                ^^^^^^^^^^^^\n"
        "hint: rename the summed index, or remove i from the left-hand side",
    ),
    (
        "y = sum(j, x[j] * sum(j, x[j]))",
        NotationError,
        "Expected a sum over an index of its own, found j summed inside a sum over j\n"
        "  y = sum(j, x[j] * sum(j, x[j]))\n                    ^^^^^^^^^^^^\n"
        "hint: rename one of the two, for instance the inner one to j2",
    ),
    (
        "y = sum(j, j, x[j])",
        NotationError,
        "Expected a sum over an index of its own, found j summed inside a sum over j\n"
        "  y = sum(j, j, x[j])\n      ^^^^^^^^^^^^^^^\n"
        "hint: rename one of the two, for instance the inner one to j2",
    ),
    (
        "y = sum(j, x)",
        NotationError,
        "Expected a sum over an index of what is summed, found j, which does not occur there\n"
        "  y = sum(j, x)\n      ^^^^^^^^^\n"
        "hint: write the tensors with their indices, as in sum(j, x[j]), or remove the sum",
    ),
]


@pytest.mark.parametrize(("text", "kind", "message"), ERRORS, ids=[text for text, *_ in ERRORS])
def test_message(text: str, kind: type[TacoError], message: str) -> None:
    with pytest.raises(kind) as caught:
        check_assignment(parse_assignment(text))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = A[i,j] * x[j] + sum(j, A[j,i])",
        "y[i] += A[i,j] + A[j,i] - 2",
        "C[i,j] = b[i] + c[j]",
        "s = 2",
        "y[i] = sum(j, A[i,j]) / sum(j, B[i,j])",
    ],
)
def test_legal(text: str) -> None:
    check_assignment(parse_assignment(text))
    check_assignment(insert_reductions(parse_assignment(text)))


def test_questions() -> None:
    assignment = parse_assignment("y[i] = sum(j, B[k,j] * a) + A[k,i] * sum(j, x[j]) * B[k,i]")
    assert [access.tensor for access in accesses(assignment)] == ["B", "a", "A", "x", "B"]
    assert operand_names(assignment) == ("B", "a", "A", "x")
    assert free_indices(assignment.value) == ("k", "i")
    assert all_indices(assignment) == ("i", "k", "j")
    assert free_indices(parse_assignment("y = sum(j, x[j]) + x[j]").value) == ("j",)
    assert accesses(Access("A", ("i",))) == (Access("A", ("i",)),)


def test_rename_replaces_all_names_at_once() -> None:
    assignment = parse_assignment("y[i] = sum(j, A[i,j] * x[j]) + b[i]")
    renamed = rename(assignment, {"x": "b", "b": "x", "y": "z"}, {"i": "j", "j": "i"})
    assert to_text(renamed) == "z[j] = sum(i, A[j,i] * b[i]) + x[j]"
    assert rename(assignment) == assignment


def test_rename_does_not_merge_indices() -> None:
    with pytest.raises(InternalError, match=r"keep .* apart"):
        rename(parse_assignment("y[i] = A[i,j]"), indices={"j": "i"})

"""The oracle against NumPy written by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from taco_py.language.diagnostics.errors import (
    DimensionError,
    NotationError,
    OperandError,
    OperandTypeError,
)
from taco_py.language.notation.nodes import Access, Assignment, Call, Reduce
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.oracle import evaluate_dense

RANDOM = np.random.default_rng(0)
DATA: dict[str, Any] = {
    "A": RANDOM.standard_normal((3, 4)),
    "B": RANDOM.standard_normal((3, 4)),
    "S": RANDOM.standard_normal((4, 4)),
    "T": RANDOM.standard_normal((3, 4, 5)),
    "C": RANDOM.standard_normal((4, 2)),
    "D": RANDOM.standard_normal((5, 2)),
    "b": RANDOM.standard_normal(3),
    "x": RANDOM.standard_normal(4),
    "z": RANDOM.standard_normal(4),
    "a": 2.5,
}
A, B, S, T, C, D, b, x, z, a = (DATA[name] for name in "ABSTCDbxza")

RESULTS: list[tuple[str, Any]] = [
    ("y[i] = A[i,j] * x[j]", A @ x),
    ("y[i] = A[i,j]*x[j] + B[i,j]*z[j] + b[i]", A @ x + B @ z + b),
    ("y[i] = b[i] - A[i,j] * x[j]", b - A @ x),
    ("y[i] = (A[i,j] + B[i,j]) * x[j]", (A + B) @ x),
    ("y[i] = (A[i,j] + b[i]) * x[j]", (A + b[:, None]) @ x),
    ("y[i] = b[i] / (A[i,j] * x[j])", b / (A @ x)),
    ("y[i] = 2.5 * -b[i] + a * b[i]", -2.5 * b + a * b),
    ("M[i,r] = T[i,k,l] * C[k,r] * D[l,r]", np.einsum("ikl,kr,lr->ir", T, C, D)),
    ("y[j,i] = A[i,j]", A.T),
    ("y[i,j] = S[i,j] + S[j,i]", S + S.T),
    ("y = S[i,i]", np.trace(S)),
    ("y[i] = S[i,i] * x[i]", np.diag(S) * x),
    ("y[i,j] = b[i] + x[j]", b[:, None] + x),
    ("y[i,j] = b[i] * x[j] + 1", np.outer(b, x) + 1),
    ("y[k,i,j] = T[i,j,k] * A[i,j]", (T * A[:, :, None]).transpose(2, 0, 1)),
    ("y = A[i,j] * B[i,j]", (A * B).sum()),
    ("y = A[i,j] + 1", A.sum() + 1),
    ("y[i] = sum(j, A[i,j] + b[i])", A.sum(1) + 4 * b),
    ("y[i] = sum(j, A[i,j]) * sum(j, B[i,j])", A.sum(1) * B.sum(1)),
    ("y = 2 + 3", np.asarray(5)),
]


@pytest.mark.parametrize(("text", "expected"), RESULTS, ids=[text for text, _ in RESULTS])
def test_result(text: str, expected: Any) -> None:
    found = evaluate_dense(parse_assignment(text), DATA)
    assert found.shape == np.shape(expected) and found.dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_three_equal_indices_take_the_diagonal_of_all() -> None:
    cube = np.arange(27).reshape(3, 3, 3)
    diagonal = np.array([cube[k, k, k] for k in range(3)])
    np.testing.assert_array_equal(
        evaluate_dense(parse_assignment("y[i] = T[i,i,i]"), {"T": cube}), diagonal
    )
    four = np.arange(36).reshape(2, 3, 2, 3)
    expected = np.einsum("ijij->ji", four)
    found = evaluate_dense(parse_assignment("y[j,i] = T[i,j,i,j]"), {"T": four})
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0), (1, 3)])
def test_empty_and_unit_dimensions(sizes: tuple[int, int]) -> None:
    matrix, vector = np.ones(sizes), np.ones(sizes[1])
    found = evaluate_dense(parse_assignment("y[i] = A[i,j] * x[j]"), {"A": matrix, "x": vector})
    np.testing.assert_array_equal(found, matrix @ vector)


def test_booleans_add_by_or_and_multiply_by_and() -> None:
    left, right = np.array([[True, True], [False, True]]), np.array([True, True])
    operands = {"A": left, "x": right}
    found = evaluate_dense(parse_assignment("y[i] = A[i,j] * x[j]"), operands)
    assert found.dtype == bool
    np.testing.assert_array_equal(found, np.einsum("ij,j", left, right))
    assert evaluate_dense(parse_assignment("y = x[i] + x[i]"), operands) == np.True_


def test_integers_keep_their_width_and_wrap_around() -> None:
    small = np.array([100, 100, 100], np.int8)
    found = evaluate_dense(parse_assignment("y = x[i] * x[i]"), {"x": small})
    assert found.dtype == np.int8 and found == np.einsum("i,i", small, small)
    # each step wraps by itself: 300 is 44, 200 is -56
    assert evaluate_dense(parse_assignment("y = sum(i, x[i]) / 8"), {"x": small}) == 5.5
    doubled = evaluate_dense(parse_assignment("y[i] = x[i] * 2 / 8"), {"x": small})
    assert (doubled == -7).all()
    halves = evaluate_dense(parse_assignment("y[i] = x[i] / 8"), {"x": small})
    assert halves.dtype == np.float64 and (halves == 12.5).all()


def test_weak_literals_and_strong_scalars() -> None:
    x32 = np.ones(2, np.float32)
    scaled = parse_assignment("y[i] = a * x[i]")
    assert evaluate_dense(parse_assignment("y[i] = 2.5 * x[i]"), {"x": x32}).dtype == np.float32
    assert evaluate_dense(scaled, {"a": np.float64(2.5), "x": x32}).dtype == np.float64
    assert evaluate_dense(scaled, {"a": np.array(2.5), "x": x32}).dtype == np.float64
    assert evaluate_dense(scaled, {"a": np.float32(2.5), "x": x32}).dtype == np.float32


def test_division_by_zero_is_numpys_without_a_warning() -> None:
    found = evaluate_dense(
        parse_assignment("y[i] = x[i] / z[i]"), {"x": [1, -1, 0], "z": [0, 0, 0]}
    )
    np.testing.assert_array_equal(found, [np.inf, -np.inf, np.nan])


def test_what_is_not_stored_annihilates() -> None:
    operands = {"x": np.array([0.0, 0, 2]), "z": np.zeros(3), "w": np.full(3, np.inf)}
    stored = {"x": [True, False, True]}

    def found(text: str) -> Any:
        return evaluate_dense(parse_assignment(text), operands, stored=stored)

    np.testing.assert_array_equal(found("y[i] = x[i] / z[i]"), [np.nan, 0, np.inf])
    np.testing.assert_array_equal(found("y[i] = -x[i] / z[i]"), [np.nan, 0, -np.inf])
    np.testing.assert_array_equal(found("y[i] = x[i] * w[i]"), [np.nan, 0, np.inf])
    np.testing.assert_array_equal(found("y[i] = (x[i] + z[i]) / z[i]"), [np.nan, np.nan, np.inf])
    np.testing.assert_array_equal(found("y[i] = 0 / z[i]"), [np.nan] * 3)
    np.testing.assert_array_equal(found("y[i] = z[i] / x[i]"), [np.nan, np.nan, 0])
    with pytest.raises(DimensionError, match="found shape"):
        evaluate_dense(parse_assignment("y[i] = x[i]"), operands, stored={"x": [True]})


def test_accumulation() -> None:
    added = parse_assignment("y[i] += A[i,j]")
    np.testing.assert_allclose(evaluate_dense(added, DATA), A.sum(1))
    np.testing.assert_allclose(evaluate_dense(added, DATA, initial=b), b + A.sum(1))
    narrow = evaluate_dense(added, DATA, initial=b.astype(np.float32))
    assert narrow.dtype == np.float32
    with pytest.raises(
        DimensionError, match=r"Expected y of shape \(3,\) to add to, found shape \(4,\)"
    ):
        evaluate_dense(added, DATA, initial=x)
    with pytest.raises(OperandTypeError, match="found dtype float64"):
        evaluate_dense(added, DATA, initial=np.zeros(3, int))


def test_the_result_is_a_new_array_and_operands_are_untouched() -> None:
    original = np.arange(3.0)
    found = evaluate_dense(parse_assignment("y[i] = x[i]"), {"x": original})
    found[0] = 7
    assert original[0] == 0 and found.flags.writeable


def test_new_operators_evaluate() -> None:
    highest = Operator("max", "max", 2, "max", 0, evaluate=np.maximum)
    hypotenuse = Operator("hypot", "hypot", 2, "hypot", 0, identity=0, evaluate=_hypot)
    matrix, y = Access("A", ("i", "j")), Access("y", ("i",))
    clipped = Assignment(y, Reduce(highest, "j", Call(highest, (matrix, Access("b", ("i",))))))
    np.testing.assert_array_equal(evaluate_dense(clipped, DATA), np.maximum(A, b[:, None]).max(1))
    norms = Assignment(y, Reduce(hypotenuse, "j", matrix))
    np.testing.assert_allclose(evaluate_dense(norms, DATA), np.linalg.norm(A, axis=1))
    assert evaluate_dense(norms, {"A": np.ones((2, 0))}).tolist() == [0, 0]


def _hypot(left: Any, right: Any) -> Any:
    return np.sqrt(left * left + right * right)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "y[i] = A[i,j] * b[j]",
            DimensionError,
            "Expected one size for index j, found 4 in A and 3 in b\n"
            "  y[i] = A[i,j] * b[j]\n                  ^^^^",
        ),
        (
            "y[i] = A[i,i]",
            DimensionError,
            "Expected one size for index i, found 3 in A and 4 in A\n"
            "  y[i] = A[i,i]\n         ^^^^^^",
        ),
        (
            "y[i] = T[i,j]",
            OperandError,
            "Expected T with 2 modes, found shape (3, 4, 5)\n  y[i] = T[i,j]\n         ^^^^^^",
        ),
        ("y[i] = q[i]", OperandError, "Expected an operand named q, found A, B, "),
        ("y[i,j] = b[i]", NotationError, "Expected index j of y in an operand"),
        (
            "y[i] = words[i]",
            OperandTypeError,
            "Expected a NumPy array of numbers for words, found list",
        ),
    ],
)
def test_message(text: str, kind: type, message: str) -> None:
    with pytest.raises(kind) as caught:
        evaluate_dense(parse_assignment(text), {**DATA, "words": ["a"]})
    assert str(caught.value).startswith(message)

"""Functions that users define: traced, checked, called in texts of all formats."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.functions import clip, exp, where
from taco_py.language.notation.functions.defined import DEFINED
from tests.corpus.formats import store, to_dense

RANDOM = np.random.default_rng(0)
A = sp.random_array((7, 9), density=0.4, rng=RANDOM).toarray() * 4 - (RANDOM.random((7, 9)) < 0.2)
X = RANDOM.standard_normal(9)


def huber(x: Any) -> Any:
    return where(abs(x) < 1, x * x / 2, abs(x) - 0.5)


BODIES: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (huber, lambda x: np.where(abs(x) < 1, x * x / 2, abs(x) - 0.5)),
    (lambda x: exp(-(x**2)) - 1, lambda x: np.exp(-(x**2)) - 1),
    (lambda x: np.tanh(x) * np.where(x > 0, x, 2), lambda x: np.tanh(x) * np.where(x > 0, x, 2)),
    (lambda x: clip(x, -0.5, 0.5) // 0.25 % 2, lambda x: np.clip(x, -0.5, 0.5) // 0.25 % 2),
    (
        lambda x: where((x > 0) & ~(x > 1), 2**x, 1 - x),
        lambda x: np.where((x > 0) & (x <= 1), 2**x, 1 - x),
    ),
    (lambda x: 3.0, lambda x: np.full_like(x, 3.0)),
    (lambda x: x, lambda x: x),
]  # fmt: skip


@pytest.mark.parametrize("form", ["dense", "CSR", "CSC", "COO", "ss"])
@pytest.mark.parametrize("place", range(len(BODIES)))
def test_body(place: int, form: str) -> None:
    body, numpy = BODIES[place]
    tp.function("f", body)
    stored = store(A, form)
    text = "R[i,j] = f(A[i,j])"
    if place == 5:
        text = "R[i,j] = f(A[i,j]) + 0 * A[i,j]"
    np.testing.assert_allclose(to_dense(tp.evaluate(text, A=stored)), numpy(A), rtol=1e-12)
    np.testing.assert_allclose(tp.evaluate_dense(text, A=stored), numpy(A), rtol=1e-12)


@pytest.mark.parametrize("form", ["dense", "CSR", "CSC"])
def test_closes_sums(form: str) -> None:
    """The sum of products in an argument is one number, however often the body uses it."""
    tp.function("huber", huber)
    stored = store(A, form)
    found = tp.evaluate("y[i] = huber(A[i,j] * x[j])", A=stored, x=X)
    np.testing.assert_allclose(found, BODIES[0][1](A @ X), rtol=1e-12)
    assert np.allclose(tp.evaluate("s = huber(x[j])", x=X), BODIES[0][1](X).sum())


def test_zeros_stay_absent() -> None:
    tp.function("huber", huber, zero_preserving=True)
    assert tp.evaluate("R[i,j] = huber(A[i,j])", A=sp.csr_array(A)).nnz == np.count_nonzero(A)


def test_functions_of_functions() -> None:
    inner = tp.function("inner", lambda x: x**2 + 1)
    tp.function("outer", lambda x, y: inner(x) / inner(y))
    y = tp.evaluate("y[i] = outer(x[i], 2 * x[i])", x=X)
    np.testing.assert_allclose(y, (X**2 + 1) / (4 * X**2 + 1), rtol=1e-12)
    np.testing.assert_allclose(inner(X), X**2 + 1)


def test_another_body_needs_replace() -> None:
    tp.function("f", lambda x: x + 1)
    tp.function("f", lambda x: x + 1)
    assert tp.evaluate("y[i] = f(x[i])", x=X)[0] == X[0] + 1
    with pytest.raises(tp.OperandError, match="which has another body"):
        tp.function("f", lambda x: x + 2)
    tp.function("f", lambda x: x + 2, replace=True)
    for _ in range(3):
        assert tp.evaluate("y[i] = f(x[i])", x=X)[0] == X[0] + 2


PROCESS = """
import numpy as np, taco_py as tp, sys
f = tp.function("f", eval(sys.argv[1]))
x = np.arange(4.0)
for _ in range(3):
    assert np.array_equal(tp.evaluate("y[i] = f(x[i])", x=x), f(x)), sys.argv[1]
"""


def test_processes_with_other_bodies_share_no_kernels() -> None:
    for body in ("lambda x: x + 1", "lambda x: x * 3", "lambda x: x + 1"):
        subprocess.run([sys.executable, "-c", PROCESS, body], check=True)


WRONG: list[tuple[dict[str, Any], Callable[..., Any], str]] = [
    ({"zero_preserving": True}, lambda x: x + 1, r"zero preserving, f\(0\) = 0, found 1 and 0"),
    ({"commutative": True}, lambda x, y: x - y, "commutative, .*-10 and 10 for x = -9, y = 1"),
    ({"associative": True}, lambda x, y: x - y, r"associative, .* for x = -9, y = 1, z = "),
    ({"idempotent": True}, lambda x, y: x + y, r"idempotent, f\(x, x\) = x"),
    ({"identity": 1}, lambda x, y: x + y, r"identity that is declared, f\(1, x\) = x"),
    ({"annihilator": 0}, lambda x, y: x + y, r"annihilator that is declared, f\(0, x\) = 0"),
    ({"commutative": True}, lambda x: x, "commutative of a function of two arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("declared", "body", "message"), WRONG)
def test_wrong_declaration(declared: Any, body: Any, message: str) -> None:
    with pytest.raises(tp.OperandError, match=message):
        tp.function("f", body, **declared)
    assert "f" not in DEFINED.operators


def test_right_declarations() -> None:
    tp.function("f", lambda x, y: where(x > y, x, y), commutative=True, associative=True,
                idempotent=True, identity=-np.inf, annihilator=np.inf)  # fmt: skip
    tp.function("g", lambda x, y: x * y, zero_preserving=True, annihilator=0, identity=1)


BAD: list[tuple[tuple[Any, ...], type[Exception], str]] = [
    (("exp", lambda x: x), tp.OperandError, "a name that texts do not have, found exp"),
    (("a b", lambda x: x), tp.OperandError, "letters, digits and underscores"),
    (("f", 3), tp.OperandTypeError, "Expected a Python function as the body of f, found int"),
    (("f", lambda: 1), tp.OperandTypeError, "of one argument or several"),
    (("f", lambda *x: 1), tp.OperandTypeError, "of one argument or several"),
    (("f", lambda x: x if x > 0 else 0), tp.OperandTypeError, "found a branch on one"),
    (("f", lambda x: np.sum(x)), tp.OperandTypeError, "functions that texts have, found np.sum"),
    (("f", lambda x: x[0]), tp.OperandTypeError, "Expected operators that expressions have"),
    (("f", lambda x: len(x)), tp.OperandTypeError, "Expected operators that expressions have"),
    (("f", lambda x: x.sum()), tp.OperandTypeError, "found its attribute .sum"),
    (("f", lambda x: x.clip(0, 1)), tp.OperandTypeError, "found its attribute .clip"),
    (("f", lambda x: x.real), tp.OperandTypeError, "found its attribute .real"),
    (("f", lambda x: x.T), tp.OperandTypeError, "found its attribute .T"),
    (("f", lambda x: x.astype(int)), tp.OperandTypeError, "such as clip or real"),
    (("f", lambda x: x + "a"), tp.OperandTypeError, "or a number, found str"),
    (("f", lambda x: no_such(x)), tp.NotationError, "from taco_py.functions import no_such"),  # type: ignore[name-defined] # noqa: F821
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD)
def test_refused(arguments: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind) as found:
        tp.function(*arguments)
    assert message in str(found.value) or message in found.value.message


def test_names_and_numbers_of_arguments() -> None:
    tp.function("huber", huber)
    with pytest.raises(tp.NotationError, match="did you mean huber"):
        tp.evaluate("y[i] = hubr(x[i])", x=X)
    with pytest.raises(tp.NotationError, match="Expected 1 argument of huber, found 2"):
        tp.evaluate("y[i] = huber(x[i], x[i])", x=X)

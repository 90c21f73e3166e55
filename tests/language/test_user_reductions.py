"""Functions of users that reduce: in texts, assignments and semirings, over all formats."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.functions import exp, log1p, maximum, where
from tests.corpus.formats import store, to_dense

RANDOM = np.random.default_rng(2)
A = sp.random_array((7, 9), density=0.4, rng=RANDOM).toarray()
X = RANDOM.random(9)
FORMS = ["dense", "CSR", "CSC", "COO", "ss"]


def either(by: str) -> Any:
    """The chance of one of two independent events."""
    algebra: Any = {"associative": True, "commutative": True, "identity": 0, "annihilator": 1}
    if by == "tracing":
        return tp.function("either", lambda x, y: x + y - x * y, **algebra)
    return tp.function("either", numpy=lambda x, y: x + y - x * y, c="x + y - x * y", **algebra)


def logaddexp() -> Any:
    """The logarithm of the sum of exponentials, of which nothing is minus infinity."""

    def body(x: Any, y: Any) -> Any:
        apart = maximum(x, y) + log1p(exp(-abs(x - y)))
        return where(x == y, x + np.log(2.0), apart)

    return tp.function("lse", body, associative=True, commutative=True, identity=-np.inf)


TEXTS: list[tuple[str, Any]] = [
    ("y[i] = either(j, A[i,j])", 1 - np.prod(1 - A, axis=1)),
    ("y[i] = either(A[i,j])", 1 - np.prod(1 - A, axis=1)),
    ("y[j] = either(i, A[i,j])", 1 - np.prod(1 - A, axis=0)),
    ("y = either((i, j), A[i,j])", 1 - np.prod(1 - A)),
    ("y[i] = either(j, A[i,j] * x[j])", 1 - np.prod(1 - A * X, axis=1)),
    ("y[j] either= A[i,j]", 1 - np.prod(1 - A, axis=0)),
    ("y[i] = 2 * either(j, A[i,j]) + max(j, A[i,j])", 2 - 2 * np.prod(1 - A, 1) + A.max(1)),
    ("y[i,k] = either(j, A[i,j] * A[k,j])", 1 - np.prod(1 - A[:, None] * A[None], axis=2)),
]


@pytest.mark.parametrize("by", ["tracing", "text"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("text", "wanted"), TEXTS, ids=[text for text, _ in TEXTS])
def test_reduces(by: str, form: str, text: str, wanted: Any) -> None:
    either(by)
    given: Any = {"A": store(A, form)}
    if "x[" in text:
        given["x"] = X
    found = tp.evaluate(text, given)
    dense = to_dense(found)
    np.testing.assert_allclose(dense, wanted, rtol=1e-12)
    np.testing.assert_allclose(tp.evaluate_dense(text, given), wanted, rtol=1e-12)


@pytest.mark.parametrize("word", ["min", "max", "prod"])
def test_products_reduced_by_others_are_no_contractions(word: str) -> None:
    """Dense factors, which a library's product of matrices would add up."""
    wanted = {"min": np.min, "max": np.max, "prod": np.prod}[word]
    found = tp.evaluate(f"y[i,k] = {word}(j, A[i,j] * A[k,j])", A=A)
    np.testing.assert_allclose(found, wanted(A[:, None] * A[None], axis=2), rtol=1e-12)


def test_accumulates_into_what_is_there() -> None:
    either("text")
    found = tp.evaluate("y[j] either= A[i,j]", A=sp.csr_array(A), y=X)
    np.testing.assert_allclose(found, 1 - (1 - X) * np.prod(1 - A, axis=0), rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_what_is_absent_counts(form: str) -> None:
    """Each element that is not stored is a 0 that is reduced too: log(e**0 + e**0 + …)."""
    logaddexp()
    wanted = np.logaddexp.reduce(A, axis=1)
    found = tp.evaluate("y[i] = lse(j, A[i,j])", A=store(A, form))
    np.testing.assert_allclose(to_dense(found), wanted, rtol=1e-12)
    filled = tp.tensor(sp.csr_array(A), fill_value=-np.inf)
    with np.errstate(all="ignore"):
        alone = np.logaddexp.reduce(np.where(A != 0, A, -np.inf), axis=0)
    found = tp.evaluate("y[j] = lse(i, A[i,j])", A=filled)
    np.testing.assert_allclose(to_dense(found), alone, rtol=1e-12)


def test_nothing_is_the_identity() -> None:
    either("tracing")
    assert tp.evaluate("s = either(i, x[i])", x=np.zeros(0)) == 0
    logaddexp()
    assert tp.evaluate("s = lse(i, x[i])", x=np.zeros(0)) == -np.inf


@pytest.mark.parametrize("threads", [1, 2])
def test_large_and_in_threads(threads: int) -> None:
    either("text")
    big = sp.random_array((3000, 400), density=0.05, rng=RANDOM, format="csr") * 0.1
    wanted = 1 - np.prod(1 - big.toarray(), axis=1)
    found = tp.evaluate("y[i] = either(j, A[i,j])", A=big, threads=threads)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    total = tp.evaluate("s = either(i, x[i])", x=wanted * 1e-4, threads=threads)
    np.testing.assert_allclose(total, 1 - np.prod(1 - wanted * 1e-4), rtol=1e-9)


def test_types_without_the_identity_are_refused() -> None:
    logaddexp()
    with pytest.raises(tp.OperandTypeError, match="defined for float32, float64") as found:
        tp.evaluate("y[i] = lse(j, A[i,j])", A=A.astype(np.int64))
    assert "lse(j, A[i,j])\n         ^" in str(found.value)


# ---------------------------------------------------------------- semirings


@pytest.mark.parametrize("form", FORMS[1:])
def test_semiring_that_adds_by_a_function(form: str) -> None:
    lse = logaddexp()
    semiring = tp.Semiring(lse, "plus")
    assert semiring == tp.Semiring("lse", "plus")
    absent = np.where(A != 0, A, -np.inf)
    stored = store(A, form)
    with np.errstate(all="ignore"):
        wanted = np.logaddexp.reduce(absent + X, axis=1)
        product = np.logaddexp.reduce(absent[:, :, None] + absent.T[None], axis=1)
    found = tp.einsum("ij,j->i", stored, X, semiring=semiring)
    np.testing.assert_allclose(to_dense(found), wanted, rtol=1e-12)
    oracle = tp.evaluate_dense("y[i] = A[i,j] * x[j]", A=stored, x=X, semiring=semiring)
    np.testing.assert_allclose(oracle, wanted, rtol=1e-12)
    pairs = tp.einsum("ij,kj->ik", stored, stored, semiring=semiring)
    dense = to_dense(pairs)
    dense = dense if isinstance(pairs, tp.Tensor) else np.where(dense == 0, -np.inf, dense)
    np.testing.assert_allclose(dense, product, rtol=1e-12)


@pytest.mark.parametrize("by", ["tracing", "text"])
def test_semiring_that_multiplies_by_a_function(by: str) -> None:
    if by == "tracing":
        far = tp.function("far", lambda x, y: np.sqrt(x * x + y * y))
    else:
        far = tp.function("far", numpy=lambda x, y: np.sqrt(x * x + y * y), c="sqrt(x*x + y*y)")
    semiring = tp.Semiring("max", far)
    wanted = np.where(A != 0, np.hypot(A, X), -np.inf).max(1)
    found = tp.einsum("ij,j->i", sp.csr_array(A), X, semiring=semiring)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_semirings_keep_their_function() -> None:
    def defined(factor: float) -> tp.Semiring:
        tp.function("far", lambda x, y: (x + y) * factor, replace=True)
        return tp.Semiring("max", "far")

    one, two = defined(1.0), defined(2.0)
    assert one != two
    for semiring, factor in ((one, 1), (two, 2), (one, 1)):
        found = tp.einsum("ij,j->i", sp.csr_array(A), X, semiring=semiring)
        wanted = np.where(A != 0, (A + X) * factor, -np.inf).max(1)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    "text",
    ["y[i] = gap(j, A[i,j])", "y[i] = gap(A[i,j])", "y[i] gap= A[i,j]", "s = gap((i,j), A[i,j])"],
)
def test_order_matters(text: str) -> None:
    tp.function("gap", lambda x, y: x - y)
    with pytest.raises(tp.NotationError, match="associative and commutative function") as found:
        tp.evaluate(text, A=A)
    assert "gap" in str(found.value).split("\n")[1]
    assert "^^^" in str(found.value)
    assert "associative=True, commutative=True, identity=" in str(found.value)


def test_numbers_of_indices_are_arguments() -> None:
    """Where an index is bound, a function that does not reduce takes its number."""
    tp.function("gap", lambda x, y: x - y)
    found = tp.evaluate("y[i] = sum(j, gap(j, A[i,j]))", A=A)
    np.testing.assert_allclose(found, (np.arange(9) - A).sum(1))
    found = tp.evaluate("y[i] = gap(i, x[i])", x=X)
    np.testing.assert_allclose(found, np.arange(9) - X)


def test_semirings_are_checked() -> None:
    tp.function("gap", lambda x, y: x - y)
    tp.function("one", lambda x: x)
    with pytest.raises(tp.NotationError, match="found gap, which is not declared so"):
        tp.Semiring("gap", "times")
    with pytest.raises(tp.NotationError, match="multiplies by, found 'one' of 1 arguments"):
        tp.Semiring("plus", "one")


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (lambda x, y: abs(x) + abs(y), {"identity": 0}, r"f\(0, x\) = x, found 9 and -9 for x = -9"),
    (
        lambda x, y: maximum(x, y) + log1p(exp(-abs(x - y))), {"identity": -np.inf},
        r"f\(-inf, x\) = x, found nan and -inf for x = -inf",
    ),
    (lambda x, y: (x + y) / 2, {"associative": True}, r"associative, f\(f\(x, y\), z\)"),
    (lambda x: x, {"associative": True}, "of a function of two arguments"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "declared", "message"), WRONG)
def test_wrong_declarations(body: Any, declared: Any, message: str) -> None:
    with pytest.raises(tp.OperandError, match=message):
        tp.function("f", body, **declared)


def test_identity_in_all_types_of_a_text() -> None:
    algebra: Any = {"associative": True, "commutative": True, "identity": -np.inf}
    with pytest.raises(tp.OperandError, match="found -inf for int64"):
        tp.function(
            "f", numpy=lambda x, y: np.where(x > y, x, y), c="x > y ? x : y",
            dtypes=("int64",), **algebra,
        )  # fmt: skip


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_masks_around_reductions(layout):
    def both(x, y):
        larger = maximum(x, y) + log1p(exp(-abs(x - y)))
        return where(x == y, x + np.log(2.0), larger)

    tp.function("logs", both, associative=True, commutative=True, identity=-np.inf)
    terms = np.random.default_rng(0).random((3, 5))
    here = np.array([True, False, True])
    mask = here if layout == "dense" else sp.coo_array(here * 1.0)
    wanted = np.log(np.exp(terms).sum(axis=1))
    found = tp.evaluate("y[i] = logs(j, A[i,j])", A=terms, mask=mask)
    found = found if isinstance(found, np.ndarray) else found.toarray()
    np.testing.assert_allclose(found, np.where(here, wanted, 0))
    y = np.array([9.0, 9.0, 9.0])
    found = tp.evaluate("y[i] logs= A[i,j]", A=terms, y=y, mask=mask)
    np.testing.assert_allclose(found, np.where(here, np.logaddexp(y, wanted), y))

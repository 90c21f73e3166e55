"""Kernels over semirings and under masks, against the same texts with data at hand."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

RANDOM = np.random.default_rng(3)
A = sp.random_array((12, 15), density=0.3, rng=RANDOM, format="csr")
B = sp.random_array((15, 12), density=0.3, rng=RANDOM, format="csr")
M = sp.random_array((12, 12), density=0.4, rng=RANDOM, format="csr")
M.data[::4] = 0
X = RANDOM.random(15)
SEMIRINGS = ["min_plus", "max_times", "plus_pair", "or_and", "plus_times", "any_second"]
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "dd"])
def test_vector(semiring: str, form: str) -> None:
    stored: Any = A.toarray() if form == "dd" else A.asformat(form)
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A=form, x="d", semiring=semiring)
    wanted = tp.evaluate_dense("y[i] = A[i,j] * x[j]", A=stored, x=X, semiring=semiring)
    for _ in range(3):
        found = kernel(A=stored, x=X)
        np.testing.assert_allclose(to_dense(found), wanted, rtol=1e-12)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("semiring", [None, *SEMIRINGS])
@pytest.mark.parametrize("mask", ["none", "csr", "complement", "by value", "dense"])
def test_product(semiring: str | None, mask: str) -> None:
    given: Any = {
        "none": None, "csr": "csr", "complement": tp.complement(tp.CSR),
        "by value": tp.by_value(tp.CSR), "dense": tp.dense(2),
    }[mask]  # fmt: skip
    array: Any = M.toarray() if mask == "dense" else M
    asked: Any = {
        "none": None, "complement": tp.complement(array), "by value": tp.by_value(array),
    }.get(mask, array)  # fmt: skip
    kernel = tp.compile(PRODUCT, A="csr", B="csr", semiring=semiring, mask=given)
    wanted = tp.evaluate(PRODUCT, A=A, B=B, semiring=semiring, mask=asked)
    more = {} if mask == "none" else {"mask": array}
    for _ in range(3):
        found = kernel(A=A, B=B, **more)
        np.testing.assert_allclose(to_dense(found), to_dense(wanted), rtol=1e-12)
        assert to_dense(found).dtype == to_dense(wanted).dtype


@pytest.mark.parametrize("name", ["csr", "ds", "csc", "dd"])
@pytest.mark.parametrize(
    "asked",
    [
        lambda of: of, tp.complement, tp.by_value, lambda of: tp.complement(tp.by_value(of)),
        lambda of: tp.by_value(tp.complement(of)),
    ],
)  # fmt: skip
def test_masks_by_names_of_formats(name: str, asked: Any) -> None:
    stored: Any = M.toarray() if name == "dd" else M.asformat("csr" if name == "ds" else name)
    kernel = tp.compile(PRODUCT, A="csr", B="csr", mask=asked(name))
    wanted = tp.evaluate(PRODUCT, A=A, B=B, mask=asked(stored))
    found = kernel(A=A, B=B, mask=stored)
    np.testing.assert_allclose(to_dense(found), to_dense(wanted), rtol=1e-12)


@pytest.mark.parametrize("asked", ["csr", tp.complement("csr"), tp.by_value("csr")])
def test_calls_take_no_names_of_formats(asked: Any) -> None:
    for call in (tp.evaluate, tp.evaluate_dense):
        with pytest.raises(tp.OperandTypeError, match="Expected a tensor for a mask, found 'csr'"):
            call(PRODUCT, A=A, B=B, mask=asked)
    with pytest.raises(tp.OperandTypeError, match="Expected a tensor for a mask, found 'csr'"):
        tp.einsum("ik,kj->ij", A, B, mask=asked)


def test_what_is_not_stored_is_the_zero() -> None:
    kernel = tp.compile(PRODUCT, A="csr", B="csr", semiring="min_plus")
    wanted = tp.evaluate_dense(PRODUCT, A=A, B=B, semiring="min_plus")
    as_tensors = {"A": tp.tensor(A), "B": tp.tensor(B)}
    for _ in range(3):
        found = kernel(**as_tensors)
        assert found.fill_value == np.inf
        np.testing.assert_allclose(found.to_numpy(), wanted)
    square = sp.csr_array(M + sp.eye_array(12))
    twice = tp.compile("C[i,j] = A[i,k] * A[k,j]", A="csr", semiring="min_plus")
    step = twice(A=tp.tensor(square, fill_value=np.inf))
    assert twice(A=step).fill_value == np.inf  # results are operands


def test_accumulates() -> None:
    square, e, d = sp.csr_array(M), RANDOM.random(12), RANDOM.random(12)
    kernel = tp.compile("d[j] += W[i,j] * e[i]", W="csr", e="d", semiring="min_plus")
    wanted = tp.evaluate("d[j] += W[i,j] * e[i]", W=square, e=e, d=d, semiring="min_plus")
    np.testing.assert_allclose(kernel(W=square, e=e, d=d), wanted)
    out = d.copy()
    assert kernel(W=square, e=e, out=out) is out
    np.testing.assert_allclose(out, wanted)


@pytest.mark.parametrize("mask", [M, tp.complement(M), tp.by_value(M), M.toarray() > 0.3])
@pytest.mark.parametrize("text", ["C[i,j] += A[i,k] * B[k,j]", "C[i,j] max= A[i,k] * B[k,j]"])
def test_an_array_beside_an_operand_that_is_added_to(text: str, mask: Any) -> None:
    """All of out= is written: what the mask leaves out is the operand's, not the array's."""
    C = RANDOM.random((12, 12))
    given: Any = {"A": A, "B": B, "C": C}
    kernel, array = tp.compile(text, given, mask=mask), getattr(mask, "array", mask)
    wanted = tp.evaluate_dense(text, given, mask=mask)
    for call in (
        lambda out: tp.evaluate(text, given, mask=mask, out=out),
        lambda out: kernel(**given, mask=array, out=out),
    ):
        for _ in range(2):
            out = np.full((12, 12), 7.0)
            assert call(out) is out
            np.testing.assert_allclose(out, wanted)


def test_out_under_a_mask() -> None:
    given: Any = {"A": "csr", "B": "csr", "C": "dd", "mask": "csr"}
    for turned in (lambda mask: mask, tp.complement, tp.by_value):
        kernel = tp.compile(PRODUCT, **{**given, "mask": turned("csr")})
        for _ in range(2):
            out = np.ones((12, 12))
            assert kernel(A=A, B=B, mask=M, out=out) is out
            again = {"mask": turned(M), "format": "dd", "out": np.ones((12, 12))}
            np.testing.assert_allclose(out, tp.evaluate(PRODUCT, A=A, B=B, **again))
    with pytest.raises(tp.OutputError, match=r"Expected out= of shape \(12, 12\), found \(3, 12\)"):
        kernel(A=A, B=B, mask=M, out=np.ones((3, 12)))
    whole = tp.compile(PRODUCT, **given, replace=True)
    out = whole(A=A, B=B, mask=M, out=np.ones((12, 12)))
    np.testing.assert_allclose(out, tp.evaluate(PRODUCT, A=A, B=B, mask=M).toarray())


def test_kernels_are_pickled() -> None:
    kernel = tp.compile(PRODUCT, A="csr", B="csr", semiring="max_plus", mask="csr")
    again = pickle.loads(pickle.dumps(kernel))
    found, wanted = again(A=A, B=B, mask=M), kernel(A=A, B=B, mask=M)
    assert (found != wanted).nnz == 0


def test_by_functions_of_users() -> None:
    tp.function(
        "either", lambda x, y: x + y - x * y, associative=True, commutative=True, identity=0,
        replace=True,
    )  # fmt: skip
    semiring = tp.Semiring("either", "times")
    kernel = tp.compile("y[i] = A[i,j] * x[j]", A="csr", x="d", semiring=semiring)
    wanted = 1 - np.prod(1 - A.toarray() * X, axis=1)
    np.testing.assert_allclose(kernel(A=A, x=X), wanted, rtol=1e-12)


BAD: list[tuple[str, dict[str, Any], type[Exception], str]] = [
    (PRODUCT, {"semiring": "minplus"}, tp.NotationError, "did you mean min_plus"),
    (PRODUCT, {"mask": "dsd"}, tp.FormatError, "of 2 levels for a tensor of order 2"),
    (PRODUCT, {"mask": tp.complement("cs")}, tp.FormatError, "Expected"),
    (PRODUCT, {"replace": True}, tp.OperandError, "Expected a mask with replace=True"),
    ("C[i,j] = exp(A[i,k] * B[k,j])", {"semiring": "min_plus"}, tp.NotationError, r"\+ and \*"),
    ("C[i,j] = A[i,k] * mask[k,j]", {"mask": "csr"}, tp.OperandError, "a text without mask"),
    (
        "T[i,j] = A[i,k] * B[k,j]; C[i,j] = T[i,j]", {"mask": "csr", "outputs": ("T", "C")},
        tp.OperandError, "Expected one output under mask=, found T, C",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "kind", "message"), BAD)
def test_refused(text: str, options: Any, kind: type[Exception], message: str) -> None:
    formats = {"A": "csr", "B": "csr"} if "B[" in text else {"A": "csr"}
    with pytest.raises(kind, match=message):
        tp.compile(text, formats, **options)


def test_calls_are_checked() -> None:
    kernel = tp.compile(PRODUCT, A="csr", B="csr", mask="csr")
    with pytest.raises(tp.OperandError, match="Expected an operand mask, found A, B") as found:
        kernel(A=A, B=B)
    assert "pass it by name: mask=…" in str(found.value)
    with pytest.raises(tp.DimensionError, match="size for index j, found 15 in mask"):
        kernel(A=A, B=B, mask=A)


@pytest.mark.parametrize("text", ["y[i] = A[i,j] * x[j]", "y[i] = A[p[i],j] * x[j]"])
def test_a_sample_with_the_zero_as_its_fill_value(text: str) -> None:
    values = np.where(M.toarray() == 0, -np.inf, M.toarray())
    sample = tp.tensor(values, format="ds", fill_value=-np.inf)
    given: Any = {"A": sample, "x": RANDOM.random(12)}
    given |= {"p": np.array([3, 0, 3])} if "p[" in text else {}
    kernel = tp.compile(text, given, semiring="max_plus")
    for each in (sample, tp.tensor(M, format="ds")):
        operands = {**given, "A": each}
        wanted = tp.evaluate_dense(text, operands, semiring="max_plus")
        np.testing.assert_allclose(kernel(**operands), wanted)

"""tp.vjp and tp.jvp of texts, against differences of the oracle and against each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.autodiff.differences import dense, difference, direction, product

rng = np.random.default_rng(0)


def sparse(rows: int, columns: int, form: str = "csr") -> Any:
    return sp.random_array((rows, columns), density=0.5, format=form, rng=np.random.default_rng(1))


A, Z, X, x, b = (
    sparse(6, 5),
    rng.random((6, 5)) + 0.5,
    rng.random((5, 3)),
    rng.random(5),
    rng.random(6),
)
U, V, w, p = rng.random((6, 3)), rng.random((5, 3)), rng.random(2), np.array([0, 2, 4, 2])
FUNCTIONS = (
    "log(x[i]) + sqrt(x[i]) * tan(x[i]) - abs(x[i] - 0.5)",
    "hypot(x[i], y[i]) + atan2(x[i], y[i]) + fmax(x[i], y[i]) * sigmoid(x[i]) * erf(y[i])",
    "exp(x[i]) * expm1(y[i]) + log1p(x[i]) * log2(y[i]) + log10(x[i]) * exp2(y[i])",
    "sin(x[i]) * cos(y[i]) + asin(x[i]) * acos(y[i]) + atan(x[i])",
    "sinh(x[i]) * cosh(y[i]) + tanh(x[i]) + asinh(y[i]) * atanh(x[i]) + acosh(y[i] + 1)",
    "cbrt(x[i]) + copysign(x[i], y[i] - 0.5) + x[i] % 0.3 + x[i] // 0.3 * y[i]",
    "where(x[i] > 0.5, x[i] * x[i], min(x[i], y[i])) + max(x[i], 0.4) ** 3 + x[i] ** y[i]",
)
CASES: dict[str, tuple[Any, Mapping[str, Any]]] = {
    "y[i] = A[i,j] * x[j]": (None, {"A": A, "x": x}),
    "y[i] = exp(A[i,j] * x[j]) / (1 + b[i])": (None, {"A": A, "x": x, "b": b}),
    "H[i,k] = max(A[i,j] * X[j,k] + c[k], 0)": (None, {"A": A, "X": X - 0.5, "c": x[:3]}),
    "y[i] = A[i,j] * exp(sum(k, U[i,k] * V[j,k]))": (None, {"A": A, "U": U, "V": V}),
    "Y[i,j] = A[i,j] * sum(k, U[i,k] * V[j,k])": (None, {"A": A, "U": U, "V": V}),
    "Y[i,j] = B[j,i] * A[i,j]": (None, {"A": A, "B": sparse(5, 6, "csc")}),
    "Y[i,j] = B[i,j] + A[i,j]": (None, {"A": A, "B": sparse(6, 5, "coo")}),
    "m[i] = max(j, Z[i,j]); p[i,j] = exp(Z[i,j] - m[i]); s[i] = p[i,j]; q[i,j] = p[i,j] / s[i]": (
        None, {"Z": Z},
    ),
    "Y[i,j] = A[i,j] * A[i,j] * x[j]; z = Y[i,j] * Y[i,j]": (("Y", "z"), {"A": A, "x": x}),
    "M[i,r] = T[i,k,l] * C[k,r] * F[l,r]": (
        None, {"T": rng.random((3, 4, 2)), "C": rng.random((4, 3)), "F": rng.random((2, 3))},
    ),
    "s = sum(i, log(sum(j, exp(Z[i,j]))))": (None, {"Z": Z}),
    "y[i] = sum(j, Z[i,j] + b[i])": (None, {"Z": Z, "b": b}),
    "y[i] = min(j, Z[i,j] * x[j])": (None, {"Z": Z, "x": x}),
    "y[i] = mean(j, Z[i,j] * x[j]) + var(j, Z[i,j])": (None, {"Z": Z, "x": x}),
    "s = prod(i, x[i])": (None, {"x": np.array([2.0, 0.0, 3.0])}),
    "s = A[i,i] * x[i]": (None, {"A": A[:5], "x": x}),
    "y[i] = x[p[i]] * i": (None, {"x": x, "p": p}),
    "y[i] = x[i+k] * w[k]": (None, {"x": x, "w": w}),
    "y[i+k] += x[i] * w[k]": (None, {"x": x, "w": w}),
    "y[i] += A[i,j] * x[j]": (None, {"A": A, "x": x, "y": b}),
    "y[i] = b[i] + c[i]": (None, {"b": b, "c": b * 2}),
    "y[i] = x[i]; w[i] = y[i] * y[i]; y[i] += x[i]; s = w[i] + y[i] * y[i]": (None, {"x": x}),
    "s = sum(i, k, w[i+k] * x[k] * x[k])": (None, {"x": x, "w": rng.random(7)}),
    "y[i] = a * x[i]**3 + b": (None, {"x": x, "a": 2.0, "b": 1.5}),
    **{f"z[i] = {each}": (None, {"x": x, "y": x[::-1] * 0.9} if "y[" in each else {"x": x})
       for each in FUNCTIONS},
}  # fmt: skip


@pytest.mark.rotating(12)
@pytest.mark.parametrize("text", CASES)
def test_derivatives_are_those_of_differences(text: str) -> None:
    outputs, operands = CASES[text]

    def values(given: Mapping[str, Any]) -> tuple[Any, ...]:
        found = tp.evaluate_dense(text, given, outputs=outputs)
        return found if isinstance(found, tuple) else (found,)

    pullback = tp.vjp(text, operands, outputs=outputs)
    seeds = [rng.random(np.shape(each)) if np.shape(each) else 0.7 for each in values(operands)]
    cotangents = dict(zip(pullback.wrt, pullback(*seeds), strict=True))

    def weighted(given: Mapping[str, Any]) -> float:
        return sum(product(one, other) for one, other in zip(values(given), seeds, strict=True))

    along = {name: direction(operands[name], rng) for name in pullback.wrt}
    for name, each in along.items():
        found, operand = cotangents[name], operands[name]
        if sp.issparse(operand):
            assert type(found) is type(operand) and found.nnz == operand.nnz
        expected = difference(weighted, operands, name, each)
        assert product(found, each) == pytest.approx(expected, rel=1e-4, abs=1e-6), name
    tangents = tp.jvp(text, operands, outputs=outputs)(along)
    tangents = tangents if isinstance(tangents, tuple) else (tangents,)
    forward = sum(product(one, other) for one, other in zip(tangents, seeds, strict=True))
    backward = sum(product(cotangents[name], each) for name, each in along.items())
    assert forward == pytest.approx(backward, rel=1e-9)


def test_the_statements_of_a_product_are_two_products() -> None:
    text = tp.vjp("y[i] = A[i,j] * x[j]", A=A, x=x).text
    assert text.splitlines() == [
        "d_A[i_2,j_2] = stored(A[i_2,j_2]) * (d_y[i_2] * x[j_2])",
        "d_x[j_3] = sum(i, A[i,j_3] * d_y[i])",
    ]


def test_a_large_matrix_has_a_gradient_of_its_pattern() -> None:
    large = sp.random_array(
        (200_000, 200_000), density=1e-6, format="csr", rng=np.random.default_rng(2)
    )
    features = rng.random((200_000, 2))
    pullback = tp.vjp("Y[i,k] = A[i,j] * X[j,k]", {"A": large, "X": features}, wrt="A")
    found = pullback(np.ones((200_000, 2)))  # dense it would take 320 GB
    assert found.nnz == large.nnz
    rows, columns = large.nonzero()
    np.testing.assert_allclose(found.data, features.sum(1)[columns])
    assert (found.nonzero()[0] == rows).all()


def test_operands_that_are_no_zero_where_they_store_nothing() -> None:
    elements = np.ones((6, 5))
    elements[[0, 2, 3], [1, 4, 0]] = 3.0, 5.0, 2.0
    filled = tp.tensor(elements, "csr", fill_value=1.0)
    text = "y[i] = A[i,j] * exp(sum(k, U[i,k] * V[j,k]))"
    for name in ("U", "V"):
        found, expected = (
            tp.vjp(text, {"A": each, "U": U, "V": V}, wrt=name)(b) for each in (filled, elements)
        )
        np.testing.assert_allclose(found, expected)


def test_second_derivatives_by_the_statements_of_the_first() -> None:
    first = tp.vjp("s = exp(x[i]) * x[i]", x=x)
    again = tp.vjp(first.text, {"x": x, "d_s": 1.0}, wrt="x")
    ones = np.ones(5)
    np.testing.assert_allclose(again(ones), np.exp(x) * (x + 2))


def test_complex_gradients_are_those_of_real_and_imaginary_parts() -> None:
    z = rng.random(4) + 1j * rng.random(4)
    text = "s = real(z[i] * z[i]) * abs(z[i]) + imag(exp(z[i])) - real(conj(z[i]) * z[i])"
    found = tp.vjp(text, z=z)()[0]
    for unit in (1.0, 1j):
        step = 1e-6 * unit
        each = [
            (tp.evaluate_dense(text, z=z + step * e) - tp.evaluate_dense(text, z=z - step * e))
            / 2e-6
            for e in np.eye(4)
        ]
        part = found.real if unit == 1.0 else found.imag
        np.testing.assert_allclose(part, each, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "s = n[i] * x[i]",
            {"wrt": "n"},
            "real or complex operands in wrt=, found n of type int64",
        ),
        ("s = x[i]", {"wrt": "q"}, "names of operands in wrt=, found 'q'"),
        ("s = x[i]", {"wrt": "n"}, "names of operands in wrt=, found 'n'"),
        ("s = n[i]", {}, "a real or complex operand that s depends on"),
        ("s min= x[i]", {"wrt": "x"}, r"= or \+= in a statement with a derivative"),
    ],
)
def test_what_has_no_derivative_is_refused(text: str, options: Any, message: str) -> None:
    whole = {"x": x, "n": np.arange(5)}
    operands = {name: each for name, each in whole.items() if f"{name}[" in text}
    with pytest.raises(tp.DerivativeError, match=message):
        tp.vjp(text, operands, **options)


def test_cotangents_and_tangents_are_asked_for() -> None:
    pullback = tp.vjp("y[i] = A[i,j] * x[j]", A=A, x=x)
    with pytest.raises(tp.OperandError, match="a cotangent for each output, y, found 0"):
        pullback()
    with pytest.raises(tp.OperandError, match=r"a cotangent of shape \(6,\) for y, found one of"):
        tp.vjp("y[i] = b[i] + c[i]", b=b, c=b)(np.ones(3))
    with pytest.raises(tp.OperandError, match=r"a tangent of shape \(5,\) for x, found one of"):
        tp.jvp("y[i] = 2 * x[i]", x=x)(x=np.ones(4))
    with pytest.raises(tp.OperandError, match="a tangent of each of A, x, found none of A"):
        tp.jvp("y[i] = A[i,j] * x[j]", A=A, x=x)(x=x)
    assert dense(tp.vjp("s = x[i] * x[i]", x=x)()[0]) == pytest.approx(2 * x)


def test_a_cotangent_says_how_large_a_scatter_is() -> None:
    (found,) = tp.vjp("y[p[i]] += b[i]", b=b[:4], p=p)(np.arange(7.0))
    np.testing.assert_array_equal(found, p)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = exp(A[i,j]) * x[j]",
        "y[i] = max(j, A[i,j] * x[j])",
        "y[i] = where(b[i] > 0.5, A[i,j] * x[j], b[i])",
    ],
)
def test_texts_of_derivatives_by_sparse_operands_are_differentiated_again(text: str) -> None:
    operands = {"A": A, "x": x, "b": b} if "b[i]" in text else {"A": A, "x": x}
    first = tp.vjp(text, operands, wrt="A")
    again = tp.vjp(first.text, {**operands, "d_y": b}, wrt="A")
    seed, step = A.copy(), A.copy()
    seed.data, step.data = rng.random(A.nnz), 1e-6 * rng.random(A.nnz)
    ahead, behind = (tp.vjp(text, {**operands, "A": A + s * step}, wrt="A")(b) for s in (1, -1))
    expected = ((ahead - behind).multiply(seed)).sum() / 2
    assert (again(seed).multiply(step)).sum() == pytest.approx(expected, rel=1e-4, abs=1e-12)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
def test_a_cotangent_of_scipys_beside_a_tensor_is_scipys(kind: str) -> None:
    B = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]]).asformat(kind)
    A = tp.tensor(np.array([[1.0, 2.0], [0.0, 1.0]]), format="ss")
    d_A, d_B = tp.vjp("C[i,j] = A[i,k] * B[k,j]", A=A, B=B)(np.ones((2, 3)))
    assert type(d_A) is tp.Tensor and type(d_B) is type(B)
    assert d_B.toarray().tolist() == [[1.0, 0.0, 1.0], [0.0, 3.0, 0.0]]


STRETCHED = (
    ("y[i] = x[i] * c[i] * c[i]", 4),
    ("t[i] = x[i] * c[i]; s = t[i] * t[i]", None),
    ("s = B[i,j] * r[i,j]", None),
)


@pytest.mark.parametrize(("text", "size"), STRETCHED)
def test_cotangents_of_stretched_modes_are_summed(text: str, size: int | None) -> None:
    rng = np.random.default_rng(0)
    every = {
        "x": rng.random(4),
        "c": rng.random(1),
        "B": rng.random((4, 3)),
        "r": rng.random((1, 3)),
    }
    given = {name: array for name, array in every.items() if f"{name}[" in text}
    seed = 1.0 if size is None else rng.random(size)
    for name, found in zip(given, tp.vjp(text, given)(seed), strict=True):
        step = rng.random(given[name].shape)
        ahead, behind = (
            tp.evaluate_dense(text, {**given, name: given[name] + sign * 1e-6 * step})
            for sign in (1, -1)
        )
        expected = np.sum((ahead - behind) * seed) / 2e-6
        assert np.sum(found * step) == pytest.approx(expected, rel=1e-6)


SUBSCRIPTS: Mapping[str, Any] = {
    "Y[i,k] = A[p[i],j] * X[j,k]": ("error", (4, 3)),
    "Y[i,k] = A[p[i],j] * X[j,k] + A[i+1,j] * X[j,k]": ("error", (4, 3)),
    "Y[j,k] = A[i,j] * U[i,k] + A[q[i],j] * U[i,k]": ("error", (5, 3)),
    "y[i] = A[i+2,j] * A[i,j]": ("fill", (6,)),
}


@pytest.mark.parametrize("form", ["ss", "uq", "hh", "sell(2)", "dia", "csr_array", "coo_matrix"])
@pytest.mark.parametrize("text", SUBSCRIPTS)
def test_a_sparse_operand_at_subscripts_has_a_cotangent_of_its_pattern(
    text: str, form: str
) -> None:
    border, shape = SUBSCRIPTS[text]
    stored = getattr(sp, form)(A) if "_" in form else tp.tensor(A, format=form)
    values = {"X": X, "U": U, "p": p, "q": np.array([0, 2, 4, 2, 5, 5])}
    passed = {name: value for name, value in values.items() if f"{name}[" in text}
    seed = np.random.default_rng(5).integers(1, 4, shape).astype(float)

    def cotangent(operand: Any) -> Any:
        pullback = tp.vjp(text, {"A": operand, **passed}, wrt="A", border=border)
        return pullback(seed)

    found, wanted = cotangent(stored), cotangent(A.toarray()) * (A.toarray() != 0)
    assert type(found) is type(stored) and found.format == stored.format
    np.testing.assert_allclose(dense(found), wanted)
    traced = tp.fuse(lambda X: tp.vjp(text, {"A": stored, **passed, "X": X}, wrt="A")(seed))
    if "X" in passed and border == "error":
        np.testing.assert_allclose(dense(traced(X)), wanted)


def test_a_cotangent_of_nothing_is_zero_beside_infinity() -> None:
    matrix = sp.csr_array(np.array([[np.inf, 0.0], [1.0, 2.0]]))
    text, operands = "y[i] = x[i]; z[i] = A[i,j] * x[j]", {"A": matrix, "x": np.ones(2)}
    found = tp.vjp(text, operands, wrt="A", outputs="y")(np.ones(2))
    assert found.nnz == 3 and not found.data.any()

"""Texts that mean something else than they are often written for, and texts that do not."""

from __future__ import annotations

import numpy as np
import pytest

from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.traps import traps
from taco_py.language.oracle import evaluate_dense

AROUND = [
    "s = (y[i] - X[i,a]*v[a]) * (y[i] - X[i,a]*v[a]) * w[i]",
    "s = w[i] * (y[i] - X[i,a]*v[a]) * (y[i] - X[i,a]*v[a])",
    "s = -(y[i] - X[i,a]*v[a]) * (z[i] - X[i,a]*u[a]) / n",
    "s = (A[i,j]*w[j] - y[i]) * (A[i,j]*w[j] - y[i]) * y[i]",
    "K[i,j] = (X[i,k]*Y[j,k] + c) * (X[i,k]*Y[j,k] + c)",
]
QUOTIENT = [
    "q[i] = (y[i] - X[i,a]*v[a]) / (z[i] - X[i,a]*u[a])",
    "q[i] = 1 / (y[i] - X[i,a]*v[a]) / (z[i] - X[i,a]*u[a])",
    "q[i] = w[i] * (y[i] - X[i,a]*v[a]) / (y[i] - X[i,a]*v[a])",
]
LEFT = [
    "g[u,k] = (Y[u,i] - P[u,k]*Q[i,k]) * Q[i,k]",
    "g[a] = (y[i] - X[i,a]*v[a]) * X[i,a]",
    "g[a] = -2 * X[i,a] * (X[i,a]*v[a] - y[i]) / n",
]
ALONE = [
    "y[i] = X[i,j] * v[k]",
    "C[i,k] = A[i,j] * B[l,k]",
    "y[i] = x[i] * v[k]",
    "D[i,j] = S[i,j] * U[i,k] * V[j,l]",
    "M[i,r] = T[i,k,l] * C[k,r] * D[m,r]",
    "s = x[i] * y[j]",
    "s[j] = -x[i] * y[j]",
    "p[i] = x[i] / x[k]",
]
ROOT = [
    "s = sqrt(x[i]**2)",
    "s = 2 * sqrt(square(x[i]))",
    "y[i] = sqrt(A[i,j]**2) + b[i]",
    "D[i,j] = sqrt((X[i,k] - Y[j,k])**2)",
    "s = sqrt(1 + w[j] * x[i]**2) / sum(j, w[j])",
    "s = cbrt(x[i]**3)",
    "s = (x[i]**2)**0.5",
]
DISTANCE = [
    ("K[i,j] = exp(-(X[i,k] - Y[j,k])**2)", "exp"),
    ("K[i,j] = exp(-g * (X[i,k] - Y[j,k])**2 / 2)", "exp"),
    ("K[i,j] = exp(-((X[i,k] - Y[j,k]) / h)**2)", "exp"),
    ("K[i,j] = exp(-abs(X[i,k] - Y[j,k]))", "exp"),
    ("K[i,j] = exp(-sqrt((X[i,k] - Y[j,k])**2))", "exp"),
    ("s = log(1 + (x[i] - y[i])**2)", "log"),
    ("s = log((x[i] - 2*y[i])**4 + c)", "log"),
    ("K[i,j] = max(1 - (X[i,k] - Y[j,k])**2, 0)", "max"),
    ("A[i,j] = (X[i,k] - Y[j,k])**2 < r", "the comparison"),
    ("K[i,j] = abs((X[i,k] - Y[j,k])**2)", "abs"),
    ("K[i,j] = (1 + (X[i,k] - Y[j,k])**2)**1.5", "the power"),
    ("K[i,j] = ((X[i,k] - Y[j,k])**2)**2", "the power"),
    ("K[i,j] = (c + (X[i,k] - Y[j,k])**2)**p", "the power"),
    ("K[i,j] = sqrt(c + abs(X[i,k] - Y[j,k])**3)", "the root"),
]
ORDINARY = [
    "K[i,j] = w[i] / (2 * (X[i,k] - Y[j,k])**2)",
    "K[i,j] = 1 / (1 + (X[i,k] - Y[j,k])**2)",
    "K[i,j] = exp(-sum(k, (X[i,k] - Y[j,k])**2))",
    "K[i,j] = sum(k, exp(-(X[i,k] - Y[j,k])**2))",
    "K[i,j] = exp(-(X[i,k] - Y[j,k]) * (X[i,k] - Y[j,k]))",
    "K[i,j] = exp(-w[k] * (X[i,k] - Y[j,k])**2)",
    "K[i,j,k] = exp(-(X[i,k] - Y[j,k])**2)",
    "K[i,j] min= exp(-(X[i,k] - Y[j,k])**2)",
    "D[i,j] = (X[i,k] - Y[j,k])**2",
    "D[i,j] = abs(X[i,k] - Y[j,k])",
    "D[i,j] = abs(X[i,k] - Y[j,k])**2",
    "D[i,j] = abs(X[i,k] - Y[j,k])**p",
    "s = log(x[i])",
    "s = log(1 + x[i]**2)",
    "s = log(x[i] + y[i])",
    "s = exp(-(x[i] - m)**2)",
    "s = max(x[i] - y[i], 0)",
    "s = w[i] / (x[i] - y[i])**2",
    "s = sum(i, 1 / (x[i] - y[i])**2)",
    "s = sum(i, sqrt(x[i]**2))",
    "s = sqrt(sum(i, x[i]**2))",
    "s = sqrt(x[i] * x[i])",
    "s = sqrt(x[i]**2 + y[i]**2)",
    "y[i] = sqrt(x[i]**2)",
    "s = sqrt(x[i])",
    "s = sqrt(x[i]**3)",
    "s = cbrt(x[i]**2)",
    "s = exp(-x[i]**2)",
    "s = (x[i]**2)**2.5",
    "y[i] = A[i,j] * x[j] + b[i]",
    "d[i] = A[i,j]",
    "s = A[i,j]",
    "s = 2 * A[i,j]",
    "y[i] = b[i] * A[i,j]",
    "m[j] = A[i,j] / n",
    "n = A[i,j] * A[j,k]",
    "n = A[i,j] * A[j,k] * A[k,l]",
    "y[i] = A[i,j] * B[j,k]",
    "y[i] = T[i,j,k] * x[j]",
    "y[i] = b[i] / D[i,j]",
    "y[i] = b[i] * sum(j, A[i,j])",
    "y[i] = x[i] * sum(k, v[k])",
    "p[i] = x[i] / sum(k, x[k])",
    "y[i] = x[i] * A[k,k]",
    "C[i,j] = a[i] * b[j]",
    "D[i,j] = (X[i,k] - Y[j,k]) * (X[i,k] - Y[j,k])",
    "D[i,j] = (X[i,k]*w[k] - Y[j,k]*w[k]) * (X[i,k]*w[k] - Y[j,k]*w[k])",
    "v[j] = (X[i,j] - m[j]) * (X[i,j] - m[j])",
    "s = (A[i,j] - u[i]*v[j]) * (A[i,j] - u[i]*v[j])",
    "s = (y[i] - X[i,a]*v[a])**2 * w[i]",
    "s = (A[i,j]*w[j] - y[i]) * (A[i,j]*w[j] - y[i]) * v[j]",
    "s = -v[j] * (A[i,j]*w[j] - y[i]) * (A[i,j]*w[j] - y[i])",
    "s = (A[i,j]*w[j] - y[i]) * (A[i,j]*w[j] - y[i]) / v[j]",
    "s = (A[i,j]*w[j] - y[i]) / (A[i,j]*w[j] - y[i]) * B[i,j]",
    "s = (y[i] - X[i,a]*v[a]) * (y[i] - X[i,b]*v[b])",
    "s = sum(a, (y[i] - X[i,a]*v[a]) * (y[i] - X[i,a]*v[a]))",
    "g[a] = (y[i] - X[i,b]*v[b]) * X[i,a]",
    "g[u,k] = sum(i, (Y[u,i] - P[u,k]*Q[i,k]) * Q[i,k])",
    "C[i,j] = (A[i,j]*s[i] + b[j]) * M[i,j]",
    "y[i] = (A[i,j]*d[i] + B[j]) * x[j]",
    "y[i] = (x[i]*d[i] - A[i,j]*x[j]) * d[i]",
    "y[i] = (A[i,j] + B[i,j]) * x[j]",
    "D[i,j] = S[i,j] * U[i,k] * V[j,k]",
    "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
    "y[j] = (a[j] + c[k]) / B[i,j]",
    "y[j] = -((a[j] + c[k]) / B[i,j])**2",
    "J[i,j] = A[i,j]*sum(k, A[i,k]*A[j,k]) / (d[i] + d[j] - sum(k, A[i,k]*A[j,k]))",
]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *((text, "is summed around the whole product") for text in AROUND),
        *((text, "is summed around the whole quotient") for text in QUOTIENT),
        *((text, "so nothing is summed over it in") for text in LEFT),
        *((text, "is used once, so") for text in ALONE),
        *((text, "is summed around the root: sum(") for text in ROOT),
        *((text, f"is summed around {name}: sum(") for text, name in DISTANCE),
    ],
)
def test_traps_are_told_with_the_place_and_the_other_way(text: str, says: str) -> None:
    (found,) = traps(parse_assignment(text))
    message = str(found)
    assert says in message
    assert "^" in message and "hint: " in message


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_texts_are_not_warned_of(text: str) -> None:
    assert traps(parse_assignment(text)) == ()


RIGHT = [
    ("{0} * {0}", "(y[i] - X[i,a] * v[a])**2"),
    ("-{0} * {0}", "-(y[i] - X[i,a] * v[a])**2"),
    ("{0} * -{0}", "-(y[i] - X[i,a] * v[a])**2"),
    ("-{0} * -{0}", "(y[i] - X[i,a] * v[a])**2"),
    ("-{0} * {0} * -{0}", "(y[i] - X[i,a] * v[a])**3"),
    ("-{0} * {1}", "(-(y[i] - sum(a, X[i,a] * v[a]))) * (z[i] - sum(a, X[i,a] * u[a]))"),
    ("{0} / {1}", "(y[i] - sum(a, X[i,a] * v[a])) / (z[i] - sum(a, X[i,a] * u[a]))"),
    ("{0} / {0}", "(y[i] - sum(a, X[i,a] * v[a])) / (y[i] - sum(a, X[i,a] * v[a]))"),
    ("1 / {0} / {0}", "… / (y[i] - X[i,a] * v[a])**2"),
    ("1 / {0} / -{0}", "… / -(y[i] - X[i,a] * v[a])**2"),
    ("1 / -{0} / {1}", "… / (-(y[i] - sum(a, X[i,a] * v[a]))) / (z[i] - sum(a, X[i,a] * u[a]))"),
    ("{0} * ({1} + 1)", "(y[i] - sum(a, X[i,a] * v[a])) * (z[i] - sum(a, X[i,a] * u[a]) + 1)"),
    (
        "{0} * (z[i] - (X[i,a]*u[a] + 1))",
        "(y[i] - sum(a, X[i,a] * v[a])) * (z[i] - (sum(a, X[i,a] * u[a]) + 1))",
    ),
]
TERMS = ("(y[i] - X[i,{0}]*v[{0}])", "(z[i] - X[i,{0}]*u[{0}])")


@pytest.mark.parametrize(("form", "right"), RIGHT)
def test_the_way_that_is_advised_sums_inside_each_part(form: str, right: str) -> None:
    """It computes what letters of their own in each part do."""
    first, second = (term.format("a") for term in TERMS)
    text = f"q[i] = {form.format(first, second)}"
    (found,) = traps(parse_assignment(text))
    assert f"to sum inside each part write {right}, or another letter" in str(found)
    own = text
    for letter in "bcd":
        own = own.replace("X[i,a]*v[a]", f"X[i,{letter}]*v[{letter}]", 1)
        own = own.replace("X[i,a]*u[a]", f"X[i,{letter}2]*u[{letter}2]", 1)
    rng = np.random.default_rng(0)
    operands = {n: rng.random(3) for n in "yzvu"} | {"X": rng.random((3, 3))}
    np.testing.assert_allclose(
        evaluate_dense(parse_assignment(f"q[i] = {right.replace('…', '1')}"), operands),
        evaluate_dense(parse_assignment(own), operands),
    )


@pytest.mark.parametrize(("text", "name"), DISTANCE)
def test_the_distance_that_is_advised_ends_the_warning(text: str, name: str) -> None:
    (report,) = traps(parse_assignment(text))
    advice = str(report).rsplit("write sum(", 2)[1].split(" there;")[0]
    index, term = advice[:-1].split(", ", 1)
    mended = parse_assignment(text.replace(" ", "").replace(
        term.replace(" ", ""), f"sum({index},{term.replace(' ', '')})", 1))  # fmt: skip
    assert mended != parse_assignment(text)
    assert traps(mended) == ()

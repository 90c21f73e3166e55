"""Powers of the text: which sums they close, what they become, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.reduce import insert_reductions

RULES = [
    ("C[i,j] = A[i,j]**2", "C[i,j] = A[i,j] * A[i,j]"),
    ("y[i] = x[i]**1", "y[i] = x[i]"),
    ("y[i] = -x[i]**2", "y[i] = -(x[i] * x[i])"),
    ("y[i] = (-x[i])**2", "y[i] = -x[i] * -x[i]"),
    ("y[i] = x[i]**2**2", "y[i] = x[i] * x[i] * x[i] * x[i]"),
    ("y[i] = b[i] * x[i]**2", "y[i] = b[i] * (x[i] * x[i])"),
    # summed around the power: each term that has the index uses it once
    ("s = x[i]**2", "s = sum(i, x[i] * x[i])"),
    ("s = 2 * x[i]**2 + c", "s = 2 * sum(i, x[i] * x[i]) + c"),
    ("s = (x[i] - m)**2", "s = sum(i, (x[i] - m) * (x[i] - m))"),
    ("D[i,j] = (X[i,k] - Y[j,k])**2", "D[i,j] = sum(k, (X[i,k] - Y[j,k]) * (X[i,k] - Y[j,k]))"),
    ("v[j] = (X[i,j] - m[j])**2 / n", "v[j] = sum(i, (X[i,j] - m[j]) * (X[i,j] - m[j])) / n"),
    ("s = (y[a] - X[a] * v[a])**2", "s = sum(a, (y[a] - X[a] * v[a]) * (y[a] - X[a] * v[a]))"),
    # summed inside: each term that has it uses it in several factors
    (
        "s = (y[i] - X[i,a] * v[a])**2 * w[i]",
        "s = sum(i, (y[i] - sum(a, X[i,a] * v[a])) * (y[i] - sum(a, X[i,a] * v[a])) * w[i])",
    ),
    ("y[i] = (X[i,a] * v[a])**2", "y[i] = sum(a, X[i,a] * v[a]) * sum(a, X[i,a] * v[a])"),
    ("s = (a[i] * b[i])**2", "s = sum(i, a[i] * b[i]) * sum(i, a[i] * b[i])"),
    ("s = sum(j, x[j])**2", "s = sum(j, x[j]) * sum(j, x[j])"),
    # an index that is on the left, or that a sum names, stays
    ("y[i] = (a[i] * b[i])**2", "y[i] = a[i] * b[i] * (a[i] * b[i])"),
    ("s = sum(i, (a[i] * b[i])**2)", "s = sum(i, a[i] * b[i] * (a[i] * b[i]))"),
]


@pytest.mark.parametrize(("text", "means"), RULES)
def test_powers_become_products(text: str, means: str) -> None:
    found = insert_reductions(parse_assignment(text))
    assert to_text(found) == means
    assert insert_reductions(found) is found


def test_the_sum_of_squared_residuals() -> None:
    rng = np.random.default_rng(0)
    given = {"X": rng.random((6, 4)), "y": rng.random(6), "v": rng.random(4), "w": rng.random(6)}
    text = "s = (y[i] - X[i,a]*v[a])**2 * w[i]"
    expected = (given["w"] * (given["y"] - given["X"] @ given["v"]) ** 2).sum()
    assert np.isclose(tp.evaluate(text, given), expected)
    assert np.isclose(tp.evaluate_dense(text, given), expected)


@pytest.mark.parametrize("form", ["dd", "ds", "ds:1,0", "ss", "coo"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("C[i,j] = A[i,j]**3", lambda a: a**3),
        ("C[i,j] = A[i,j]**0", lambda a: a**0),
        ("C[i,j] = (A[i,k] * A[j,k])**2", lambda a: (a @ a.T) ** 2),
        ("s = A[i,j]**2", lambda a: (a**2).sum()),
        ("s = (A[i,j] - 1)**2", lambda a: ((a - 1) ** 2).sum()),
    ],
)
def test_formats(form: str, text: str, expected: object) -> None:
    a = np.random.default_rng(1).integers(-3, 4, (5, 4)) * 1.0
    a[a < 0] = 0
    found = tp.evaluate(text, A=tp.tensor(a, format=form))
    dense = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_allclose(dense, expected(a))  # type: ignore[operator]


def test_the_power_zero_is_one_for_every_number() -> None:
    x = np.array([0.0, np.nan, np.inf, 2.0])
    np.testing.assert_array_equal(tp.evaluate("y[i] = x[i]**0", x=x), 1)
    assert tp.evaluate("s = x[i]**0", x=x) == 4


def test_a_sum_in_the_base_is_computed_once() -> None:
    rng = np.random.default_rng(0)
    given = {"X": rng.random((300, 50)), "y": rng.random(300), "v": rng.random(50)}
    told = tp.explain("s = (y[i] - X[i,a]*v[a])**2", given, frontier_budget=0)
    assert "runs      2 kernels" in told
    assert "(y[i] - T[i]) * (y[i] - T[i])" in told


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("y[i] = x[i]**65", "Expected powers of at most 64 factors, found 65"),
        ("y[i] = (x[i]**9)**9", "Expected powers of at most 64 factors, found 9 times 9"),
        ("y[i] = x[i]**99**99**99", "Expected powers of at most 64 factors"),
        ("y[i] = x[i]**", "found the end of the text"),
    ],
)
def test_other_exponents_are_refused(text: str, says: str) -> None:
    with pytest.raises(tp.NotationError) as caught:
        tp.evaluate(text, x=np.ones(3))
    assert says in str(caught.value) and "^" in str(caught.value)


@pytest.mark.parametrize("exponent", ["-1", "2.5", "n", "(2)", "-n"])
def test_other_exponents_are_those_of_numpy(exponent: str) -> None:
    x = np.array([0.5, 1.0, 3.0])
    found = tp.evaluate(
        f"y[i] = x[i]**{exponent}", {"x": x, **({"n": 3} if "n" in exponent else {})}
    )
    np.testing.assert_allclose(found, x ** eval(exponent, {"n": 3}), rtol=1e-14)


def test_whole_numbers_to_exponents_below_zero() -> None:
    x, n = np.array([-2, -1, -1, 0, 1, 5]), np.array([-1, -2, -3, -1, -4, 2])
    expected = [0, 1, -1, 0, 1, 25]
    assert tp.evaluate("y[i] = x[i]**n[i]", x=x, n=n).tolist() == expected
    assert tp.evaluate_dense("y[i] = x[i]**n[i]", x=x, n=n).tolist() == expected


def test_a_caret_is_no_power() -> None:
    with pytest.raises(tp.OperandTypeError, match=r"a power is written x\[i\]\*\*2"):
        tp.evaluate("y[i] = x[i]^2", x=np.ones(3))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_powers_of_complex_numbers(dtype: str) -> None:
    z = np.array([1 + 2j, 0, -3j, 2, -1.5], dtype)
    w = np.array([0.5, 2 - 1j, 1j, 0, -2], dtype)
    near = 1e-5 if dtype == "complex64" else 1e-12
    for text, wanted in (
        ("y[i] = z[i]**2.5", z**2.5),
        ("y[i] = z[i]**w[i]", z**w),
        ("y[i] = z[i]**1j", z**1j),
        ("y[i] = 2**w[i]", 2**w),
        ("s = z[i]**(0.5 + 0j)", (z**0.5).sum()),
        ("y[i] = pow(z[i], 3)", z**3),
    ):
        given = {name: each for name, each in (("z", z), ("w", w)) if f"{name}[" in text}
        with np.errstate(all="ignore"):
            for found in (tp.evaluate(text, given), tp.evaluate_dense(text, given)):
                np.testing.assert_allclose(found, wanted, rtol=near, atol=near)
                assert np.asarray(found).dtype == dtype
    sparse = sp.coo_array(z)
    np.testing.assert_allclose(tp.evaluate("y[i] = z[i]**2.5", z=sparse).toarray(), z**2.5, near)


def test_powers_of_negative_numbers_are_numpys() -> None:
    x = np.array([-1.0, 4.0, 0.0, -8.0])
    with np.errstate(all="ignore"):
        for text, wanted in (("y[i] = x[i]**0.5", x**0.5), ("y[i] = x[i]**-1", x**-1.0)):
            np.testing.assert_array_equal(tp.evaluate(text, x=x), wanted)
        np.testing.assert_allclose(tp.evaluate("y[i] = x[i]**(1 + 0j)", x=x), x ** (1 + 0j))

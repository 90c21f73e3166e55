"""Affine and indirect subscripts: each kind over each kind of operand, against NumPy's indexing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.language.notation.parser import parse_assignment
from taco_py.language.notation.printer import to_text

RNG = np.random.default_rng(5)
x, w, v = RNG.random(20), RNG.random(4), RNG.random(4)
A, X, W = RNG.random((5, 7)), RNG.random((12, 13)), RNG.random((3, 2))
p, q = np.array([3, 1, 1, 0]), np.array([2, 0, 4])
P = RNG.integers(0, 19, (4, 3))
S = sp.random_array((9, 11), density=0.3, rng=RNG, format="csr")
T = sp.random_array((5, 6, 7), density=0.2, rng=RNG)
IMAGE = sp.csr_array(X * (X > 0.6))

TEXTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("y[i] = x[i+k] * w[k]", {"x": x, "w": w}, {}),
    ("y[i] = x[2*i+k] * w[k]", {"x": x, "w": w}, {}),
    ("y[i] = x[i+2*k] * w[k]", {"x": x, "w": w}, {}),
    ("y[i] = x[i-k+3] * w[k]", {"x": x, "w": w}, {}),
    ("y[i] = x[19-i]", {"x": x}, {}),
    ("y[i] = x[19-2*i] * x[i]", {"x": x}, {"shape": 10}),
    ("y[i,j] = A[i,j+1] - A[i,j]", {"A": A}, {"shape": (5, 6)}),
    ("y[j] = A[0,j]", {"A": A}, {}),
    ("y[i] = A[i,i+1]", {"A": A}, {}),
    ("y[i] = A[i,i] * S[i,i]", {"A": A[:5, :5], "S": S[:7, :7]}, {"shape": 4}),
    ("y[i,j] = X[i+k,j+l] * W[k,l]", {"X": X, "W": W}, {}),
    ("y[i,j] = X[i+k,j+l] * W[k,l]", {"X": IMAGE, "W": W}, {}),
    ("y[i] = x[i+k-1] * w[k]", {"x": x, "w": w[:3]}, {"border": "fill", "shape": 20}),
    ("y[i] = x[i-1]", {"x": x}, {"border": "fill", "shape": (25,)}),
    ("y[i] = x[1000*i-5]", {"x": x}, {"border": "fill", "shape": (3,)}),
    ("s = x[i+k] * w[k] * v[i]", {"x": x[:7], "w": w, "v": v}, {}),
    ("y[i,j] = A[p[i],j+1]", {"A": A, "p": p}, {}),
    ("y[j,i] = A[p[i],j]", {"A": A, "p": p}, {}),
    ("y[i] = v[i] * x[p[p[i]]]", {"v": v, "x": x, "p": p}, {}),
    ("y[i] = A[p[i],p[i]+1]", {"A": A, "p": p}, {}),
    ("y[i,j] = A[p[i],q[j]]", {"A": A, "p": p, "q": q}, {}),
    ("y[i] = V[i,k] * x[P[i,k]]", {"V": RNG.random((4, 3)), "x": x, "P": P}, {}),
    ("y[i] = V[i,k] * x[2*P[i,k]-5]", {"V": P, "x": x, "P": P}, {"border": "fill"}),
    ("y[i] = x[i+n[]]", {"x": x, "n": np.int64(3)}, {"shape": 4}),
    ("y[i,j] = S[i,j+1]", {"S": S}, {}),
    ("y[i,j] = S[i-1,j-2]", {"S": S}, {"border": "fill", "shape": (9, 20)}),
    ("y[i,j] = S[8-i,2*j+1]", {"S": S}, {}),
    ("y[j] = S[3,j]", {"S": S}, {}),
    ("y[i] = S[i,i+2]", {"S": S}, {}),
    ("y[i] = S[i,j] * x[j+i]", {"S": S, "x": x}, {}),
    ("y = x[2] * S[3,3]", {"S": S, "x": x}, {}),
    ("y[i] = S[i+1,3] / x[i]", {"S": S, "x": x[:8]}, {}),
    ("y[i,j] = S[p[i],2*j]", {"S": S, "p": p}, {}),
    ("y[i,k] = S[P[i,k]-8,k]", {"S": S, "P": P}, {"border": "fill"}),
    ("y[i,j] = S[p[i]+j,j]", {"S": S, "p": p}, {"shape": (4, 3)}),
    ("y[i] = S[i+k,j] * w[k] * x[j]", {"S": S, "w": w, "x": x[:11]}, {}),
    ("y[i,k] = T[i,2,k+1]", {"T": T}, {}),
    ("y[i,j] = T[p[i],j,k] * x[k+j]", {"T": T, "p": p, "x": x}, {}),
    ("y[i] = S[i,k] * w[k+1]", {"S": S[:, :3], "w": w}, {}),
    ("y[p[i]] += v[i]", {"p": p, "v": v, "y": np.ones(5)}, {}),
    ("y[p[i]] += v[i]", {"p": p, "v": v}, {"shape": 4}),
    ("y[q[i],j] += S[i,j]", {"q": q, "S": S[:3]}, {"shape": (5, 11)}),
    ("y[q[i],j] = S[i,j]", {"q": q, "S": S[:3]}, {"shape": (5, 11)}),
    ("y[q[i],q[i]] = v[i] - w[i]", {"q": q, "v": v[:3], "w": w[:3]}, {"shape": (5, 5)}),
    ("y[p[i],q[j]] += A[i,j]", {"p": p, "q": q, "A": A[:4, :3]}, {"shape": (4, 5)}),
    ("y[2*i+1] = x[i]", {"x": x}, {}),
    ("y[i+k] += v[i] * w[k]", {"v": v, "w": w}, {}),
    ("y[i,i+1] = x[i]", {"x": x}, {}),
    ("y[i-2] += x[i]", {"x": x}, {"border": "fill", "shape": 9}),
    ("y[P[i,k]] += V[i,k]", {"P": P, "V": RNG.random((4, 3))}, {"shape": 20}),
    ("y[0] = x[i]", {"x": x}, {}),
    ("h[p[i]] += 1", {"p": p}, {"shape": 5}),
    ("h[2*p[i]-1] += 1", {"p": p, "h": np.zeros(6, np.int64)}, {"border": "fill"}),
    ("h[P[i,k]] += 1", {"P": P, "h": np.zeros(20, np.float32)}, {}),
    ("h[p[i],q[j]] += 1", {"p": p, "q": q}, {"shape": (4, 5)}),
    ("h[p[i]] = 2", {"p": p[[0, 1, 3]]}, {"shape": 5}),
    ("y[p[i]] max= v[i]", {"p": p, "v": v, "y": np.full(5, 0.5)}, {}),
    ("y[p[i]] min= v[i] * w[i] - 1", {"p": p, "v": v, "w": w}, {"shape": 4}),
    ("y[p[i]-1] *= v[i]", {"p": p, "v": v}, {"shape": 4, "border": "fill"}),
    ("y[p[i],q[j]] max= A[i,j]", {"p": p, "q": q, "A": A[:4, :3]}, {"shape": (4, 5)}),
    ("y[p[i]] min= A[i,j]", {"p": p, "A": A[:4]}, {"shape": 4}),
    ("y[i+k] max= v[i] * w[k]", {"v": v, "w": w}, {}),
    ("y[q[i]] min= S[i,j]", {"q": q, "S": S[:3]}, {"shape": 5}),
    ("y[q[i],j] max= S[i,j] - 1", {"q": q, "S": S[:3]}, {"shape": (5, 11)}),
    ("y[q[i],j] *= S[i,j]", {"q": q, "S": S[:3], "y": np.full((5, 11), 2.0)}, {}),
    ("y[q[i]] max= exp(S[i,2])", {"q": q, "S": S[:3]}, {"shape": 5}),
    ("y[q[i]] *= S[i,j]", {"q": q, "S": S[:3, :1]}, {"shape": 5}),
    ("y[q[i]] *= S[i,j]", {"q": q, "S": sp.csr_array(np.eye(3, 2))}, {"shape": 5}),
    ("y[q[i]] min= 0", {"q": q, "y": np.full(5, 0.5)}, {}),
    ("y[p[i],j] += A[i,k] * X[k,j]", {"p": p, "A": A[:4], "X": X[:7]}, {"shape": (4, 13)}),
    ("y[i,j] = S[i,j]", {"S": S}, {"shape": (3, 4)}),
]  # fmt: skip


def as_array(result: Any) -> Any:
    if isinstance(result, tp.Tensor):
        return result.to_numpy()
    return result.toarray() if sp.issparse(result) else np.asarray(result)


def check(text: str, operands: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Compare twice with the oracle: the second call takes the short way."""
    wanted = tp.evaluate_dense(text, operands, **options)
    for _ in range(2):
        found = as_array(tp.evaluate(text, operands, **options))
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        near = 1e-5 if wanted.dtype.itemsize <= 4 or wanted.dtype == np.complex64 else 1e-12
        np.testing.assert_allclose(found, wanted, rtol=near, atol=near)


def stored(obj: Any, form: str) -> Any:
    """A sparse operand as SciPy or a Tensor stores it, or dense; other operands as they are."""
    if not sp.issparse(obj):
        return obj
    if form == "dense":
        return obj.toarray()
    if form == "tensor":
        return tp.tensor(obj, format="s" * obj.ndim)
    return obj.asformat(form) if obj.ndim == 2 else obj


@pytest.mark.parametrize(
    ("text", "operands", "options"), TEXTS, ids=[f"{text} {o or ''}" for text, _, o in TEXTS]
)
def test_against_the_oracle(text: str, operands: dict[str, Any], options: dict[str, Any]) -> None:
    check(text, operands, options)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["csc", "coo", "tensor", "dense"])
@pytest.mark.parametrize(
    ("text", "operands", "options"),
    [row for row in TEXTS if any(sp.issparse(obj) for obj in row[1].values())],
)
def test_in_other_formats(
    text: str, operands: dict[str, Any], options: dict[str, Any], form: str
) -> None:
    check(text, {name: stored(obj, form) for name, obj in operands.items()}, options)


def test_against_numpy() -> None:
    """The oracle itself, on what NumPy has functions for."""
    for compute in (tp.evaluate, tp.evaluate_dense):
        np.testing.assert_allclose(
            compute("y[i] = x[i+k] * w[k]", x=x, w=w), np.correlate(x, w, "valid")
        )
        np.testing.assert_allclose(compute("y[i+k] += v[i] * w[k]", v=v, w=w), np.convolve(v, w))
        np.testing.assert_allclose(
            compute("y[p[i]] += v[i]", v=v, p=p, y=np.ones(5)), 1 + np.bincount(p, v, 5)
        )
        np.testing.assert_allclose(compute("y[i,j] = A[p[i],q[j]]", A=A, p=p, q=q), A[np.ix_(p, q)])
        np.testing.assert_allclose(
            compute("y[i,j] = A[i,j+1] - A[i,j]", A=A, shape=(5, 6)), np.diff(A)
        )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float32", "complex64"])
def test_types_are_those_of_the_text_without_subscripts(dtype: str) -> None:
    a, b = (RNG.random(12) * 3).astype(dtype), (RNG.random(3) * 3).astype(dtype)
    check("y[i] = a[i+k] * b[k]", {"a": a, "b": b}, {})
    check("y[i] = a[i+2]", {"a": a}, {})
    check("y[p[i]] += a[i]", {"a": a[:4], "p": p}, {"shape": 4})
    check("y[q[i]] = a[i]", {"a": a[:3], "q": q}, {"shape": 6})
    check("y[p[i]] += a[i]", {"a": a[:4], "p": p, "y": np.ones(5, dtype)}, {})
    check("y[i,j] = D[i+1,j] * a[j]", {"D": sp.csr_array(np.diag(a)), "a": a}, {})


AT: dict[str, np.ufunc] = {
    "+=": np.add, "*=": np.multiply, "min=": np.minimum, "max=": np.maximum, "|=": np.bitwise_or,
    "&=": np.bitwise_and, "^=": np.bitwise_xor,
}  # fmt: skip
"""NumPy's functions for the operators of assignments."""


@pytest.mark.rotating(2)
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int64", "uint64", "float16", "float64"]
)
@pytest.mark.parametrize("operator", AT)
def test_what_meets_is_reduced_as_by_at(operator: str, dtype: str) -> None:
    if dtype.startswith("float") and AT[operator].nin and operator in ("|=", "&=", "^="):
        pytest.skip("bits are those of whole numbers")
    places, rng = np.array([3, 1, 1, 0, 3]), np.random.default_rng(3)
    values = (rng.integers(-9, 9, 5)).astype(dtype)
    begun = rng.integers(0, 4, 6).astype(dtype)
    wanted = begun.copy()
    AT[operator].at(wanted, places, values)
    texts = {f"d[p[i]] {operator} a[i]": {"a": values}}
    if dtype != "bool":
        texts[f"d[p[i]] {operator} 3"] = {}
    if dtype != "float16":
        texts[f"d[p[i]] {operator} s[i]"] = {"s": sp.coo_array(values)}
    for text, operands in texts.items():
        check(text, {"p": places, "d": begun, **operands}, {})
        check(text, {"p": places, **operands}, {"shape": 6})
        found = as_array(tp.evaluate(text, p=places, d=begun, **operands))
        if operands:
            assert found.dtype == wanted.dtype and np.array_equal(found, wanted)
            out = begun.copy()
            tp.evaluate(text, p=places, out=out, **operands)
            assert np.array_equal(out, wanted)
            empty = as_array(tp.evaluate(text, p=places, shape=6, **operands))[[2, 4, 5]]
            assert np.array_equal(
                empty, np.full(3, AT[operator].reduce(empty[:0], initial=empty[0]))
            )


def test_what_meets_in_the_type_that_is_asked_for() -> None:
    """No largest number of whole ones is left where nothing meets."""
    found = tp.evaluate(
        "d[p[i]] min= n[i]", p=p, n=np.arange(4), shape=5, dtype="float32", casting="unsafe"
    )
    assert found.tolist() == [3.0, 1.0, np.inf, 0.0, np.inf] and found.dtype == np.float32
    for own in (np.float32, np.int8):
        assert tp.evaluate("d[p[i]] += 1", p=p, d=np.zeros(5, own)).dtype == own
        half = tp.evaluate("d[p[i]] max= a[i] * s", p=p, a=np.ones(4, own), s=2, d=np.zeros(5, own))
        assert half.dtype == own and half.tolist() == [2, 2, 0, 2, 0]
    with pytest.raises(tp.NumberOverflowError, match="found 300"):
        tp.evaluate("d[p[i]] max= 300", p=p, d=np.zeros(5, np.int8))


def test_functions_of_users_reduce_what_meets() -> None:
    tp.function(
        "either", lambda x, y: x + y - x * y, associative=True, commutative=True, identity=0
    )
    check("y[p[i]] either= v[i]", {"p": p, "v": v, "y": np.full(5, 0.25)}, {})
    check("y[q[i],j] either= S[i,j]", {"q": q, "S": S[:3]}, {"shape": (5, 11)})


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32", "uint64"])
def test_positions_of_any_integer_type(kind: str) -> None:
    check("y[i] = x[p[i]+1]", {"x": x, "p": p.astype(kind)}, {})
    check("y[p[i]] += v[i]", {"v": v, "p": p.astype(kind)}, {"shape": 4})


def test_nothing_of_an_operand_is_added_where_nothing_is_stored() -> None:
    """Outside of a sparse operand nothing is stored, so that an infinity beside it counts not."""
    b = np.array([np.inf, 2.0, 3.0])
    check("y[i,j] = S[i,j-1] * b[j]", {"S": S, "b": b}, {"border": "fill"})
    check("y[i+k] += a[i] * b[k]", {"a": np.array([1.0, np.inf, 2.0]), "b": b}, {})
    check("y[q[i]] = b[i]", {"b": b, "q": q}, {"shape": 6})


def test_modes_of_size_1_are_read_at_their_one_element() -> None:
    mean, row = A.mean(axis=1, keepdims=True), A[:1]
    for compute in (tp.evaluate, tp.evaluate_dense):
        np.testing.assert_allclose(compute("Y[i,j] = A[i,j] - m[i,j]", A=A, m=mean), A - mean)
    check("Y[i,j] = A[i,j] * r[i,j] + m[i,j]", {"A": A, "r": row, "m": mean}, {})
    check("Y[i,j] = m[i,j] * r[i,j]", {"r": row, "m": mean}, {})
    check("y[i] = A[i,j] * r[k,j] * B[k,i]", {"A": A, "r": row, "B": X[:4, :5]}, {})
    check("y[i] += x[i]", {"y": x, "x": x[:1]}, {})
    for form in ("csr", "csc", "coo", "tensor"):
        column = stored(S[:, [2]], form)
        check("Y[i,j] = S[i,j] * m[i,j]", {"S": S, "m": column}, {})
    check("y[i] = x[i] * A[i,i+1]", {"x": x[:1], "A": A}, {})
    told = tp.explain("Y[i,j] = A[i,j] - m[i,j]", A=A, m=mean, frontier_budget=0)
    assert "m[i,0]: a view" in told
    with pytest.raises(tp.DimensionError, match="Expected one size for index j"):
        tp.evaluate("Y[i,j] = A[i,j] - m[i,j]", A=A, m=A[:, :2])
    with pytest.raises(tp.DimensionError, match="Expected one size for index i"):
        tp.evaluate("y[i] = x[i] * D[i,i]", x=x, D=A[:1])


ONES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("y[i] = x[i] * u[i]", {}),
    ("y[i] = x[i] + u[i]", {}),
    ("Y[i,j] = S[i,j] * C[i,j]", {}),
    ("Y[i,j] = S[i,j] * c[i,j]", {}),
    ("y[i] = S[i,j] * C[i,j] * x[j]", {}),
    ("y[i] = x[i] + 2 * stored(u[i])", {"arithmetic": True}),
    ("Y[i,j] = S[i,j] + stored(C[i,j])", {"arithmetic": True}),
    ("y[i] = count(j, stored(c[i,j]) * stored(S[i,j]))", {"arithmetic": True}),
    ("y[i] = x[i] / u[i] + stored(u[i])", {"arithmetic": True}),
)


@pytest.mark.rotating(2)
@pytest.mark.parametrize("semiring", [None, "min_plus", "max_times", "plus_pair", "or_and"])
@pytest.mark.parametrize("has", [False, True])
@pytest.mark.parametrize(("text", "notes"), ONES, ids=[text for text, _ in ONES])
def test_sparse_modes_of_size_1_are_absent_or_not(
    text: str, notes: dict[str, Any], has: bool, semiring: str | None
) -> None:
    """What an operand of one element does not store is absent wherever it is read."""
    if semiring is not None and notes:
        pytest.skip("semirings give + and * a meaning alone")
    u, whole = np.array([3.0 * has]), np.array([[3.0 * has]])
    column = sp.csr_array(np.where(np.arange(9) % 3, 2.0, 0.0).reshape(9, 1))
    options = {} if semiring is None else {"semiring": semiring}
    for form in ("coo", "tensor"):
        sparse = {"u": sp.coo_array(u), "C": sp.csr_array(whole).asformat("coo")}
        if form == "tensor":
            sparse = {"u": tp.tensor(u, format="s"), "C": tp.tensor(whole, format="ss")}
        given = {**sparse, "S": S, "c": column, "x": x[:11] if "x[j]" in text else x}
        used = {name: each for name, each in given.items() if f"{name}[" in text}
        wanted = tp.evaluate_dense(text, used, **options)
        for _ in range(2):
            found = as_array(tp.evaluate(text, used, format="d" * wanted.ndim, **options))
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted)


def test_empty_ranges() -> None:
    check("y[i] = x[i+k] * w[k]", {"x": x[:2], "w": w}, {})
    check("y[p[i]] += v[i]", {"p": p[:0], "v": v[:0]}, {"shape": 3})
    check("y[i,j] = S[p[i],j]", {"p": p[:0], "S": S}, {})
    check("y[i,j] = S[i,j+1]", {"S": sp.csr_array((3, 1))}, {})
    check("y[i+1] = x[i]", {"x": x[:0]}, {})


BEYOND: list[tuple[str, dict[str, Any], str]] = [
    ("y[i] = x[i+21]", {"x": x}, "from 0 to 19 in mode 0 of x, found i+21 from 21 on"),
    ("s = x[3*i+21]", {"x": sp.coo_array(x)}, "found 3*i+21 from 21 on"),
    ("y[i] = x[i+k+40] * w[k]", {"x": x, "w": w}, "found i+k+40 from 40 on, with k below 4"),
    ("y[i] = x[-i-3]", {"x": x}, "found -i-3 from -3 down"),
    ("y[i] = A[i,i+9]", {"A": A}, "from 0 to 6 in mode 1 of A, found i+9 from 9 on"),
    ("y[i] = x[i+21]; z[i] = y[i] * 2", {"x": x}, "found i+21 from 21 on"),
]


@pytest.mark.parametrize(("text", "operands", "says"), BEYOND)
def test_no_range_begins_beyond_the_end(text: str, operands: dict[str, Any], says: str) -> None:
    for call in (tp.evaluate, tp.explain, tp.evaluate_dense):
        with pytest.raises(tp.DimensionError) as caught:
            call(text, operands)
        assert call is tp.evaluate_dense or says in caught.value.message
    if text.startswith("y[i]") and ";" not in text:
        check(text, operands, {"border": "fill", "shape": 3})


def test_ranges_that_begin_at_the_end_are_empty() -> None:
    for text in ("y[i] = x[i+20]", "y[i] = x[i+k+20] * w[k]", "s = x[i+20]"):
        check(text, {"x": x, "w": w} if "w" in text else {"x": x}, {})
    check("y[i] = x[i+21]", {"x": x[:0]}, {})
    check("y[i] = x[i+k+40] * w[k]", {"x": x, "w": w[:0]}, {})


def test_operands_of_any_strides() -> None:
    wide = RNG.random((24, 26))
    for each in (wide[::2, ::2], wide[::2, ::2].T, wide[::-2, 25::-2], np.asfortranarray(X)):
        check("y[i,j] = X[i+k,j+l] * W[k,l]", {"X": each, "W": W}, {})
        check("y[i] = X[i,p[i]]", {"X": each[:4], "p": p}, {})
        check("y[i,j] = X[i+1,j-1]", {"X": each}, {"border": "fill", "shape": (13, 12)})


def test_out_is_written_and_begun_from() -> None:
    out = np.ones(5)
    assert tp.evaluate("y[p[i]] += v[i]", p=p, v=v, out=out) is out
    np.testing.assert_allclose(out, 1 + np.bincount(p, v, 5))
    for _ in range(2):
        out = np.empty(17)
        assert tp.evaluate("y[i] = x[i+k] * w[k]", x=x, w=w, out=out) is out
        np.testing.assert_allclose(out, np.correlate(x, w, "valid"))
    short = np.empty(3)  # its size is the one that nothing else says
    tp.evaluate("y[i] = x[i+k]*w[k] * 1", x=x, w=w, out=short, shape=(3,))
    np.testing.assert_allclose(short, np.correlate(x, w, "valid")[:3])


def test_the_operands_are_not_written_to() -> None:
    given = {"x": x.copy(), "w": w.copy(), "p": p.copy(), "S": S.copy()}
    tp.evaluate("y[i] = x[i+k] * w[k]", x=given["x"], w=given["w"])
    tp.evaluate("y[i,j] = S[p[i],j+1]", S=given["S"], p=given["p"])
    assert np.array_equal(given["x"], x) and np.array_equal(given["w"], w)
    assert np.array_equal(given["p"], p) and (given["S"] != S).nnz == 0


def test_dense_windows_are_views_and_explained() -> None:
    told = tp.explain("y[i] = x[i+k] * w[k]", x=x, w=w, frontier_budget=0)
    assert "x_at_i_k[k,i] is x[i+k]: a view" in told
    told = tp.explain("y[i,j] = S[i,j+1]", S=S, frontier_budget=0)
    assert f"is S[i,j+1]: a copy of {(S[:, 1:]).nnz} entries from {S.nnz}" in told
    told = tp.explain("y[p[i]] += v[i]", p=p, v=v, shape=4, frontier_budget=0)
    assert "y_at_p_i[r0,i] is 1 where r0 = p[i]: 4 entries" in told


def test_later_calls_look_at_positions_again() -> None:
    """The short way is taken only after all positions were found inside."""
    positions = p.copy()
    for _ in range(3):
        tp.evaluate("y[i] = x[p[i]] + 1", x=x, p=positions)
    positions[2] = 20
    with pytest.raises(tp.DimensionError, match=r"p\[2\] = 20"):
        tp.evaluate("y[i] = x[p[i]] + 1", x=x, p=positions)


MISTAKES: list[tuple[Callable[[], Any], type[tp.TacoError], str]] = [
    (
        lambda: tp.evaluate("y[i] = x[p[i]]", x=x[:3], p=p), tp.DimensionError,
        "Expected positions from 0 to 2 in mode 0 of x, found p[0] = 3 in x[p[i]]\n"
        "  y[i] = x[p[i]]\n         ^^^^^^^\n",
    ),
    (
        lambda: tp.evaluate("y[i] = x[p[i]+5]", x=x[:7], p=p), tp.DimensionError,
        "found 8, for p[0] = 3, in x[p[i]+5]",
    ),
    (
        lambda: tp.evaluate("y[i,j] = S[p[i],j]", S=S, p=-p), tp.DimensionError,
        "found p[0] = -3 in S[p[i],j]",
    ),
    (
        lambda: tp.evaluate("y[i] = x[p[p[i]]]", x=x, p=p + 1), tp.DimensionError,
        "Expected positions from 0 to 3 in mode 0 of p, found p[0] = 4 in p[p[i]]",
    ),
    (
        lambda: tp.evaluate("y[p[i]] += v[i]", p=p, v=v, shape=3), tp.DimensionError,
        "Expected positions from 0 to 2 in mode 0 of y, found p[0] = 3 in y[p[i]]",
    ),
    (
        lambda: tp.evaluate("y[p[i]] = v[i]", p=p, v=v, shape=4), tp.OperandError,
        "found y[1] 2 times in y[p[i]]",
    ),
    (
        lambda: tp.evaluate("y[p[i]] += v[i]", p=p, v=v), tp.DimensionError,
        "hint: say it by shape=, by out=, or by y= to add to",
    ),
    (
        lambda: tp.evaluate("y[i] = x[i-1]", x=x), tp.DimensionError,
        "found i-1 from -1 to",
    ),
    (
        lambda: tp.evaluate("y[j] = A[-1,j]", A=A), tp.DimensionError,
        "Expected positions from 0 to 4 in mode 0 of A, found -1\n",
    ),
    (
        lambda: tp.evaluate("y[i] = x[i+1]", x=x, shape=20), tp.DimensionError,
        "found i+1 from 1 to 20, with i below 20",
    ),
    (
        lambda: tp.evaluate("y[i] = x[i+k]", x=x), tp.DimensionError,
        "Expected a size for index i, found it in x[i+k] alone",
    ),
    (
        lambda: tp.evaluate("y[i] = x[i+k] * w[k]", x=x, w=w, border="fill"), tp.DimensionError,
        'border="fill", which sets no bound',
    ),
    (
        lambda: tp.evaluate("y[i] = x[w[i]]", x=x, w=w), tp.OperandTypeError,
        "Expected a dense array of integers for w, found float64",
    ),
    (
        lambda: tp.evaluate("y[i] = x[p[i]]", x=x, p=sp.csr_array([[1]])[0]), tp.TacoError,
        "Expected a dense array of integers for p",
    ),
    (
        lambda: tp.evaluate("y[i] = x[q[i]]", x=x, p=p), tp.OperandError,
        "Expected an operand q",
    ),
    (
        lambda: tp.evaluate("y[i] = A[i+1]", A=A), tp.OperandError,
        "Expected 2 subscripts for A, whose shape is (5, 7), found 1",
    ),
    (
        lambda: tp.evaluate("y[i] = y[i+1]", y=x), tp.NotationError,
        "Expected operands other than the result",
    ),
    (
        lambda: tp.evaluate("y[i] += x[i]", y=x, x=x, shape=3), tp.DimensionError,
        "shape= says",
    ),
    (
        lambda: tp.evaluate("y[i,j] = x[i] * w[j] * A[j,i]", x=x, w=w, A=A, shape=(8, 4)),
        tp.DimensionError,
        "Expected positions from 0 to 6 in mode 1 of A",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "says"), MISTAKES, ids=[says for *_, says in MISTAKES])
def test_mistakes_are_told_before_any_work(
    call: Callable[[], Any], kind: type[tp.TacoError], says: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert says in str(caught.value)


# ---------------------------------------------------------------- drawn at random


@st.composite
def subscripts(draw: st.DrawFn) -> str:
    """A subscript over i, j and k: affine, or through p."""
    name = draw(st.sampled_from("ijk"))
    text = draw(st.sampled_from([name, name, f"p[{name}]", f"2*{name}", f"-{name}"]))
    if draw(st.booleans()):
        text += draw(st.sampled_from(["+i", "+k", "-j", "+p[i]"]))
    return text + draw(st.sampled_from(["", "", "+1", "-1", "+4"]))


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A text, operands that are small, and options."""
    sizes = {name: draw(st.integers(0, 4)) for name in "ijk"}
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    most = max(sizes.values())
    operands: dict[str, Any] = {"p": rng.integers(-1, 6, most)}
    table = np.where(rng.random((6, 5)) < 0.5, rng.integers(-3, 9, (6, 5)), 0).astype(float)
    form = draw(st.sampled_from(["dense", "csr", "csc", "coo", "tensor"]))
    operands["B"] = stored(sp.csr_array(table), form)
    pins = []
    for name, size in sizes.items():
        operands[f"u{name}"] = rng.integers(1, 5, size).astype(float)
        pins.append(f"u{name}[{name}]")
    read = f"B[{draw(subscripts())},{draw(subscripts())}]"
    target = draw(st.sampled_from(["y[i,j]", "y[j]", "y", "y[k,i]", "y[j+1,2*k]", "y[p[i],j]"]))
    operator = draw(st.sampled_from(["=", "+=", "min=", "*="]))
    text = f"{target} {operator} {' * '.join(pins)} * {read}"
    options: dict[str, Any] = {"border": draw(st.sampled_from(["fill", "fill", "error"]))}
    if "+1" in target or "[p" in target:
        options["shape"] = (6, 7)
    return text, operands, options


@settings(max_examples=60, deadline=None)
@given(calls())
def test_random_subscripts(call: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
    """The result is the oracle's, or both refuse."""
    text, operands, options = call
    if "p[" not in text:
        del operands["p"]
    else:
        size = {operands[f"u{name}"].size for name in "ijk" if f"p[{name}]" in text}
        operands["p"] = operands["p"][: min(size)]
    try:
        wanted = tp.evaluate_dense(text, operands, **options)
    except tp.TacoError:
        with pytest.raises(tp.TacoError):
            tp.evaluate(text, operands, **options)
        return
    found = as_array(tp.evaluate(text, operands, **options))
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted)


@given(st.lists(subscripts(), min_size=1, max_size=3))
def test_what_prints_parses_back(modes: list[str]) -> None:
    read = parse_assignment(f"y = A[{','.join(modes)}]")
    assert parse_assignment(to_text(read)) == read

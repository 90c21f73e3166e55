"""Kernels of texts with subscripts, against the same texts with data at hand."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import to_dense

RANDOM = np.random.default_rng(4)
X, W, V = RANDOM.random(50), RANDOM.random(5), RANDOM.random(30)
P = RANDOM.integers(0, 20, 30)
A = sp.random_array((20, 31), density=0.3, rng=RANDOM, format="csr")
OPERANDS: dict[str, Any] = {
    "x": X, "w": W, "v": V, "p": P, "A": A, "S": A[:, :20].tocsr(), "z": X[:31],
    "y": np.ones(20), "I": RANDOM.random((9, 8)), "K": RANDOM.random((3, 2)),
}  # fmt: skip
FORMATS: dict[str, Any] = {
    "x": "d", "w": "d", "v": "d", "p": "d", "A": "csr", "S": "csr", "z": "d", "y": "d", "I": "dd",
    "K": "dd",
}  # fmt: skip
TEXTS: list[tuple[str, str, dict[str, Any]]] = [
    ("y[i] = x[i+k] * w[k]", "xw", {}),
    ("B[i,j] = I[i+k,j+l] * K[k,l]", "IK", {}),
    ("y[i] = x[2*i+1]", "x", {}),
    ("y[i] = x[p[i]]", "xp", {}),
    ("y[i] = x[i+1] * i", "x", {}),
    ("y[i] = x[i] * i", "x", {}),
    ("y[i] = A[i,j] * (j >= i) / size(j)", "A", {}),
    ("y[i] = x[i-1] + x[i+1]", "x", {"border": "fill", "shape": 50}),
    ("z[i,j] = A[p[i],j+1]", "Ap", {}),
    ("z[i,j] = A[p[i],j]", "Ap", {}),
    ("y[i] = A[i,j+1] * v[j]", "Av", {}),
    ("y[i] = A[p[i],j] * z[j]", "Apz", {"semiring": "min_plus"}),
    ("y[i] = max(j, A[i,j+1])", "A", {}),
    ("y[i] = A[i,3]", "A", {}),
    ("s = S[i,i]", "S", {}),
    ("y[p[i]] += v[i]", "pvy", {}),
    ("y[p[i]] += v[i]", "pvy", {"shape": 20}),
]


@pytest.mark.parametrize(("text", "names", "options"), TEXTS)
def test_kernel(text: str, names: str, options: dict[str, Any]) -> None:
    operands = {name: OPERANDS[name] for name in names}
    kernel = tp.compile(text, {name: FORMATS[name] for name in names}, **options)
    wanted = to_dense(tp.evaluate(text, operands, **options))
    assert kernel.source
    for each in (kernel, kernel, pickle.loads(pickle.dumps(kernel))):
        np.testing.assert_allclose(to_dense(each(**operands)), wanted, rtol=1e-12)
    half = {n: obj[: len(obj) // 2] if n in ("x", "p", "v") else obj for n, obj in operands.items()}
    sizes = "shape" not in options or "i" not in text
    if sizes and len({len(half[n]) for n in names if n in ("p", "v")}) < 2 and "A" not in names:
        np.testing.assert_allclose(to_dense(kernel(**half)), to_dense(tp.evaluate(text, half)))


def test_views_are_not_copied() -> None:
    """One kernel over the view, whose strides are those of the operand."""
    kernel = tp.compile("y[i] = x[2*i] * 2", x="d")
    assert "_stride" in kernel.source
    assert "a view" in kernel.explain()
    assert len(kernel.kernels) == 1
    kernel(x=X)
    assert len(kernel.kernels) == 1


def test_out() -> None:
    kernel = tp.compile("y[i] = x[i+k] * w[k]", x="d", w="d")
    out = np.empty(46)
    assert kernel(x=X, w=W, out=out) is out
    np.testing.assert_allclose(out, np.convolve(X, W[::-1], "valid"))
    adds = tp.compile("y[p[i]] += v[i]", p="d", v="d")
    out = np.ones(20)
    adds(p=P, v=V, out=out)
    np.testing.assert_allclose(out, 1 + np.bincount(P, V, 20))


def test_arrays_say_their_sizes() -> None:
    text = "y[i] = x[49-i]"
    with pytest.raises(tp.DimensionError, match="taken to compile for"):
        tp.compile("y[i] = x[i-1]", x="d")
    np.testing.assert_array_equal(tp.compile(text, x=X)(x=X), X[::-1])


def test_masks() -> None:
    kernel = tp.compile("y[i] = x[i+k] * w[k]", x="d", w="d", mask="d")
    mask = RANDOM.random(46) < 0.5
    wanted = tp.evaluate("y[i] = x[i+k] * w[k]", x=X, w=W, mask=mask.astype(float))
    np.testing.assert_allclose(kernel(x=X, w=W, mask=mask.astype(float)), wanted)


def test_user_functions_replaced() -> None:
    """A kernel keeps the function that it was compiled for."""
    tp.function("twice", lambda x: x * 2, replace=True)
    kernel = tp.compile("y[i] = twice(x[i+1])", x="d")
    tp.function("twice", lambda x: x * 3, replace=True)
    np.testing.assert_allclose(kernel(x=X), X[1:] * 2)
    np.testing.assert_allclose(tp.compile("y[i] = twice(x[i+1])", x="d")(x=X), X[1:] * 3)


def test_calls_are_checked() -> None:
    kernel = tp.compile("y[i] = x[p[i]]", x="d", p="d")
    with pytest.raises(tp.DimensionError, match=r"found p\[0\] = "):
        kernel(x=X, p=P + 100)
    with pytest.raises(tp.OperandTypeError, match="Expected p of dtype int64"):
        kernel(x=X, p=P * 1.0)
    with pytest.raises(tp.OperandError, match="Expected an operand p, found x"):
        kernel(x=X)
    with pytest.raises(tp.OperandError, match="found q besides"):
        kernel(x=X, p=P, q=P)
    rows = tp.compile("y[i] = A[p[i],j]", A="csr", p="d")
    with pytest.raises(tp.FormatError, match="Expected A in the format ds"):
        rows(A=A.tocsc(), p=P)
    with pytest.raises(tp.OperandError, match="Expected border to be one of"):
        tp.compile("y[i] = x[i+1]", x="d", border="wrap")
    with pytest.raises(tp.NotationError, match="under semiring= or mask="):
        tp.compile("y[p[i]] += v[i]", p="d", v="d", semiring="min_plus")


FILLED = {
    "y[i] = A[i,j] * x[j+1]": {"x": np.arange(6.0)},
    "y[i] = A[p[i],j] * x[j]": {"x": np.arange(5.0), "p": np.array([1, 1, 3])},
    "y[i] = A[i+1,j] * A[i,j]": {},
    "t[j] = x[j] * 2; C[i,j] = A[p[i],j] + t[j]": {"x": np.arange(5.0), "p": np.array([2, 0])},
}


@pytest.mark.parametrize("form", ["ds", "ss", "uq", "sell(2)"])
@pytest.mark.parametrize("text", FILLED)
def test_operands_with_a_fill_value(text: str, form: str, tmp_path: Path) -> None:
    values = np.where(np.arange(30).reshape(6, 5) % 3 == 0, np.arange(30).reshape(6, 5) + 1.0, 2)
    filled = tp.tensor(values, format=form, fill_value=2.0)
    plain = tp.tensor(values - 2, format=form)
    given: dict[str, Any] = {"A": filled, **FILLED[text]}
    options: dict[str, Any] = {"border": "fill"} if "A[i+1" in text else {}
    kernel = tp.compile(text, given, **options)
    np.testing.assert_array_equal(
        to_dense(kernel(**given)), tp.evaluate_dense(text, given, **options)
    )
    if form != "uq":  # which kernels convert, and files do not
        assert kernel.export(tmp_path, given)
    with pytest.raises(tp.FormatError, match=r"A with the fill value 2.0 .* found 0.0"):
        kernel(**{**given, "A": plain})
    with pytest.raises(tp.FormatError, match=r"A with the fill value 0.0 .* found 2.0"):
        tp.compile(text, {**given, "A": plain}, **options)(**given)

"""Subscripts beside fill values, functions, reductions, several statements, semirings and masks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

RNG = np.random.default_rng(11)
x, w = RNG.random(10) - 0.5, RNG.random(3)
p = np.array([3, 1, 2])
A = sp.random_array((6, 7), density=0.4, rng=RNG, format="csr")
LOW = tp.tensor(A, fill_value=-np.inf)
TWO = tp.tensor(A, fill_value=2.0)
HIGH = tp.tensor(A, fill_value=np.inf)
DENSE = tp.tensor(tp.tensor(A.toarray()), fill_value=7.0)
M = sp.csr_array(RNG.random((6, 6)) < 0.5)
FILL = {"border": "fill"}

TEXTS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("y[i] = exp(x[i+1])", {"x": x}, {}),
    ("y[i] = max(k, x[i+k] * w[k])", {"x": x, "w": w}, {}),
    ("y[i] = max(x[i+1], 0.1)", {"x": x}, {}),
    ("y[i] = max(j, S[i,j+1])", {"S": LOW}, {}),
    ("y[i,j] = max(A[p[i],j], x[j+3])", {"A": A, "p": p, "x": x}, {}),
    ("y[i,j] = F[i-1,j]", {"F": TWO}, {**FILL, "shape": (7, 7)}),
    ("y[i,j] = F[i,j+1]", {"F": TWO}, {**FILL, "shape": (6, 9)}),
    ("y[i,j] = 2 * F[p[i],j]", {"F": TWO, "p": p}, {}),
    ("y[i,j] = F[p[i],j]", {"F": TWO, "p": np.array([1, 9, -1])}, FILL),
    ("y[i] = F[i,i+1]", {"F": TWO}, {}),
    ("y[i,j] = exp(F[i+1,2*j])", {"F": TWO}, {}),
    ("s = F[1,1]", {"F": TWO}, {}),
    ("y[i,j] = D[i,j+1]", {"D": DENSE}, {**FILL, "shape": (6, 9)}),
    ("y[i,j] = D[p[i],j]", {"D": DENSE, "p": np.array([0, 8])}, FILL),
    ("d[i] = A[i,j+1] * x[j]", {"A": A, "x": x[:6]}, {"semiring": "min_plus"}),
    ("d[i] = H[p[i],j] * x[j]", {"H": HIGH, "p": p, "x": x[:7]}, {"semiring": "min_plus"}),
    ("d[i] = A[i,j] * x[j]", {"A": A, "x": x[:1]}, {"semiring": "max_plus"}),
    ("d[i,j] = A[i,j+1] * x[j]", {"A": A, "x": x[:6]}, {"mask": M}),
    ("d[i,j] = A[i,j+1] * x[j]", {"A": A, "x": x[:6]}, {"mask": tp.complement(M)}),
    ("y[i] = x[i] * i", {"x": x}, {}),
    ("y[i] = x[i] * i", {"x": x, "i": 2.5}, {}),
    ("y[i] = x[i] * size(i)", {"x": x, "size": x}, {}),
    ("y[i] = x[i+1] * i - i", {"x": x}, {}),
    ("y[i] = i", {}, {"shape": 4}),
    ("y[i,j] = (A[i,j] + 1) * (i == j)", {"A": A}, {}),
    ("y[i,j] = A[i,j] * (j > i)", {"A": A}, {}),
    ("y[i,j] = F[i,j] * j", {"F": TWO}, {}),
    ("m[i] = A[i,j] / size(j)", {"A": A}, {}),
    ("s = sum(i, i * x[i])", {"x": x}, {}),
    ("s = sum(i, x[i]) / size(i)", {"x": x}, {}),
    ("y[p[i]] += x[i] * i", {"x": x[:3], "p": p}, {"shape": 5}),
    ("m[i] = max(j, where(A[i,j] > 0.5, j, -1))", {"A": A}, {}),
    ("d[i] = A[i,j] * j", {"A": A}, {"semiring": "min_plus"}),
]


def as_array(result: Any) -> Any:
    if isinstance(result, tp.Tensor):
        return result.to_numpy()
    return result.toarray() if sp.issparse(result) else np.asarray(result)


@pytest.mark.parametrize(("text", "operands", "options"), TEXTS)
def test_as_the_oracle(text: str, operands: dict[str, Any], options: dict[str, Any]) -> None:
    wanted = tp.evaluate_dense(text, operands, **options)
    for _ in range(2):
        found = as_array(tp.evaluate(text, operands, **options))
        assert found.shape == wanted.shape and found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


def test_a_window_has_the_fill_value_of_its_operand() -> None:
    found = tp.evaluate("y[i,j] = F[i,j+1]", F=TWO)
    assert isinstance(found, tp.Tensor) and found.fill_value == 2.0 and found.nnz < 36


SEVERAL: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("d[i] = x[i+1] * x[i+2]; s = d[i] * d[i]", {"x": x}, {"outputs": ("d", "s")}),
    ("a[i,j] = F[i,j+1]; b[i] = max(j, a[i,j])", {"F": TWO}, {"outputs": ("a", "b")}),
    ("a[i,j] = A[p[i],j]; b[i] = a[i,j] * x[j+3]", {"A": A, "p": p, "x": x}, {}),
    ("y[i] += x[i+1]; z[i] = y[i] * 2", {"x": x, "y": np.ones(9)}, {"outputs": ("y", "z")}),
    ("a[i] = A[i,j] * x[j-2]; b[i] = a[i] * x[i]", {"A": A, "x": x[:6]}, FILL),
    ("a[i] = A[i,j] * c[j]; b[i] = a[i] * 2", {"A": A, "c": x[:1]}, {}),
    ("a[i] = x[i] * i; b = a[i] * size(i)", {"x": x}, {"outputs": ("a", "b")}),
    ("a[i] = x[i+1]; b[i] = a[i] * x_at_i_1[i]", {"x": x, "x_at_i_1": np.arange(9.0)}, {}),
]


@pytest.mark.parametrize(("text", "operands", "options"), SEVERAL)
def test_statements_as_the_oracle(
    text: str, operands: dict[str, Any], options: dict[str, Any]
) -> None:
    wanted = tp.evaluate_dense(text, operands, **options)
    for _ in range(2):  # the second call takes the short way
        found = tp.evaluate(text, operands, **options)
        several = isinstance(wanted, tuple)
        pairs = zip(found, wanted, strict=True) if several else [(found, wanted)]
        for one, other in pairs:
            np.testing.assert_allclose(as_array(one), other, rtol=1e-12, atol=1e-12)


def test_explain_says_what_is_made_for_statements() -> None:
    told = tp.explain("d[i] = x[i+1] * x[i+2]; s = d[i] * d[i]", x=x)
    assert "x_at_i_1[i] is x[i+1]: a view" in told and "results   s" in told


X3 = x[:3]
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("y[i] = i * 2", {}, {}, "Expected a?\\s?sizes? for"),
    ("y[i] = x[i] * k", {"x": x}, {}, "Expected an operand k"),
    ("a[i] = x[i]; b[i] = a[i+1]", {"x": x}, {}, "Expected all of a"),
    ("y[p[i]] += x[i]; z[i] = y[i]", {"p": p, "x": X3}, {}, "of a statement among several"),
    ("a[i] = x[i]; b[i] = a[i]", {"x": x}, {"shape": 3}, "no shape= for several statements"),
    ("y[p[i]] += x[i]", {"p": p, "x": X3}, {"shape": 5, "semiring": "min_plus"}, "under semiring="),
    ("a[i] = x[i+1]; b[i] = q[i]", {"x": x}, {}, "Expected an operand q"),
    ("a[i] = x[i+1]; b[i] = a[i]", {"x": x, "q": x}, {}, "found q besides"),
]


COMPUTED = [
    "a[i] = argmax(j, A[i,j]); y[i] = x[{a[i]}]",
    "a[i] = p[i]; y[i] = x[{a[i]}+1]",
    "a[i] = p[i]; y[i] = x[2*{a[i]}] * x[i]",
    "a[i] = argmax(j, A[i,j]); R[i,j] = A[{a[i]},j]",
    "a[i] = p[i]; R[i,j] = A[i,{a[j]}]",
    "a[i] = p[i]; R[i,j] = B[{a[i]},j]",
    "a[i] = p[i]; y[i] = x[p[{a[i]}]]",
    "a[i] = p[i]; b[i] = a[i]; s = sum(i, B[{b[i]},{a[i]}])",
    "a[i] = p[i]; a[i] += p[i]; y[i] = x[{a[i]}]",
]


@pytest.mark.parametrize("text", COMPUTED)
def test_positions_are_operands(text: str) -> None:
    """Braces are around what is wrong."""
    wrong = text.partition("{")[2].partition("}")[0]
    written = text.replace("{", "").replace("}", "")
    mine = {"A": A, "B": A.toarray(), "p": p, "x": x}
    operands = {name: array for name, array in mine.items() if f"{name}[" in written}
    for call in (tp.evaluate, tp.explain, tp.evaluate_dense):
        with pytest.raises(tp.OperandError, match="Expected an operand for positions") as caught:
            call(written, operands)
        assert f"found {wrong}, which an earlier statement assigns" in caught.value.message
        assert caught.value.span is not None
        assert f"compute {wrong[0]} in a call of its own" in str(caught.value.hint)


@pytest.mark.parametrize(("text", "operands", "options", "says"), REFUSED)
def test_refused(text: str, operands: dict[str, Any], options: dict[str, Any], says: str) -> None:
    for call in (tp.evaluate, tp.explain, tp.evaluate_dense):
        with pytest.raises(tp.TacoError, match=says) as caught:
            call(text, operands, **options)
        assert caught.value.hint or call is tp.evaluate_dense


@pytest.mark.parametrize("dropped", ["t = sum(j, q[j])", "t = q[0]", "t = mean(j, size(j))"])
def test_operands_that_no_result_needs_are_not_asked_for(dropped: str) -> None:
    """With subscripts in a text as without."""
    b = np.arange(4.0)
    for first, wanted in (("y = b[1]", 1.0), ("y = sum(i, b[i])", 6.0)):
        for call in (tp.evaluate, tp.evaluate_dense):
            (found,) = call(f"{first}; {dropped}", {"b": b}, outputs=("y",))
            assert found == wanted
        assert tp.explain(f"{first}; {dropped}", {"b": b}, outputs=("y",))

"""Functions of users by C text: compiled into kernels, compared with NumPy's before."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.tensors import user_functions
from taco_py.language.notation.functions.defined import DEFINED
from tests.corpus.formats import store, to_dense

RANDOM = np.random.default_rng(1)
A = sp.random_array((7, 9), density=0.4, rng=RANDOM).toarray() * 4 - (RANDOM.random((7, 9)) < 0.2)
X = RANDOM.standard_normal(9)


def softsign(x: Any) -> Any:
    return x / (1 + abs(x))


TEXTS: list[tuple[str, Callable[..., Any], str, Any]] = [
    ("softsign", softsign, "x / (1 + fabs(x))", None),
    ("swish", lambda x: x / (1 + np.exp(-x)), "x / (1 + exp(-x))", None),
    ("shifted", lambda x: np.cos(x) + 1, "T one = 1;\nreturn cos(x) + one;", None),
    ("positive", lambda x: x > 0, "x > 0  // a truth", None),
    ("steps", lambda x: np.trunc(x * 2), "  T y = x * 2;\n  return trunc(y);", "float64"),
    ("wide", lambda x: np.float64(2) * x, "2.0 * x", None),
]


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["dense", "CSR", "CSC", "COO", "ss"])
@pytest.mark.parametrize("text", TEXTS, ids=lambda each: each[0])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "int8"])
def test_text(form: str, text: Any, dtype: str) -> None:
    name, numpy, c, dtypes = text
    function = tp.function(name, numpy=numpy, c=c, dtypes=dtypes)
    stored = store(A.astype(dtype), form)
    found = tp.evaluate(f"R[i,j] = {name}(A[i,j])", A=stored)
    wanted = function(A.astype(dtype))
    np.testing.assert_allclose(to_dense(found), wanted, rtol=1e-6, atol=1e-6)
    assert to_dense(found).dtype == wanted.dtype
    oracle = tp.evaluate_dense(f"R[i,j] = {name}(A[i,j])", A=stored)
    np.testing.assert_allclose(oracle, wanted, rtol=1e-6)
    assert oracle.dtype == wanted.dtype


def test_types_are_those_of_loops() -> None:
    """Arguments are computed in the first type that holds them, as by NumPy's functions."""
    tp.function("f", numpy=lambda x: x * 2, c="x * 2", dtypes=("int32", "float32", "complex64"))
    found = {
        each: tp.evaluate("y[i] = f(x[i])", x=np.ones(3, each)).dtype.name
        for each in ("int8", "int32", "float16", "float32", "complex64")
    }
    assert found == {
        "int8": "int32", "int32": "int32", "float16": "float32", "float32": "float32",
        "complex64": "complex64",
    }  # fmt: skip
    with pytest.raises(tp.OperandTypeError, match="defined for int32, float32, complex64") as error:
        tp.evaluate("y[i] = f(x[i])", x=np.ones(3, np.complex128))
    assert "f(x[i])\n         ^" in str(error.value)


def test_what_is_not_stored_follows_from_numpy() -> None:
    tp.function("softsign", numpy=softsign, c="x / (1 + fabs(x))", zero_preserving=True)
    tp.function("shifted", numpy=lambda x: np.cos(x) + 1, c="cos(x) + 1")
    sparse = sp.csr_array(A)
    assert tp.evaluate("R[i,j] = softsign(A[i,j])", A=sparse).nnz == sparse.nnz
    dense = tp.evaluate("R[i,j] = shifted(A[i,j])", A=sparse)
    np.testing.assert_allclose(dense, np.cos(A) + 1)
    filled = tp.tensor(sparse, fill_value=2.0)
    found = tp.evaluate("R[i,j] = softsign(A[i,j])", A=filled)
    assert found.fill_value == softsign(2.0)


def test_annihilators() -> None:
    """A product with what is not stored is not computed there."""
    tp.function("scaled", numpy=lambda x, y: x * np.exp(y), c="x * exp(y)", annihilator=(0, None))
    sparse = sp.csr_array(A)
    found = tp.evaluate("R[i,j] = scaled(A[i,j], x[j])", A=sparse, x=X)
    assert found.nnz == sparse.nnz
    np.testing.assert_allclose(found.toarray(), A * np.exp(X), rtol=1e-12)
    with pytest.raises(tp.OperandError, match=r"f\(x, 0\) = 0, found .* for x = "):
        tp.function("g", numpy=lambda x, y: x * np.exp(y), c="x * exp(y)", annihilator=0)
    with pytest.raises(tp.OperandError, match="for each of 2 arguments, found 1"):
        tp.function("g", numpy=lambda x, y: x * y, c="x * y", annihilator=(0,))


def test_sums_are_closed_and_functions_nest() -> None:
    soft = tp.function("soft", numpy=softsign, c="x / (1 + fabs(x))")
    found = tp.evaluate("y[i] = soft(A[i,j] * x[j])", A=sp.csr_array(A), x=X)
    np.testing.assert_allclose(found, softsign(A @ X), rtol=1e-12)
    tp.function("twice", lambda x: soft(soft(x)) + 1)
    found = tp.evaluate("y[j] = twice(x[j])", x=X)
    np.testing.assert_allclose(found, softsign(softsign(X)) + 1, rtol=1e-12)


def test_functions_of_functions_are_told_apart() -> None:
    """What a body calls is part of it."""
    for factor in (2, 3):
        inner = tp.function(
            "inner", numpy=lambda x, f=factor: x * f, c=f"x * {factor}", replace=True
        )
        tp.function("outer", lambda x, inner=inner: inner(x) + 1, replace=True)
        for _ in range(3):
            assert tp.evaluate("y[j] = outer(x[j])", x=X)[0] == X[0] * factor + 1


@pytest.mark.parametrize(
    "text", ["y[j] = f(x[j])", "y[j] = f(x[j+1])", "t[j] = f(x[j]); y[j] = t[j]"]
)
def test_another_text_needs_replace(text: str) -> None:
    x = np.append(X, 0.0)
    for factor in (2, 3):
        if factor == 3:
            with pytest.raises(tp.OperandError, match="which has another body"):
                tp.function("f", numpy=lambda x: x * 3, c="x * 3")
        tp.function("f", numpy=lambda x, f=factor: x * f, c=f"x * {factor}", replace=True)
        for _ in range(3):
            found = tp.evaluate(text, x=x, outputs="y") if ";" in text else tp.evaluate(text, x=x)
            assert found[0] == x[1 if "+1" in text else 0] * factor


def test_kernels_compiled_before_keep_their_text() -> None:
    tp.function("f", numpy=lambda x: x * 2, c="x * 2")
    kernel = tp.compile("y[i] = f(x[i])", x="d")
    tp.function("f", numpy=lambda x: x * 3, c="x * 3", replace=True)
    assert kernel(x=X)[0] == X[0] * 2
    assert tp.compile("y[i] = f(x[i])", x="d")(x=X)[0] == X[0] * 3


PROCESS = """
import numpy as np, taco_py as tp, sys
factor = int(sys.argv[1])
tp.function("f", numpy=lambda x: x * factor, c=f"x * {factor}")
x = np.arange(4.0)
for _ in range(3):
    assert np.array_equal(tp.evaluate("y[i] = f(x[i])", x=x), factor * x), sys.argv[1]
"""


def test_processes_with_other_texts_share_no_kernels() -> None:
    for factor in ("2", "3", "2"):
        subprocess.run([sys.executable, "-c", PROCESS, factor], check=True)


def test_results_of_a_text_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that was tried out is not compiled for it again, and compared again all the same."""
    tp.function("f", numpy=lambda x: x + 40, c="x + 40")
    DEFINED.forget("f")
    monkeypatch.setattr(user_functions, "_trial_text", None)
    tp.function("f", numpy=lambda x: x + 40, c="x + 40")
    with pytest.raises(tp.OperandError, match="found 40"):
        tp.function("f", numpy=lambda x: x + 41, c="x + 40", replace=True)


def test_export_has_the_text(tmp_path: Path) -> None:
    tp.function("soft", numpy=softsign, c="T y = fabs(x);\nreturn x / (1 + y);")
    kernel = tp.compile("y[i] = soft(A[i,j] * x[j])", A="csr", x="d")
    assert "T y = fabs(x);\n    return x / (1 + y);" in kernel.source
    kernel.export(tmp_path)
    sources = [str(each) for each in tmp_path.glob("*.c")]
    program = tmp_path / "program"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas", "-lm"]
    command = ["cc", *sources, *flags[:-1], "-o", str(program), flags[-1]]
    subprocess.run(command, check=True, cwd=tmp_path)
    subprocess.run([str(program)], check=True, cwd=tmp_path, capture_output=True)


WRONG: list[tuple[Callable[..., Any], str, dict[str, Any], str]] = [
    (softsign, "x / (2 + fabs(x))", {}, "gives, 0.5, found 0.33.* for x = 1.0 of float32"),
    (np.maximum, "x > y ? x : y", {}, "found 0.0 for x = nan, y = 0.0 of float32|found .* nan"),
    (lambda x: x * x, "x * x", {"zero_preserving": True, "idempotent": True}, "of two arguments"),
    (lambda x: x + 1, "x + 1", {"zero_preserving": True}, r"zero preserving, f\(0\) = 0, found 1"),
    (lambda x, y: x - y, "x - y", {"commutative": True}, r"commutative, .* for x = .*, y = "),
    (lambda x, y: x * y, "x * y", {"identity": 2}, r"identity that is declared, f\(2, x\) = x"),
    (np.gcd, "x", {"dtypes": "int64"}, "for x = .*, y = .* of int64"),
    (lambda x: 7 // np.maximum(x, 1), "7 / x", {"dtypes": "uint32"}, "for x = 0 of uint32"),
]  # fmt: skip


@pytest.mark.parametrize(("numpy", "c", "declared", "message"), WRONG)
def test_wrong_text_or_declaration(numpy: Any, c: str, declared: Any, message: str) -> None:
    with np.errstate(all="ignore"), pytest.raises(tp.OperandError, match=message):
        tp.function("f", numpy=numpy, c=c, **declared)
    assert "f" not in DEFINED.operators


def test_text_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("codegen.toolchain.trial.SECONDS", 0.5)
    with pytest.raises(tp.OperandError, match=r"found no end within .* for x = 2"):
        tp.function("f", numpy=lambda x: x, c="while (x > 1) { x = x; } return x;", dtypes="uint32")


SYNTAX: list[tuple[str, str, str]] = [
    ("x / (1 + )", "in line 1: expected expression before '\\)' token", "x / (1 + )\n           ^"),
    ("T y = x;\nreturn z;", "in line 2: 'z' undeclared", "return z;\n         ^"),
    ("fabz(x)", "implicit declaration of function 'fabz'", "fabz(x)\n  ^"),
    ("T y = x; // return", "no return statement|expected", "T y"),
]  # fmt: skip


@pytest.mark.parametrize(("c", "message", "carets"), SYNTAX)
def test_text_that_does_not_compile(c: str, message: str, carets: str) -> None:
    with pytest.raises(tp.NotationError, match=message) as found:
        tp.function("f", numpy=lambda x: x, c=c)
    assert carets in str(found.value)
    assert "hint: the text is" in str(found.value)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"c": "x"}, tp.OperandTypeError, "or both numpy= and c="),
    ({"numpy": softsign}, tp.OperandTypeError, "or both numpy= and c="),
    ({"body": softsign, "numpy": softsign, "c": "x"}, tp.OperandTypeError, "or both numpy= and c="),
    ({"numpy": softsign, "c": " "}, tp.OperandTypeError, "C text of f as a string"),
    ({"numpy": 3, "c": "x"}, tp.OperandTypeError, "a NumPy function as numpy= of f, found int"),
    ({"numpy": lambda *x: 1, "c": "x"}, tp.OperandTypeError, "of one argument or several"),
    ({"numpy": lambda double: double, "c": "1"}, tp.OperandTypeError, "C may have .* found double"),
    ({"numpy": softsign, "c": "x", "dtypes": "object"}, tp.OperandTypeError, "found object"),
    ({"numpy": softsign, "c": "x", "dtypes": ("no",)}, tp.OperandTypeError, "names of NumPy's"),
    ({"numpy": lambda x: x.sum(keepdims=True), "c": "x"}, tp.OperandTypeError, r"of shape \(1,\)"),
    ({"numpy": np.gcd, "c": "x"}, tp.OperandTypeError, 'as in dtypes=\\("int64",\\)'),
    ({"body": softsign, "dtypes": "float64"}, tp.OperandError, "beside c= and numpy= alone"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD)
def test_refused(arguments: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        tp.function("f", **arguments)
    assert "f" not in DEFINED.operators

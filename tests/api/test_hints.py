"""What users are told of words that are nearly right, and of texts of the other notation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

A = sp.csr_array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
X = np.array([1.0, 2.0, 3.0])
TEXT = "y[i] = A[i,j] * x[j]"


def refused(call: Callable[[], Any]) -> str:
    with pytest.raises(tp.TacoError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: tp.evaluate(TEXT, A=A, x=X, fromat="dd"), "did you mean the option format=?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, shedule=""), "did you mean the option schedule=?"),
        (lambda: tp.evaluate(TEXT, a=A, x=X), "where a= was given: did you mean A?"),
        (lambda: tp.evaluate("y[i] = Mass[i,j] * x[j]", Maas=A, x=X), "did you mean Mass?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, xs=X), "did you mean x? leave xs out"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, q=X), "leave q out, or use it in the expression"),
        (lambda: tp.tensor(A).to_scipy("csr_aray"), "did you mean csr_array?"),
        (lambda: tp.einsum(TEXT, A=A, x=X), "index notation goes to tp.evaluate"),
        (lambda: tp.einsum(TEXT, A, x=X), "index notation goes to tp.evaluate"),
        (lambda: tp.einsum("ij,j->i", A, X, fromat="dd"), "did you mean format?"),
        (lambda: tp.einsum("ij,j->i", A, X, order="F", otu=X), "did you mean out?"),
        (lambda: tp.einsum("ij,j->i", A=A, x=X), "operands go by position"),
        (lambda: tp.einsum("ij,j->i", A, X, optimize="gredy"), "did you mean greedy?"),
        (lambda: tp.tensor(A, format="crs"), "did you mean csr?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, format="dens"), "did you mean dense?"),
        (lambda: tp.compile(TEXT, A="CRS", x="d"), "did you mean csr?"),
        (lambda: tp.tensor(A, format="dcrs"), "did you mean dcsr?"),
        (lambda: tp.tensor(A, format="bsr"), 'as in "bsr(3,3)"'),
        (lambda: tp.Format.parse("lil"), "operands of scipy's lil are converted to CSR"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, forbid="contarct"), "did you mean contract?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, forbid=("gallops",)), "did you mean gallop?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, allow="cancelation"), "did you mean cancellation?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, allow=["canceling"]), "did you mean cancellation?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, dtype="flaot64"), "did you mean float64?"),
        (lambda: tp.tensor(A).astype("in32"), "did you mean int32?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, casting="unsave"), "did you mean unsafe?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, static={"ii": 2}), "did you mean i?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="mesure"), "did you mean measure?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="recorder(i,j)"), "did you mean reorder?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="Split(i,a,b,2)"), "did you mean split?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="parallelize(i,CPUTread)"), "CPUThread?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="mergeby(j,Galop)"), "mean Gallop?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="bound(i,k,2,MaxExat)"), "MaxExact?"),
        (lambda: tp.evaluate(TEXT, A=A, x=X, schedule="assemble(y,insert)"), "mean Insert?"),
        (lambda: tp.einsum("y[i] = A[i,j] * x[j]", A, X), "index notation goes to tp.evaluate"),
        (lambda: tp.evaluate("ij,j->i", A=A, x=X), "einsum's subscripts go to tp.einsum"),
        (lambda: tp.evaluate("y[i] -= A[i,j]", A=A), "tp.program takes -="),
        (lambda: tp.evaluate("y[i] = x[i] * 1e", x=X), "1e is no number: numbers are written as"),
        (lambda: tp.evaluate("y[i] = (1E) * x[i]", x=X), "1E is no number"),
        (lambda: tp.evaluate("y[i] = 1.5e+ * x[i]", x=X), "1.5e is no number"),
        (lambda: tp.evaluate("y[i] = 1.2.3 * x[i]", x=X), "1.2.3 is no number"),
        (lambda: tp.evaluate("y[i] = 1_000 * x[i]", x=X), "1_000 is no number"),
        (lambda: tp.evaluate("y[i] = 0x1F * x[i]", x=X), "0x1F is no number"),
        (lambda: tp.evaluate("s = sum(i, x[i] * 1e)", x=X), "1e is no number"),
        (lambda: tp.evaluate("y[i] = 2x[i]", x=X), "write * for a product"),
        (lambda: tp.evaluate("y[i] = 2 e[i]", e=X), "write * for a product"),
        (lambda: tp.evaluate("y[i] = x[p[i]]", x=X, p=X), "positions are integers"),
        (lambda: tp.evaluate(TEXT, A, X), "write A=…, x=…: these are the names in the text"),
        (lambda: tp.evaluate(TEXT, A), "found csr_array by position"),
        (lambda: tp.evaluate(TEXT, A, x=X), "write A=…, x=…"),
        (lambda: tp.evaluate("ij,j->i", A, X), "einsum's subscripts go to tp.einsum"),
        (lambda: tp.evaluate_dense(TEXT, A, X), "write A=…, x=…"),
        (lambda: tp.evaluate_dense(TEXT, A=A, x=X, dtype="float64"), "an option of evaluate"),
        (lambda: tp.evaluate_dense(TEXT, A=A, x=X, format="dd"), "an option of evaluate"),
        (lambda: tp.evaluate_dense(TEXT, A=A, x=X, intial=X), "did you mean the option initial=?"),
        (lambda: tp.evaluate_dense(TEXT, A=A, x=X, xs=X), "did you mean x? leave xs out"),
        (lambda: tp.evaluate_dense(TEXT, {"A": A, "x": X, "q": X}), "leave q out"),
        (lambda: tp.evaluate_dense(TEXT, a=A, x=X), "where a= was given: did you mean A?"),
        (lambda: tp.explain(TEXT, A, X), "found csr_array, ndarray by position"),
        (lambda: tp.compile(TEXT, tp.CSR, tp.dense(1)), "Expected the formats by name"),
        (lambda: tp.evaluate("Y[i,j] = T[i,j,3]", T=X), "write one subscript for each of the 1"),
        (lambda: tp.evaluate("y[i] = A[-1,i]", A=A), "positions count from 0"),
        (lambda: tp.evaluate("y[i] = A(i,3)", A=A), "write it in square brackets"),
        (lambda: tp.evaluate("y[i] = A[:,i]", A=A), "slice the operand before"),
        (lambda: tp.evaluate("y[i] = A[...,i]", A=A), "name every index"),
        (lambda: tp.evaluate("y[i] = A['i']", A=A), "names stand without quotes"),
        (lambda: tp.evaluate("y[i] = x[i] + x[i+1]", x=X), "shape= says how far the indices"),
        (lambda: tp.evaluate("y[i] = x[i-1]", x=X), 'border="fill" reads 0 outside of x'),
        (lambda: tp.evaluate("y[i] = x[i+k]", x=X), "say how far it goes: shape=(i,)"),
        (lambda: tp.evaluate("y[i] = x[i/2]", x=X), "a sum of whole multiples"),
        (lambda: tp.evaluate("y[i] = x[i]", x=X, border="wrap"), 'border="fill" reads 0'),
        (lambda: tp.evaluate("y[i] = x[i]", x=X, border="fil"), "did you mean fill?"),
        (lambda: tp.evaluate("y[i] = x[i]", x=X, shape="5"), "as in shape=(100,)"),
        (lambda: tp.evaluate("y[i] = x[i]", x=X, shape=(1, 2)), "one size for each mode"),
        (lambda: tp.frontier("y[i] = x[i-1]"), "an array in the place of a format"),
        (lambda: tp.evaluate("m[i] = mx(j, A[i,j])", A=A), "did you mean max?"),
        (lambda: tp.evaluate("m[i] = floor(z[i])", z=X * 1j), "np.abs(A) or A.real"),
        (lambda: tp.evaluate("s = max((k), x[i])", x=X), "as in sum(k, x[k])"),
        (lambda: tp.evaluate("y[i] = lg(x[i])", x=X), "did you mean log?"),
        (lambda: tp.evaluate("y[i] = rulu(x[i] + 1)", x=X), "did you mean relu?"),
    ],
)
def test_the_hint_names_the_remedy(call: Callable[[], Any], says: str) -> None:
    assert says in refused(call)


@pytest.mark.parametrize(
    ("text", "bracket"),
    [
        ("y[i] = (A[i,j] * x[j]", "("),
        ("y[i] = ((A[i,j] * x[j])", "("),
        ("y[i] = A[i,j", "["),
        ("y[i] = A(i,j", "("),
        ("y[i] = sum(j, A[i,j]", "("),
    ],
)
def test_brackets_that_are_not_closed_have_the_caret(text: str, bracket: str) -> None:
    message, shown, carets, *_ = refused(lambda: tp.evaluate(text, A=A, x=X)).splitlines()
    assert f"for this {bracket!r}, found the end of the text" in message
    place = carets.index("^")
    assert shown[place] == bracket and carets.count("^") == 1
    behind = shown[place:]
    assert sum(map(behind.count, "([")) > sum(map(behind.count, ")]"))


def test_comments_end_with_the_line() -> None:
    text = "y[i] = A[i,j] * x[j]  # the product [ ( \n  + b[i]  # and a vector"
    b = np.array([1.0, 2.0])
    np.testing.assert_array_equal(tp.evaluate(text, A=A, x=X, b=b), A @ X + b)


@pytest.mark.parametrize(
    ("name", "form"),
    [("coo", tp.COO(2)), ("CSF", tp.CSF(2)), ("Dense", tp.dense(2)), ("Csr", tp.CSR)],
)
def test_formats_may_be_named_in_any_case(name: str, form: tp.Format) -> None:
    assert tp.tensor(A, format=name).format == form
    found = tp.evaluate("C[i,j] = 2 * A[i,j]", A=tp.tensor(A), format=name)
    dense = found if isinstance(found, np.ndarray) else found.to_numpy()
    np.testing.assert_array_equal(dense, 2 * A.toarray())
    kernel = tp.compile("C[i,j] = 2 * A[i,j]", A=name, C=tp.dense(2))
    np.testing.assert_array_equal(kernel(A=tp.tensor(A, format=name)), 2 * A.toarray())


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_kinds_of_scipy_may_be_short(kind: str) -> None:
    assert type(tp.tensor(A).to_scipy(kind)).__name__ == f"{kind}_array"


def test_integer_subscripts_may_be_any() -> None:
    found = tp.einsum(A, [0, 77], X, [77], [0])
    np.testing.assert_array_equal(found, A @ X)
    assert (tp.einsum(A, [900, 77]) != A.T).nnz == 0
    assert "from 0 on" in refused(lambda: tp.einsum(A, [0, -1]))


# ---------------------------------------------------------------- arrays of other libraries


class OfNumpy:
    """An array that NumPy converts."""

    __module__ = "torch"

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.array


class OfMemory:
    """An array that says where its memory is."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class OfDlpack:
    """A tensor that is handed over by DLPack."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class OfSparse:
    """A sparse array that gives scipy's."""

    def tocsr(self) -> Any:
        return A


class Broken:
    """A tensor of another device."""

    __module__ = "torch"

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        raise RuntimeError("cannot convert a CUDA tensor")


@pytest.mark.parametrize("wrap", [OfNumpy, OfMemory, OfDlpack])
def test_arrays_of_other_libraries_are_read(wrap: Callable[[np.ndarray], Any]) -> None:
    for _ in range(2):
        np.testing.assert_array_equal(tp.evaluate(TEXT, A=A, x=wrap(X)), A @ X)
        np.testing.assert_array_equal(tp.einsum("ij,j->i", A, wrap(X)), A @ X)
    assert np.shares_memory(tp.tensor(wrap(X)).to_numpy(), X)


def test_sparse_arrays_of_other_libraries_are_read() -> None:
    np.testing.assert_array_equal(tp.einsum("ij,j->i", OfSparse(), X), A @ X)
    assert tp.tensor(OfSparse()).format == tp.CSR


@pytest.mark.parametrize(
    ("operand", "says"),
    [
        (Broken(), "torch.Broken, found an error: cannot convert a CUDA tensor"),
        (object(), "found object"),
        ("text", "found str"),
        ({1: 2}, "found dict"),
        (OfNumpy(np.array(["a"])), "dtype"),
    ],
)
def test_what_is_no_array_is_named(operand: Any, says: str) -> None:
    message = refused(lambda: tp.evaluate(TEXT, A=A, x=operand))
    assert "operand x" in message and says in message

"""`tp.evaluate_dense` takes what `tp.evaluate` takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

A = sp.csr_array(np.array([[0.0, 2.0, 0.0], [3.0, 0.0, 1.0]]))
X = np.array([0.0, 1.0, np.inf])
Y = np.array([0.0, 1.0])
FORMS: tuple[Any, ...] = (A, A.tocsc(), A.tocoo(), A.todok(), tp.tensor(A), tp.tensor(A).data)


@pytest.mark.parametrize("a", FORMS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("text", ["y[i] = A[i,j] * x[j]", "y[i] = 2 * A[i,j] - x[j]"])
def test_operands_of_every_kind(a: Any, text: str) -> None:
    found = tp.evaluate_dense(text, {"A": a}, x=X)
    np.testing.assert_array_equal(found, tp.evaluate(text, A=a, x=X))


def of_other_libraries(matrix: Any) -> dict[str, Any]:
    """A matrix of CSR as other libraries hold it, of arrays that may be damaged."""
    sparse, pa, torch = (pytest.importorskip(name) for name in ("sparse", "pyarrow", "torch"))
    rows = sparse.GCXS.from_scipy_sparse(A)
    rows.indices, rows.indptr = matrix.indices, matrix.indptr
    pos, crd = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64)
    arrays = (torch.from_numpy(each) for each in (pos, crd, A.data))
    return {
        "sparse": rows,
        "pyarrow": pa.SparseCSRMatrix.from_numpy(A.data, pos, crd, A.shape),
        "torch": torch.sparse_csr_tensor(*arrays, A.shape, check_invariants=False),
    }


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("library", ["sparse", "pyarrow", "torch"])
def test_operands_of_other_libraries(library: str) -> None:
    text = "C[i,j] = A[i,j] / y[i]"
    found = tp.evaluate_dense(text, A=of_other_libraries(A)[library], y=Y)
    np.testing.assert_array_equal(found, tp.evaluate_dense(text, A=A, y=Y))
    for array, place, wrong in (("indices", 1, -1), ("indices", 2, 3), ("indptr", 1, 10**6)):
        damaged = A.copy()
        getattr(damaged, array)[place] = wrong
        for used in (
            {"A": of_other_libraries(damaged)[library], "y": Y},
            {"A": np.ones((2, 3)), "y": Y, "mask": of_other_libraries(damaged)[library]},
        ):
            with pytest.raises(tp.StructureError, match=rf"{array}\[{place}\]"):
                tp.evaluate_dense(text, **used)


def test_what_other_libraries_fill_with_is_read() -> None:
    sparse = pytest.importorskip("sparse")
    filled = sparse.COO.from_numpy(A.toarray(), fill_value=3.0)
    found = tp.evaluate_dense("C[i,j] = 2 * A[i,j] - x[j]", A=filled, x=np.ones(3))
    np.testing.assert_array_equal(found, 2 * A.toarray() - 1)


def test_what_is_not_stored_is_absent() -> None:
    text = "C[i,j] = A[i,j] / y[i]"
    np.testing.assert_array_equal(tp.evaluate_dense(text, A=A, y=Y), [[0, np.inf, 0], [3, 0, 1]])
    dense = tp.evaluate_dense(text, A=A.toarray(), y=Y)
    np.testing.assert_array_equal(dense, [[np.nan, np.inf, np.nan], [3, 0, 1]])
    with_zero = sp.csr_array((np.zeros(1), np.zeros(1, int), [0, 1, 1]), shape=(2, 3))
    assert np.isnan(tp.evaluate_dense(text, A=with_zero, y=Y)).sum() == 1


def test_mistakes_are_those_of_evaluate() -> None:
    for wrong in ({"A": A}, {"A": A, "x": X[:2]}, {"A": "text", "x": X}):
        with pytest.raises(tp.TacoError):
            tp.evaluate_dense("y[i] = A[i,j] * x[j]", wrong)
    with pytest.raises(ValueError, match="end of the text"):
        tp.evaluate_dense("y[i] = A[i,j] *", A=A)


@pytest.mark.parametrize(
    "text", ["y[i] = x[i] - x[i]", "y[i] = -x[i]", "s = sum(i, 1 / (2 - -x[i]))"]
)
def test_operators_that_booleans_have_not_are_told_as_evaluate_does(text: str) -> None:
    x = np.ones(3, bool)
    with pytest.raises(tp.TacoError) as expected:
        tp.evaluate(text, x=x)
    with pytest.raises(type(expected.value)) as found:
        tp.evaluate_dense(text, x=x)
    assert str(found.value) == str(expected.value)


def test_what_is_added_to_is_an_operand_or_the_initial_value() -> None:
    text, x = "y[i] += A[i,j] * x[j]", np.arange(3.0)
    y = np.array([10.0, 20, 30])[: A.shape[0]]
    expected = y + A.toarray() @ x[: A.shape[1]]
    given = {"A": A, "x": x[: A.shape[1]]}
    np.testing.assert_array_equal(tp.evaluate_dense(text, given, y=y), expected)
    np.testing.assert_array_equal(tp.evaluate_dense(text, given, initial=y), expected)
    np.testing.assert_array_equal(tp.evaluate_dense(text, given), expected - y)

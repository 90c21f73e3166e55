"""Results and temporaries with fill values: in which levels, types and statements these are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.corpus.formats import store, to_dense


@pytest.mark.parametrize("form", ["CSR", "CSC", "COO", "ss", "sd"])
@pytest.mark.parametrize("text", ["R[i,j] = A[i,j] + b[i]", "R[j,i] = max(A[i,j], b[i])"])
def test_dense_levels_hold_the_fill_value(text: str, form: str) -> None:
    """A row in which one element is stored is stored whole, where an operand has whole rows."""
    a = store(np.where(np.eye(4, 5) > 0, 2.0, 0.0), form)
    b = tp.Tensor.from_coo(np.array([[1]]), [7.0], (4,), axis=0, format="s", fill_value=3.0)
    found = tp.evaluate(text, A=a, b=b)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, A=a, b=b))


def test_statements_read_them_in_other_types() -> None:
    a = tp.tensor(np.array([[1, 0, 2], [0, 0, 0]], np.uint64), format="ds")
    text = "t[i,j] = not A[i,j]; y[i] = mean(j, t[i,j])"
    t, y = tp.evaluate(text, A=a, outputs=("t", "y"))
    np.testing.assert_array_equal(to_dense(t), [[False, True, False], [True, True, True]])
    np.testing.assert_allclose(to_dense(y), [1 / 3, 1])


@pytest.mark.parametrize("last", ["t[]", "2 * t[]", "x[i] - t[]"])
def test_statements_that_need_elements_are_repeated(last: str) -> None:
    text = f"t[] = max(j, u[j]); y{'[i]' if 'x' in last else '[]'} = {last}"
    given: dict[str, Any] = {"u": np.array([1.0, 3.0, 2.0]), "x": np.arange(4.0)}
    given = given if "x" in last else {"u": given["u"]}
    for _ in range(2):
        t, y = tp.evaluate(text, given, outputs=("t", "y"))
        assert t == 3
        np.testing.assert_array_equal(y, tp.evaluate_dense(text, given))
    given["u"] = np.zeros(0)
    with pytest.raises(tp.DimensionError, match="Expected elements for max over j"):
        tp.evaluate(text, given, outputs=("t", "y"))


@pytest.mark.parametrize("dtype", ["int8", "float64"])
@pytest.mark.parametrize("semiring", ["max_plus", "min_plus", "max_times", "min_times"])
def test_what_a_part_of_a_product_does_not_store_stays_absent(semiring: str, dtype: str) -> None:
    """Sums are moved into products, whose zeros annihilate nothing in types that wrap around."""
    left = sp.csr_array((np.array([2, -2], dtype), ([0, 3], [0, 1])), shape=(4, 2))
    right = sp.csr_array((np.array([1, 2, 3], dtype), ([0, 1, 1], [0, 2, 3])), shape=(2, 4))
    b = np.array([2, 0, -2, -1], dtype)
    for text in ("R[i] = b[i] * D[i,k] + b[i]", "R[i] = D[i,k] * E[j,i] * b[i]"):
        given = {"b": b, "D": left, **({"E": right} if "E" in text else {})}
        found = tp.evaluate(text, given, semiring=semiring)
        wanted = tp.evaluate_dense(text, given, semiring=semiring)
        np.testing.assert_array_equal(to_dense(found), wanted)


def test_a_mask_of_an_update_whose_operand_is_stretched() -> None:
    x, y = np.array([2]), np.array([-2, 5, 1])
    mask = sp.coo_array((np.ones(2), (np.array([0, 2]),)), shape=(3,))
    for compute in (tp.evaluate, tp.evaluate_dense):
        assert compute("y[j] max= x[j]", x=x, y=y, mask=mask).tolist() == [2, 5, 2]


def test_means_of_no_elements() -> None:
    """What a sparse operand does not store is 0 over any divisor, 0 / 0 of a dense one is NaN."""
    for text in ("s = mean(i, j, A[i,j])", "y[i] = mean(j, A[i,j])"):
        for compute in (tp.evaluate, tp.evaluate_dense):
            assert (np.asarray(compute(text, A=sp.csr_array((4, 0)))) == 0).all()
            assert np.isnan(compute(text, A=np.zeros((4, 0)))).all()


QUOTIENTS = (
    "y[i] = S[i]**-1", "y[i] = (S[i] - 3)**-1", "y[i] = S[i]**-2 * w[i]", "y[i] = 1 // S[i]",
    "y[i] = 5 % S[i]", "y[i] = -1 // S[i]", "s = sum(i, 1 // S[i])", "s = sum(i, (S[i] + 1)**-1)",
    "y[i] = 0**S[i]", "y[i] = S[i]**0.5",
)  # fmt: skip


@pytest.mark.rotating(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("text", QUOTIENTS)
def test_what_is_absent_is_divided_as_its_type_is(text: str, dtype: str) -> None:
    """0**-1 and 1 // 0 of real numbers are infinite, of whole ones 0."""
    values = np.array([0, 1, 0, 2], dtype)
    for own in (sp.coo_array(values), tp.tensor(values, format="s"), values):
        given = {"S": own, "w": np.ones(4, dtype)} if "w[" in text else {"S": own}
        found = tp.evaluate(text, given)
        found = found.to_numpy() if isinstance(found, tp.Tensor) else found
        found = found.toarray() if sp.issparse(found) else found
        wanted = tp.evaluate_dense(text, given)
        assert np.asarray(found).dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["stored", "complement", "value"])
@pytest.mark.parametrize("form", ["ds", "ss", "dd"])
@pytest.mark.parametrize("mask", ["ds", "ss"])
def test_elements_that_a_mask_forbids_are_zero_beside_other_fill_values(form, mask, kind):
    E, M = np.ones((3, 4)), np.zeros((3, 4))
    E[0, 1], E[2, 2], M[0, :3], M[1, 0] = 5, 0, 1, 1
    given = {"E": tp.tensor(E, format=form, fill_value=1)}
    packed = tp.tensor(M, format=mask)
    masks = {"stored": packed, "complement": tp.complement(packed), "value": tp.by_value(packed)}
    allowed = M == 0 if kind == "complement" else M != 0
    found = tp.evaluate("R[j,i] = E[j,i]", given, mask=masks[kind])
    np.testing.assert_array_equal(
        found.to_numpy() if isinstance(found, tp.Tensor) else found, np.where(allowed, E, 0)
    )


@pytest.mark.parametrize("other", ["B[i,j]", "2*B[i,j]"])
def test_branches_that_are_alike_where_nothing_is_stored(other: str) -> None:
    B = np.ones((4, 3))
    B[0, 1], B[2, 2] = 2, 0
    A, D = sp.csr_array(np.eye(4, 3)), sp.csr_array(np.eye(4, 2))
    given = {"A": tp.tensor(A, format="ss"), "B": tp.tensor(B, format="ds", fill_value=1), "D": D}
    text = f"R[j,k,i] = where(D[i,k], B[i,j], {other}) + B[i,j] * A[i,j]"
    found = tp.evaluate(text, given)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_array_equal(found, tp.evaluate_dense(text, given))

"""`optimize=False`: one kernel, every sum around its product, so that what is not stored is zero
beside whatever it meets."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp

PRODUCTS = (
    ("i,ik->i", "y[i] = a[i] * B[i,k]"),
    ("i,ik->", "s = a[i] * B[i,k]"),
    ("ik,k->k", "y[k] = B[i,k] * a[k]"),
    ("ij,jk,k->i", "y[i] = A[i,j] * B[j,k] * a[k]"),
    ("ij,ik->i", "y[i] = A[i,j] * B[i,k]"),
    ("i,ij,ik->ij", "Y[i,j] = a[i] * A[i,j] * B[i,k]"),
)


@pytest.mark.parametrize(("subscripts", "text"), PRODUCTS)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("place", [0, 2])
def test_what_is_not_stored_is_zero_beside_nan(
    subscripts: str, text: str, form: str, place: int
) -> None:
    stored = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    known = {
        "a": np.where(np.arange(3) == place, np.nan, 2.0),
        "A": sp.coo_array(stored.T.copy()).asformat(form),
        "B": sp.coo_array(stored).asformat(form),
    }
    names = [name for name in "aAB" if f"{name}[" in text.split("=")[1]]
    in_text = sorted(names, key=text.index)
    found = tp.einsum(subscripts, *(known[name] for name in in_text), optimize=False)
    wanted = tp.evaluate_dense(text, {name: known[name] for name in names})
    found = found.toarray() if sp.issparse(found) else np.asarray(found)
    np.testing.assert_array_equal(found, wanted)


def test_by_default_sums_are_moved_into_products() -> None:
    matrix, factor = sp.csr_array([[1.0, -2.0], [1.0, 1.0]]), np.array([np.inf, 1.0])
    assert tp.einsum("i,ik->i", factor, matrix)[0] == -np.inf
    assert np.isnan(tp.einsum("i,ik->i", factor, matrix, optimize=False)[0])


def test_what_is_not_stored_is_zero_beside_nan_where_sums_are_moved_too() -> None:
    matrix, factor = sp.csr_array(np.eye(3)[:, :2]), np.array([1.0, 1.0, np.nan])
    for optimize in (True, False):
        assert tp.einsum("i,ik->i", factor, matrix, optimize=optimize)[2] == 0.0

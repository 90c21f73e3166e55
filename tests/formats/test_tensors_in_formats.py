"""Tensors in every kind of level and in derived modes, as arrays: subscripts, operators, types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taco_py as tp

Array = np.ndarray[Any, Any]
FORMATS = (
    "dr", "db", "dm", "dh", "rr", "bb", "mm", "hh", "sr", "rs", "md", "bd:1,0", "dm:1,0", "de",
    "se:1,0", "blocked(2,3,dh)", "blocked(2,3,dm)", "ell", "sell(2)", "dia", "sdia(4)", "rle",
    "sym", "bsr(2,3)",
)  # fmt: skip
OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda a: a[1:3],
    "a row": lambda a: a[2],
    "a column": lambda a: a[:, 2],
    "an element": lambda a: a[2, 3],
    "a part": lambda a: a[1:3, 1:4],
    "every other": lambda a: a[:, ::2],
    "negative": lambda a: -a,
    "absolute": lambda a: abs(a),
    "doubled": lambda a: 2 * a,
    "larger": lambda a: a > 1,
    "sum": lambda a: a.sum(0),
    "sine": np.sin,
    "turned": lambda a: a.T,
    "sum of both": lambda a: a + a,
}


def matrix() -> Array:
    random = np.random.default_rng(0)
    kept = random.random((7, 7)) < 0.4
    return 3.0 * (kept | kept.T)


@pytest.mark.rotating(6)
@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("form", FORMATS)
def test_operations(form: str, name: str) -> None:
    array = matrix()
    found = OPERATIONS[name](tp.tensor(array, format=form))
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_allclose(found, OPERATIONS[name](array), rtol=1e-15)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("form", [*FORMATS, "sdia(40)", "hm", "smd"])
def test_index_types(form: str) -> None:
    random = np.random.default_rng(1)
    array = 3.0 * (random.random((70, 70)) < 0.3)
    array = array + array.T if form == "sym" else array
    array = array.reshape(5, 14, 70) if form == "smd" else array
    array = np.sign(array) if form[:2] in ("de", "se") else array
    narrow = tp.tensor(array, format=form, index_dtype="int32")
    for wide in (tp.tensor(narrow, index_dtype="int64"), tp.tensor(array, form, "int64")):
        np.testing.assert_array_equal(wide.to_numpy(), array)
        back = tp.tensor(wide, index_dtype="int32")
        np.testing.assert_array_equal(back.to_numpy(), array)
    if array.ndim == 2:
        x = np.arange(70.0)
        kernel = tp.compile("y[i] = A[i,j] * x[j]", A=form, x="d", y="d", index_dtype="int64")
        np.testing.assert_allclose(kernel(A=narrow, x=x), array @ x)


@pytest.mark.parametrize("letters", ["dbd:2,0,1", "drd:2,0,1", "dmd:2,0,1", "sbd:2,0,1", "dhd"])
def test_results_of_blocks_with_entries(letters: str) -> None:
    array = np.zeros((3, 2, 2))
    array[1, 0, 1], array[2, 1, 0] = 1.0, 2.0
    found = tp.einsum("ijk,k->ij", tp.tensor(array, format=letters), np.ones(2))
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    np.testing.assert_array_equal(found, array.sum(2))


@pytest.mark.parametrize("form", ["db", "dr", "dm", "dh", "rr"])
def test_beside_blocks_that_do_not_fill_the_shape(form: str) -> None:
    eye = np.eye(11)
    given = {"A": tp.tensor(eye, format="bsr(2,3)"), "B": tp.tensor(2 * eye, format=form)}
    found = tp.evaluate("C[i,k] = A[i,j] * B[j,k]", given)
    np.testing.assert_array_equal(found.to_numpy(), 2 * eye)


def test_a_pattern_has_no_nan_among_numbers() -> None:
    with pytest.raises(tp.FormatError, match="equal values"):
        tp.tensor(np.array([[np.nan, 5.0]]), format="de")
    stored = tp.tensor(np.array([[np.nan, np.nan]]), format="de")
    assert np.isnan(stored.to_numpy()).all()


@pytest.mark.parametrize("form", ["ell", "sell(2)", "sdia(2)", "dm", "dh", "nm(2,2)"])
def test_zeros_that_are_stored_stay(form: str) -> None:
    zeros = tp.Tensor.from_coo(([0, 1], [0, 2]), [0.0, 1.0], (2, 4), format="ds")
    assert tp.tensor(zeros, format=form).to_format("csr").nnz == 2


def test_diagonals_have_no_edges_between_entries() -> None:
    stored = tp.tensor(np.diag([1.0, 0.0, 3.0, 4.0]), format="dia")
    found = tp.einsum("ij,j->i", stored, np.ones(4), semiring="min_plus")
    np.testing.assert_array_equal(found, [2.0, np.inf, 4.0, 5.0])

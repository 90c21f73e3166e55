"""Every format alike: how many entries there are, what calls convert, what arrays do."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from tests.formats.grid import MATRICES, TENSORS
from tests.formats.test_tensors_in_formats import FORMATS, matrix

Array = np.ndarray[Any, Any]
PLAIN = ("dd", "ds", "ds:1,0", "ss", "uq", "uc", "sd", "sd:1,0")
ALL = (*PLAIN, *FORMATS, "nm(7,7)")
REMAPPED = (
    "bsr(2,3)",
    "blocked(2,3,ss)",
    "ell",
    "sell(2)",
    "dia",
    "sdia(4)",
    "rle",
    "sym",
    "nm(7,7)",
)


@pytest.mark.rotating(6)
@pytest.mark.parametrize("form", dict.fromkeys((*ALL, *MATRICES)))
def test_nnz_is_the_same_in_each_format(form: str) -> None:
    array = matrix()
    for one in (array, np.zeros((7, 7)), 3.0 * np.eye(7)):
        stored = tp.tensor(one, format=form if form != "nm(4,4)" else "nm(7,7)")
        assert stored.nnz == np.count_nonzero(one) == len(stored.to_coo()[1])
        assert f"nnz={stored.nnz}," in repr(stored)
        assert stored.value_count == getattr(stored, "stored", stored).data.values.size


@pytest.mark.rotating(10)
@pytest.mark.parametrize("form", TENSORS)
def test_nnz_of_tensors_of_order_3(form: str) -> None:
    array = (np.arange(60).reshape(3, 4, 5) % 4 == 1).astype(float)
    stored = tp.tensor(array, format=form)
    assert stored.nnz == np.count_nonzero(array) == len(stored.to_coo()[1])


@pytest.mark.parametrize("form", ["ds", "uq", "dm", "dh", "hh", "ell", "sell(2)", "sdia(2)", "rle"])
def test_zeros_that_were_given_count_where_formats_keep_them(form: str) -> None:
    zeros = tp.Tensor.from_coo(([0, 1, 2], [0, 2, 1]), [0.0, 1.0, 0.0], (3, 4), format="ds")
    assert tp.tensor(zeros, format=form).nnz == 3


@pytest.mark.parametrize("form", ["dd", "sd", "db", "dr", "dia", "bsr(2,2)"])
def test_zeros_do_not_count_where_formats_fill_up(form: str) -> None:
    zeros = tp.Tensor.from_coo(([0, 1, 2], [0, 2, 1]), [0.0, 1.0, 0.0], (3, 4), format="ds")
    assert tp.tensor(zeros, format=form).nnz == 1


def test_duplicates_and_fill_values_in_nnz() -> None:
    twice = tp.tensor(sp.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2)))
    assert twice.nnz == 2
    filled = np.where(matrix() == 0, 7.0, matrix())
    for form in ("ds", "dd", "dm", "bsr(2,3)", "db"):
        assert tp.tensor(filled, format=form, fill_value=7).nnz == np.count_nonzero(matrix())


CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "semiring": {"semiring": "min_plus"},
    "mask": {"mask": np.arange(7) % 2 == 0},
    "GPU": {"target": "cuda-emulated"},
    "schedule": {"schedule": "reorder(i,j)"},
}


@pytest.mark.rotating(4)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("form", REMAPPED)
def test_explanations_name_conversions(form: str, call: str) -> None:
    options = {**CALLS[call], "frontier_budget": 0}
    A, x = tp.tensor(matrix(), format=form), np.ones(7)
    told = [str(tp.explain("y[i] = A[i,j] * x[j]", A=A, x=x, **options))]
    if call != "schedule":
        told.append(str(tp.explain("ij,j->i", A, x, **options)))
    for text in told:
        if call == "plain":
            assert "converts" not in text
            assert f"the arrays of {A.format}" in text
        else:
            assert text.startswith("converts")
            assert f": from {A.format} to ds, once and kept with the Tensor, for " in text


@pytest.mark.parametrize("kind", ["bsr", "dok", "lil", "dia"])
def test_explanations_name_conversions_of_scipys(kind: str) -> None:
    A = sp.csr_array(matrix()).asformat(kind)
    A = A.tobsr((7, 7)) if kind == "bsr" else A
    text = "y[i] = A[i,j] * x[j]"
    told = str(tp.explain(text, A=A, x=np.ones(7), semiring="min_plus", frontier_budget=0))
    assert f"A: from scipy's {kind} to CSR at each call" in told
    mask = {"B": tp.tensor(matrix(), format="ds"), "mask": tp.tensor(matrix(), format="ell")}
    assert "mask: from ELL to ds" in str(tp.explain("C[i,j] = 2 * B[i,j]", **mask))


def test_a_format_that_is_chosen() -> None:
    blocks = sp.kron(sp.eye_array(4000), np.ones((6, 6))).tocsr()
    made = tp.tensor(blocks).to_format("auto")
    assert str(made.format) == str(tp.tensor(blocks, format="auto").format) == "BSR(6,6)"
    assert made.reason == tp.choose_format(blocks).reason
    again = pickle.loads(pickle.dumps(made))
    assert again.reason == made.copy().reason == made.astype("float32").reason == made.reason
    assert made.to_format("auto").stored is made.stored
    small = tp.tensor(matrix(), format="ell").to_format("auto", memory_limit="1GB")
    assert str(small.format) == "ds"


def test_one_decision_about_blocks_with_zeros() -> None:
    blocks = sp.kron(sp.eye_array(40_000), np.ones((6, 6))).tolil()
    blocks[6 * 33, 6 * 33 + 1] = 0  # outside of the sample
    matrix = blocks.tocsr()
    matrix.eliminate_zeros()
    chosen, stored = tp.choose_format(matrix).format, tp.tensor(matrix, format="auto")
    assert str(chosen) == str(stored.format)
    assert not str(chosen).startswith("BSR(6")


def test_letters_that_users_write_are_listed() -> None:
    with pytest.raises(tp.FormatError, match="found 'x'") as error:
        tp.tensor(np.eye(3), format="dx")
    listed = str(error.value).partition("found")[0]
    assert "d, s, u, c, q, r, b, m, h, e" in listed
    assert not any(f" {letter}," in listed for letter in "poiwy")


def saved(a: Any) -> Any:
    """What np.load reads again: a Tensor as an object, in its own format."""
    file = io.BytesIO()
    np.save(file, a)
    file.seek(0)
    found = np.load(file, allow_pickle=True)
    return found.item() if found.dtype == object else found  # dense ones are arrays


WHOLE: dict[str, Callable[[Any], Any]] = {
    "product": lambda a: a @ a,
    "product with an array": lambda a: a @ np.arange(7.0),
    "array times": lambda a: np.arange(7.0) @ a,
    "difference": lambda a: a - a.T,
    "plus another": lambda a: a + np.eye(7),
    "masked": lambda a: a[a > 1],
    "mask of rows": lambda a: a[np.arange(7) % 2 == 0],
    "sum": lambda a: a.sum(),
    "sums of columns": lambda a: a.sum(1, keepdims=True),
    "largest": lambda a: a.max(0),
    "least": lambda a: a.min(),
    "mean": lambda a: a.mean(1),
    "any": lambda a: a.any(0),
    "last row": lambda a: a[-1],
    "reversed": lambda a: a[::-1, 5:1:-2],
    "fancy": lambda a: a[[1, 3, 1], [2, 0, 2]],
    "pickle": lambda a: pickle.loads(pickle.dumps(a)),
    "copy": lambda a: a.copy(),
    "deep copy": copy.deepcopy,
    "shallow copy": copy.copy,
    "length": len,
    "iteration": lambda a: list(a)[3],
    "saved": saved,
    "floats": lambda a: a.astype("float32"),
    "shape": lambda a: a.reshape(49),
    "running sums": lambda a: a.cumsum(0),
    "sorted": lambda a: np.sort(a, axis=1),
    "stacked": lambda a: np.concatenate([a, a], axis=1),
    "nonzero": lambda a: a.nonzero()[1],
    "equal": lambda a: a == 3,
    "exponential": np.exp,
    "diagonal": lambda a: a.diagonal(),
}


@pytest.mark.rotating(16)
@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("form", ALL)
def test_arrays_in_each_format(form: str, name: str) -> None:
    array = matrix()
    found = WHOLE[name](tp.tensor(array, format=form))
    wanted = np.asarray(WHOLE[name](array))
    found = np.asarray(found.to_numpy() if isinstance(found, tp.Tensor) else found)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-14)

"""Every ordered pair of formats: conversions keep every entry, whatever is stored."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import taco_py as tp
from taco_py.data.storage.check import check

MATRICES = (
    "dd", "csr", "csc", "dcsr", "dcsc", "coo", "dr", "db", "dm", "hash", "dok", "rm:1,0",
    "bsr(2,3)", "ell", "sell(4)", "dia", "sdia(8)", "rle", "blocked(3,1,ss)",
)  # fmt: skip
TENSORS = ("ddd", "sss", "coo", "drb:1,2,0", "smh", "hhh", "dok", "blocked(2,1,2,sss)", "rdm")
DATA = ("some", "empty", "full", "one row", "one entry")


def numbers(shape: tuple[int, ...], data: str) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(len(data))
    kept = random.random(shape) < 0.3
    if data != "some":
        kept[:] = data == "full"
    if data == "one row":
        kept[shape[0] // 2] = True
    if data == "one entry":
        kept[tuple(size - 1 for size in shape)] = True
    return np.where(kept, random.integers(1, 3, shape), 0).astype(float)


def test_there_are_sixteen_formats() -> None:
    assert len(MATRICES) >= 16


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("source", MATRICES)
def test_matrices(source: str, data: str) -> None:
    array = numbers((11, 13), data)
    stored = tp.tensor(array, format=source)
    for target in MATRICES:
        if target != source:
            found = stored.to_format(target)
            np.testing.assert_array_equal(found.to_numpy(), array, f"{source} to {target}")


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("source", TENSORS)
def test_tensors(source: str, data: str) -> None:
    array = numbers((4, 5, 3), data)
    stored = tp.tensor(array, format=source)
    for target in TENSORS:
        if target != source:
            found = stored.to_format(target)
            np.testing.assert_array_equal(found.to_numpy(), array, f"{source} to {target}")


@pytest.mark.parametrize("form", [*MATRICES, "sym"])
@pytest.mark.parametrize("index", ["int32", "int64"])
def test_positions_of_either_width(form: str, index: str) -> None:
    array = numbers((9, 9), "some")
    array += array.T
    stored = tp.tensor(array, format=form, index_dtype=index)
    np.testing.assert_array_equal(stored.to_numpy(), array)
    np.testing.assert_array_equal(tp.tensor(stored, format="csr").to_numpy(), array)
    held = stored.stored.data if hasattr(stored, "stored") else stored.data
    kinds = {a.dtype.name for level in held.levels for a in (level.pos, level.crd) if a is not None}
    assert kinds <= {index}
    check(held)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_any_order_of_modes(order: tuple[int, ...]) -> None:
    array = numbers((4, 5, 3), "some")
    for letters in ("ddr", "dmb", "hds", "rrr", "bhm", "ssm"):
        form = f"{letters}:{','.join(map(str, order))}"
        stored = tp.tensor(array, format=form)
        check(stored.data)
        np.testing.assert_array_equal(stored.to_numpy(), array, form)
        back = tp.tensor(tp.tensor(array, format="sss"), format=form)
        np.testing.assert_array_equal(back.to_numpy(), array, form)


@settings(max_examples=25)
@given(
    arrays(np.int64, st.tuples(st.integers(0, 9), st.integers(0, 9)), elements=st.integers(0, 2)),
    st.sampled_from(MATRICES),
    st.sampled_from(MATRICES),
    st.sampled_from(("int8", "float32", "complex128", "bool")),
)
def test_any_numbers(array: np.ndarray[Any, Any], source: str, target: str, dtype: str) -> None:
    array = array.astype(dtype)
    found = tp.tensor(array, format=source).to_format(target)
    np.testing.assert_array_equal(found.to_numpy(), array)
    assert found.dtype == array.dtype


@pytest.mark.parametrize("form", ["pattern", "se", "he:1,0", "de:1,0"])
@pytest.mark.parametrize("data", DATA)
def test_patterns_have_one_value(form: str, data: str) -> None:
    array = 3.0 * (numbers((11, 13), data) != 0)
    stored = tp.tensor(array, format=form)
    assert stored.data.values.tolist() == [3.0 if array.any() else 0.0]
    assert stored.nnz == np.count_nonzero(array)
    check(stored.data)
    for target in MATRICES:
        np.testing.assert_array_equal(stored.to_format(target).to_numpy(), array)
        again = tp.tensor(array, format=target).to_format(form)
        np.testing.assert_array_equal(again.to_numpy(), array)
    np.testing.assert_array_equal((2 * stored).to_numpy(), 2 * array)
    x = np.arange(13.0)
    found = tp.evaluate("y[i] = A[i,j] * x[j]", A=stored, x=x, format="d")
    np.testing.assert_array_equal(found, array @ x)


def test_what_a_format_cannot_hold_is_refused() -> None:
    with pytest.raises(tp.FormatError, match="Expected equal values"):
        tp.tensor(np.arange(4.0).reshape(2, 2), format="pattern")
    with pytest.raises(tp.FormatError, match="no level below one that has one value for all"):
        tp.Format.parse("eds")
    with pytest.raises(tp.FormatError, match="at most 2 entries for each i, j/4, found 4"):
        tp.tensor(np.ones((2, 4)), format="nm(2,4)")
    with pytest.raises(tp.FormatError, match=r"symmetric matrix, found at \(1, 0\) another number"):
        tp.tensor(np.tri(3), format="sym")
    with pytest.raises(tp.FormatError, match="square"):
        tp.symmetric(np.ones((2, 3)))
    with pytest.raises(tp.OperandError, match="lower"):
        tp.symmetric(np.ones((2, 2)), "left")

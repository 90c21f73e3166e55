"""Operands with fill values: no cache and no compiled kernel takes them for operands without."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.arguments.operands import describe, facts
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.keys import call_key
from tests.corpus.formats import to_dense

RNG = np.random.default_rng(11)
MATRIX = sp.random_array((9, 7), density=0.4, format="csr", rng=RNG)
COLUMN = RNG.random(7)
PRODUCT = "y[i] = A[i,j] * x[j]"
CALLS: dict[str, Callable[[Any], Any]] = {
    "evaluate": lambda A: tp.evaluate(PRODUCT, A=A, x=COLUMN),
    "einsum": lambda A: tp.einsum("ij,j->i", A, COLUMN),
    "sparse result": lambda A: tp.evaluate("C[i,j] = 2 * A[i,j]", A=A),
    "sum": lambda A: tp.evaluate("s = A[i,j]", A=A),
    "out": lambda A: tp.evaluate(PRODUCT, A=A, x=COLUMN, format="d", out=np.empty(9)),
    "two types": lambda A: tp.evaluate(PRODUCT, A=A, x=COLUMN, dtype="complex128"),
}


@pytest.fixture(autouse=True)
def nothing_known() -> Iterator[None]:
    KERNELS.memo.clear()
    yield
    KERNELS.memo.clear()


def require_own_way(call: Callable[[Any], Any], filled: Any) -> None:
    """No plan, kernel or short way of operands without a fill value is taken for this one."""
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(to_dense(call(filled)), to_dense(call(filled.to_numpy())))


@pytest.mark.parametrize("form", ["ds", "ds:1,0", "uq", "ss", "sd"])
@pytest.mark.parametrize("call", CALLS)
def test_a_warm_call_is_no_other_tensors(call: str, form: str) -> None:
    plain = tp.tensor(MATRIX, form)
    filled = tp.tensor(plain, fill_value=-np.inf)
    before = CALLS[call](plain)
    for _ in range(3):  # on the short way by then
        CALLS[call](plain)
        require_own_way(CALLS[call], filled)
    np.testing.assert_array_equal(to_dense(CALLS[call](plain)), to_dense(before))


@pytest.mark.parametrize("form", ["ds", "uq", "ss", "sd"])
def test_a_kernel_takes_the_fill_value_that_it_was_compiled_for(form: str) -> None:
    plain = tp.tensor(MATRIX, form)
    filled = tp.tensor(plain, fill_value=-np.inf)
    for text in (PRODUCT, "y[i] = A[i,j] * A[i,j] * x[j]"):
        kernel = tp.compile(text, A=plain.format, x=tp.dense(1), y=tp.dense(1))
        before = kernel(A=plain, x=COLUMN)
        for _ in range(3):
            np.testing.assert_array_equal(kernel(A=plain, x=COLUMN), before)
            np.testing.assert_array_equal(kernel(plain, COLUMN), before)
            with pytest.raises(tp.FormatError, match=r"fill value 0\.0 that .* found -inf"):
                kernel(A=filled, x=COLUMN)
            with pytest.raises(tp.FormatError, match=r"fill value 0\.0 that .* found -inf"):
                kernel(filled, COLUMN, out=np.empty(9))


def test_a_pattern_has_the_fill_value_of_the_result() -> None:
    kernel = tp.compile("C[i,j] = A[i,k] * A[k,j]", A="ds", C="ds")
    square = tp.tensor(sp.eye_array(4, format="csr"))
    pattern = kernel.assemble(A=square)
    assert kernel.compute(pattern, A=square).fill_value == 0
    with pytest.raises(tp.StructureError, match="pattern with the fill value 0, found nan"):
        kernel.compute(tp.tensor(pattern, fill_value=np.nan), A=square)


def test_keys_differ_just_where_fill_values_do() -> None:
    values = (0.0, -0.0, 1.0, np.inf, -np.inf, np.nan)
    tensors = [tp.tensor(MATRIX, fill_value=value) for value in values]
    again = [tp.tensor(MATRIX, fill_value=value) for value in values]
    keys = [call_key("text", (each,)) for each in tensors]
    assert len(set(keys)) == len(values)
    assert keys == [call_key("text", (each,)) for each in again]
    planned = [facts({"A": describe(each, "A")}) for each in tensors]
    assert len(set(planned)) == len(values)
    assert planned == [facts({"A": describe(each, "A")}) for each in again]


def test_arrays_are_computed_with_whatever_their_fill_value() -> None:
    array = MATRIX.toarray()
    plain, filled = tp.tensor(array), tp.tensor(array, fill_value=array[0, 0])
    assert plain.signature() == filled.signature()
    for text in (PRODUCT, "y[i] = A[i,j] * A[i,j]", "y[i] = A[i,j] * B[i,j]"):
        operands = {"A": filled, "x": COLUMN, "B": MATRIX}
        used = {name: each for name, each in operands.items() if name in text}
        for _ in range(3):
            np.testing.assert_allclose(
                tp.evaluate(text, used), tp.evaluate_dense(text, {**used, "A": array})
            )
    kernel = tp.compile(PRODUCT, A=tp.dense(2), x=tp.dense(1))
    for each in (plain, filled, plain):
        np.testing.assert_allclose(kernel(A=each, x=COLUMN), array @ COLUMN)


@pytest.mark.parametrize("form", ["ds", "uq", "ss", "sd", "dd"])
@pytest.mark.parametrize("fill", [-np.inf, np.nan, -0.0, 2.0])
def test_the_oracle_computes_with_them(fill: float, form: str) -> None:
    filled = tp.tensor(tp.tensor(MATRIX, fill_value=fill), form)
    array = np.where(MATRIX.toarray() == 0, fill, MATRIX.toarray())
    for text in (PRODUCT, "B[j,i] = A[i,j] / x[j]", "y[i] = x[j] / A[i,j]", "s = A[i,j] + A[i,j]"):
        used = {"A": None, **({"x": COLUMN} if "x" in text else {})}
        np.testing.assert_array_equal(
            tp.evaluate_dense(text, {**used, "A": filled}),
            tp.evaluate_dense(text, {**used, "A": array}),
        )
    np.testing.assert_array_equal(
        tp.evaluate_dense("B[i] += A[i,j]", A=filled, initial=np.ones(9)), 1 + array.sum(axis=1)
    )


def test_the_oracle_adds_duplicates_wide_where_it_did() -> None:
    values = np.array([200, 100, 7], np.uint8)
    twice = sp.coo_array((values, ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    made = tp.tensor(twice, fill_value=3)
    assert tp.evaluate_dense("s = 1.0 * A[i,j]", A=made) == 200 + 100 + 7 + 3 + 3


@pytest.mark.parametrize("form", ["ds", "ds:1,0", "uq", "ss", "sd"])
def test_permuted_modes_keep_it(form: str) -> None:
    filled = tp.tensor(tp.tensor(MATRIX, fill_value=-np.inf), form)
    for _ in range(3):
        turned = tp.evaluate("B[j,i] = A[i,j]", A=filled)
        assert turned.fill_value == -np.inf
        assert turned.data.values is filled.data.values
        np.testing.assert_array_equal(turned.to_numpy(), filled.to_numpy().T)
        plain = tp.tensor(filled, fill_value=0.0)
        assert tp.evaluate("B[j,i] = A[i,j]", A=plain).fill_value == 0
        assert tp.einsum("ij->ji", filled).fill_value == -np.inf


LATER = f"""
import numpy as np, scipy.sparse as sp, taco_py as tp
A = tp.tensor(sp.eye_array(20, format="csr"))
for _ in range(2):
    assert tp.evaluate("{PRODUCT}", A=A, x=np.ones(20)).tolist() == [1.0] * 20
print(tp.evaluate("{PRODUCT}", A=tp.tensor(A, fill_value=2.0), x=np.ones(20))[0])
"""


def test_what_earlier_processes_kept_is_no_other_tensors(tmp_path: Path) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", LATER],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "TACO_PY_CACHE_DIR": str(tmp_path)},
        )
        assert done.stdout.strip() == "39.0"

"""Rows of sparse results that blocks of a GPU fill: tables by size, the same bits each run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.devices.emulated import EmulatedDevice
from taco_py.compiler import devices
from taco_py.compiler.lower.threads import row_classes
from taco_py.data.kernels import KERNELS
from tests.corpus.formats import store, to_dense

EMULATED = "cuda-emulated"
PRODUCT = "C[i,k] = A[i,j] * B[j,k]"
BLOCKS = "reorder(i,j,k), parallelize(i,GPUBlock,NoRaces), parallelize(k,GPUThread,NoRaces)"
SMALL = ((32, 24 * 16), (64, 24 * 64))
"""Threads of a block, and bytes for 16 and for 64 places of keys, values, lists and results."""


@contextmanager
def classes(limits: Any) -> Iterator[None]:
    """Rows with other limits, in kernels that are not remembered."""
    with (
        mock.patch.object(row_classes, "CLASSES", limits),
        mock.patch.object(devices, "remembered", lambda key, make: make()),
    ):
        yield


def matrix(
    shape: tuple[int, int], lengths: Any, dtype: str = "float64", index: str = "int32"
) -> Any:
    """A matrix whose rows have so many entries."""
    rng = np.random.default_rng(shape[1])
    counts = np.minimum(np.resize(lengths, shape[0]), shape[1])
    crd = [np.sort(rng.choice(shape[1], n, replace=False)) for n in counts]
    flat = np.concatenate([np.zeros(0, int), *crd]).astype(index)
    pos = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    return sp.csr_array((rng.integers(1, 4, len(flat)).astype(dtype), flat, pos), shape=shape)


SHAPES = {
    "uniform": (matrix((60, 50), [4]), matrix((50, 70), [3])),
    "each class": (matrix((40, 60), [0, 1, 3, 20, 60]), matrix((60, 90), [2, 0, 5, 1])),
    "one heavy row": (matrix((50, 80), [1] * 20 + [80] + [2] * 29), matrix((80, 300), [7])),
    "power law": (matrix((70, 70), 1 + np.arange(70) ** 3 // 9000), matrix((70, 70), [1, 9, 2])),
    "no entries": (matrix((5, 6), [0]), matrix((6, 7), [3])),
    "no columns": (matrix((5, 6), [2]), sp.csr_array((6, 0))),
}


@pytest.mark.parametrize("form", ["ds", "uq", "ss"])
@pytest.mark.parametrize("name", SHAPES)
def test_rows_of_each_size(name: str, form: str) -> None:
    a, b = SHAPES[name]
    for limits in (SMALL, row_classes.CLASSES):
        with classes(limits):
            found = tp.evaluate(PRODUCT, A=a, B=b, schedule=BLOCKS, format=form, target=EMULATED)
        np.testing.assert_array_equal(to_dense(found), (a @ b).toarray())


TEXTS = (
    "C[i,k] = 2 * A[i,j] * B[j,k]",
    "C[i,k] = A[i,j] * B[j,k] * d[k]",
    "C[i,k] = max(j, A[i,j] * B[j,k])",
    "C[i,k] = d[i] * max(sum(j, A[i,j] * B[j,k]) - 5, 0)",
    "C[i,k] = A[i,j] * B[j,k] * M[i,k]",
    "C[i,k] = A[i,j] * (B[j,k] + D[j,k])",
)


@pytest.mark.rotating(3)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "complex128", "bool"])
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_made_of_rows(text: str, dtype: str) -> None:
    """In blocks where that can be, else a thread a row; with indices of 64 bits."""
    every = {
        "A": matrix((30, 40), [0, 3, 40], dtype, "int64"),
        "B": matrix((40, 60), [2, 5], dtype, "int64"),
        "D": matrix((40, 60), [1, 0, 4], dtype, "int64"),
        "M": matrix((30, 60), [9], dtype, "int64"),
        "d": (np.arange(30 if "d[i]" in text else 60) % 4).astype(dtype),
    }
    arrays = {n: a for n, a in every.items() if f"{n}[" in text.split("=")[1]}
    if "max" in text and dtype in ("complex128", "uint8"):
        pytest.skip("no order, or differences that wrap")
    found = tp.evaluate(text, arrays, format="ds", target=EMULATED)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, arrays))


@pytest.mark.parametrize("semiring", ["min_plus", "max_times", "or_and", "any_pair", "plus_first"])
def test_semirings(semiring: str) -> None:
    a, b = SHAPES["each class"]
    how = {"A": a, "B": b, "semiring": semiring, "format": "ds"}
    found = tp.evaluate(PRODUCT, target=EMULATED, **how)
    wanted = tp.evaluate(PRODUCT, **how)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.data, wanted.data)


@pytest.mark.parametrize("form", ["ss", "uq", "hh", "ds:1,0", "ds"])
@pytest.mark.parametrize("semiring", ["max_times", "min_plus", "plus_times"])
def test_rows_that_are_stored_where_any_product_is(semiring: str, form: str) -> None:
    """Rows of C are dense, and stored where one of A is: known once they are computed."""
    rng = np.random.default_rng(4)
    array = rng.integers(1, 4, (6, 5)) * (rng.random((6, 5)) < 0.5) * 1.0
    array[2] = 0
    stored, B = tp.tensor(array, format=form), rng.integers(1, 4, (5, 4)) * 1.0
    text, options = "C[i,k] = A[i,j] * B[j,k]", {"semiring": semiring}
    found = tp.evaluate(text, A=stored, B=B, target="cuda-emulated", **options)
    wanted = tp.evaluate_dense(text, A=stored, B=B, **options)
    np.testing.assert_array_equal(found if form == "ds" else to_dense(found), wanted)


def test_threads_do_not_share_rows_that_may_be_left_out() -> None:
    """The test whether a row is stored is serial, the table of the row is its threads'."""
    schedule = "reorder(i,j,k), parallelize(i,GPUBlock,NoRaces), parallelize(k,GPUThread,NoRaces)"
    with pytest.raises(tp.ScheduleError, match="Expected blocks of C that each iteration over i"):
        tp.compile("C[i,k] = A[i,j] * B[j,k]", A="ss", B="dd", C="sd", semiring="max_times",
                   schedule=schedule, target="cuda-emulated")  # fmt: skip


def test_the_same_bits_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of numbers that round, in blocks and warps that come in other orders."""
    rng = np.random.default_rng(2)
    a, b = (x.copy() for x in SHAPES["each class"])
    a.data, b.data = rng.random(a.nnz) * 1e9, rng.random(b.nnz)
    runs = []
    for seed in range(4):
        device = EmulatedDevice(KERNELS, seed=seed)
        monkeypatch.setattr(devices, "device_of", lambda target, device=device: device)
        monkeypatch.setattr(devices, "remembered", lambda key, make: make())
        runs.append(tp.evaluate(PRODUCT, A=a, B=b, schedule=BLOCKS, target=EMULATED))
    for run in runs[1:]:
        assert run.indices.tobytes() == runs[0].indices.tobytes()
        assert run.data.tobytes() == runs[0].data.tobytes()


def test_duplicates_are_added_up_before() -> None:
    a = sp.csr_array(([1.0, 2.0], [0, 1], [0, 2]), shape=(1, 2))
    b = sp.csr_array(([1.0, 2.0, 4.0, 8.0], [3, 3, 3, 1], [0, 3, 4]), shape=(2, 5))
    found = tp.evaluate(PRODUCT, A=a, B=b, schedule=BLOCKS, target=EMULATED)
    np.testing.assert_array_equal(found.toarray(), [[0, 16, 0, 7, 0]])


def test_what_is_chosen_is_told() -> None:
    a, b = SHAPES["uniform"]
    told = str(tp.explain(PRODUCT, A=a, B=b, format="ds", target=EMULATED))
    assert "a block for each i, threads over k, tables of small rows in shared memory" in told
    assert "not a thread for each i" in told
    assert "small ones in shared memory" in told
    assert "B without duplicates" in told
    kernel = tp.compile(PRODUCT, A=tp.CSR, B=tp.CSR, C=tp.CSR, schedule=BLOCKS, target="cuda")
    assert "__shared__ int32_t w_keys" in kernel.source
    assert "__launch_bounds__(32)" in kernel.source


REFUSED = {
    "reorder(i,j,k), parallelize(i,GPUBlock,NoRaces), parallelize(j,GPUThread,Atomics)":
        "list the coordinates of k",
    "reorder(j,i,k), parallelize(j,GPUBlock,Atomics)": "list the coordinates of i, k",
    "parallelize(i,GPUBlock), parallelize(k,GPUWarp)": "share one place for values over k",
}  # fmt: skip


@pytest.mark.parametrize("schedule", REFUSED)
def test_what_blocks_do_not_fill_is_refused(schedule: str) -> None:
    a, b = SHAPES["uniform"]
    with pytest.raises(tp.ScheduleError) as refusal:
        tp.evaluate(PRODUCT, A=a, B=b, schedule=schedule, format="ds", target=EMULATED)
    assert REFUSED[schedule] in str(refusal.value)
    assert refusal.value.hint


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
    st.lists(st.integers(0, 40), min_size=1, max_size=12),
    st.sampled_from(["CSR", "ss"]),
)
def test_any_rows(rows: list[int], others: list[int], form: str) -> None:
    a, b = matrix((len(rows), 30), rows), matrix((30, 40), others)
    stored = {"A": store(a.toarray(), form), "B": store(b.toarray(), form)}
    with mock.patch.object(row_classes, "CLASSES", SMALL):  # remembered under a text of its own
        found = tp.evaluate("C[i,k] = 11 * A[i,j] * B[j,k]", stored, format="ds", target=EMULATED)
    np.testing.assert_array_equal(to_dense(found), 11 * (a @ b).toarray())

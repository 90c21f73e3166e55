"""Entries of sparse operands that lanes of warps take side by side, whatever rows are like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.devices.launch_record import Launch
from tests.corpus.formats import store

SPMV = "y[i] = A[i,j] * x[j]"
SHARED = (
    "parallelize(block,GPUBlock,IgnoreRaces), parallelize(warp,GPUWarp,IgnoreRaces), "
    "parallelize(lane,GPUThread,Atomics)"
)
FUSED = "fuse(i,j,ij), pos(ij,p,A), "
IN_WARPS = "split(p,block,rest,{}), split(rest,warp,part,{}), split(part,each,lane,32), " + SHARED
BY_ENTRIES = FUSED + IN_WARPS.format(512, 64)
IN_BLOCKS = (
    "split(p,block,rest,192), split(rest,each,lane,96), parallelize(block,GPUBlock,IgnoreRaces), "
    "parallelize(lane,GPUThread,Atomics)"
)


def matrix(rows: Any, width: int, dtype: str = "float64", index: str = "int32") -> sp.csr_array:
    """A matrix of rows with so many entries, with small whole numbers."""
    lengths = np.asarray(rows)
    random = np.random.default_rng(len(lengths))
    crd = [np.sort(random.choice(width, n, replace=False)) for n in lengths]
    pos = np.concatenate([[0], np.cumsum(lengths)]).astype(index)
    flat = np.concatenate(crd).astype(index) if crd else np.zeros(0, index)
    values = random.integers(1, 3, len(flat)).astype(dtype)
    return sp.csr_array((values, flat, pos), shape=(len(lengths), width))


RANDOM = np.random.default_rng(0)
ROWS: dict[str, Any] = {
    "uniform": np.full(90, 5),
    "one heavy row": [3] * 50 + [900] + [3] * 250,
    "power law": np.minimum(900, RANDOM.zipf(1.6, 120)),
    "empty rows": [0, 0, 0, *RANDOM.integers(0, 2, 300), 0, 40, 0, 0],
    "one row": [700],
    "nothing": [0] * 7,
    "no rows": [],
}


@pytest.mark.parametrize("schedule", [BY_ENTRIES, FUSED + IN_BLOCKS, None])
@pytest.mark.parametrize("name", ROWS)
def test_rows_of_any_length(name: str, schedule: str | None) -> None:
    for dtype, index in (("float64", "int64"), ("float32", "int32"), ("int8", "int64")):
        a = matrix(ROWS[name], 1000, dtype, index)
        x = np.arange(1000).astype(dtype) % 3
        found = tp.evaluate(SPMV, A=a, x=x, schedule=schedule, target="cuda-emulated")
        np.testing.assert_array_equal(found, tp.evaluate_dense(SPMV, A=a.toarray(), x=x))


SEMIRINGS = ("plus_times", "min_plus", "max_plus", "max_times", "min_max", "or_and", "any_pair")


@pytest.mark.parametrize("semiring", SEMIRINGS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "uint16"])
def test_any_semiring(semiring: str, dtype: str) -> None:
    a = matrix(ROWS["one heavy row"], 1000, dtype)
    x = np.arange(1000).astype(dtype) % 7
    how = {"semiring": semiring, "A": a, "x": x}
    found = tp.evaluate(SPMV, schedule=BY_ENTRIES, target="cuda-emulated", **how)
    np.testing.assert_array_equal(found, tp.evaluate(SPMV, **how))


REDUCTIONS = ("sum(j, A[i,j])", "max(j, A[i,j])", "min(j, A[i,j])", "prod(j, A[i,j])",
              "any(j, A[i,j])", "all(j, A[i,j])", "max(j, abs(A[i,j]) - 2)")  # fmt: skip


@pytest.mark.parametrize("value", REDUCTIONS)
def test_any_reduction_of_a_skewed_matrix(value: str) -> None:
    for dtype in ("float64", "complex128", "int16", "bool"):
        a = matrix(ROWS["one heavy row"], 1000, dtype)
        if dtype == "float64":
            a.data[::7] = -1.0
        text = f"y[i] = {value}"
        try:
            wanted = tp.evaluate_dense(text, A=a.toarray())
        except tp.TacoError:
            continue  # complex numbers have no order
        found = tp.evaluate(text, A=a, target="cuda-emulated")
        np.testing.assert_array_equal(found, wanted)


IN_ORDER = "reorder(i,j,k{}), fuse(i,j,ij), fuse(ij,k,ijk), pos(ijk,p,T), "
TENSORS = {
    "TTV": ("Y[i,j] = T[i,j,k] * x[k]", IN_ORDER.format("")),
    "sums of slices": ("Y[i] = T[i,j,k] * x[k]", IN_ORDER.format("")),
    "sums over two": ("Y[j] = T[i,j,k] * x[k]", IN_ORDER.format("")),
    "last index alone": ("Y[k] = T[i,j,k]", IN_ORDER.format("")),
    "entries of their own": ("Y[i,j,k] = T[i,j,k] * x[k]", IN_ORDER.format("")),
    "columns inside": ("Y[i,r] = T[i,j,k] * B[k,r]", IN_ORDER.format(",r")),
}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["sss", "dss", "uqq", "dds"])
@pytest.mark.parametrize("name", TENSORS)
def test_tensors(name: str, form: str) -> None:
    text, fused = TENSORS[name]
    random = np.random.default_rng(5)
    t = random.integers(1, 4, (9, 8, 40)) * (random.random((9, 8, 40)) < 0.3) * 1.0
    t[2] = t[5, 3] = 0
    every = {"T": t, "x": np.arange(40.0) % 5, "B": random.integers(0, 4, (40, 3)) * 1.0}
    arrays = {n: a for n, a in every.items() if f"{n}[" in text.split("=")[1]}
    stored = {**arrays, "T": store(t, form)}
    order = "d" * (text.split("=")[0].count(",") + 1)
    for schedule in (fused + IN_WARPS.format(512, 64), fused + IN_BLOCKS, None):
        found = tp.evaluate(text, stored, schedule=schedule, format=order, target="cuda-emulated")
        np.testing.assert_array_equal(found, tp.evaluate_dense(text, **arrays))


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.one_of(st.integers(0, 3), st.integers(0, 150)), max_size=60),
    st.sampled_from([(32, 32), (64, 32), (512, 64), (1000, 125), (96, 48)]),
)
def test_any_rows_and_tiles(rows: list[int], tiles: tuple[int, int]) -> None:
    a = matrix(rows, 150)
    x = np.arange(150.0) % 4
    how = FUSED + IN_WARPS.format(*tiles)
    found = tp.evaluate(SPMV, A=a, x=x, schedule=how, target="cuda-emulated")
    np.testing.assert_array_equal(found, a @ x)


SAME = "C[i,j] = A[i,j] * x[j]"
REFUSED = {
    ("y[i] = A[i,j] * B[i,j]", FUSED + IN_BLOCKS): "j walks A2, B2 together",
    (SPMV, FUSED + "split(p,b,lane,64), parallelize(b,GPUBlock), parallelize(lane,GPUThread)"):
        "is summed over",
    ("C[k,i] = A[i,j] * X[j,k]", "reorder(k,i,j), fuse(i,j,ij), pos(ij,p,A), "
     "parallelize(k,GPUBlock), parallelize(p,GPUThread,Atomics)"): "needs all entries over j",
}  # fmt: skip


@pytest.mark.parametrize(("text", "schedule"), REFUSED)
def test_what_entries_alone_do_not_make_is_refused(text: str, schedule: str) -> None:
    arrays = {"A": sp.csr_array(np.eye(4)), "B": sp.csr_array(np.eye(4)), "X": np.eye(4)}
    arrays["x"] = np.ones(4)
    operands = {n: a for n, a in arrays.items() if f"{n}[" in text.split("=")[1]}
    order = "d" * (text.split("=")[0].count(",") + 1)
    with pytest.raises(tp.ScheduleError) as refusal:
        tp.evaluate(text, operands, schedule=schedule, format=order, target="cuda-emulated")
    assert REFUSED[text, schedule] in str(refusal.value)
    assert refusal.value.hint


def test_lanes_read_neighbours_and_as_many(launches: list[Launch]) -> None:
    """One row has half of all entries; the schedule is the one that the plan chooses."""
    half = 1 << 15
    lengths = np.array([*[8] * 1000, half, *[8] * (half // 8 - 1000)])
    pos = np.concatenate([[0], np.cumsum(lengths)])
    crd = np.concatenate([np.arange(n) for n in lengths])
    a = sp.csr_array((np.ones(2 * half), crd, pos), shape=(len(lengths), half))
    told = str(tp.explain(SPMV, A=a, x=np.ones(half), target="cuda-emulated"))
    assert "entries of A for each warp, its lanes over neighbours" in told.split("not ")[0]
    assert "each an entry" in told and "one for neighbours that meet" in told
    found = tp.evaluate(SPMV, A=a, x=np.ones(half), target="cuda-emulated")
    np.testing.assert_array_equal(found, lengths)
    launch = launches[-1]
    entries = [place for place in launch.places if place.buffer in ("A2_crd", "A_vals")]
    assert {place.accesses for place in entries} == {2 * half}
    assert sum(p.sectors for p in entries) <= 1.1 * sum(p.ideal_sectors for p in entries)
    each = 2 * half / (launch.shape.blocks * launch.shape.threads)
    assert each == int(each)  # entries of a thread, for all lanes of each request have one
    assert all(32 * place.requests <= 1.01 * place.accesses for place in entries)
    added = sum(place.accesses for place in launch.places if place.kind == "atomic")
    warps = launch.shape.blocks * launch.shape.threads // 32
    assert added <= len(lengths) + 2 * half / 32 / 4 + 2 * warps


def test_a_long_row_is_added_up_in_registers(launches: list[Launch]) -> None:
    a = matrix([1 << 12], 1 << 12)
    schedule = FUSED + IN_WARPS.format(4096, 512)
    tp.evaluate(SPMV, A=a, x=np.ones(1 << 12), schedule=schedule, target="cuda-emulated")
    (added,) = (place for place in launches[-1].places if place.kind == "atomic")
    assert added.accesses == 8  # one of each warp

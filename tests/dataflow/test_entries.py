"""Kernels over the entries of one sparse operand: values, counts of kernels, bytes, text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.runtime.traced.simulated_caches import SimulatedCache, SimulatedCaches
from taco_py.calls.kernels.simulate_traffic import simulate_traffic
from taco_py.compiler.dataflow.entry_form import entry_form
from taco_py.compiler.dataflow.entry_graph import entry_graph
from taco_py.compiler.dataflow.graph_text import parse, to_text
from taco_py.compiler.dataflow.moved_bytes import Caches, traffic
from taco_py.compiler.dataflow.slab_form import NoSlabError
from taco_py.compiler.dataflow.verify import verify
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.tree import all_calls, all_reductions
from taco_py.planner.rules.kernel import stream_entries
from tests.test_export import arrays_of, build

Dense = Any


def row_max(A: Dense, stored: Dense) -> Dense:
    return np.where(stored, A, -np.inf).max(1, initial=-np.inf, keepdims=True)


def softmax(A: Dense, stored: Dense, r: Dense, w: Dense) -> Dense:
    most = row_max(A, stored)
    e = np.where(stored, np.exp(A - np.where(np.isfinite(most), most, 0)), 0)
    return e / np.where(e.any(1, keepdims=True), e.sum(1, keepdims=True), 1)


def normalized(A: Dense, stored: Dense, r: Dense, w: Dense) -> Dense:
    s = A.sum(1, keepdims=True)
    return A / np.where(s == 0, 1, s)


def weighted(A: Dense, stored: Dense, r: Dense, w: Dense) -> Dense:
    t = A * w
    s = np.sqrt((t * t).sum(1, keepdims=True))
    return t / np.where(s == 0, 1, s)


def by_columns(A: Dense, stored: Dense, r: Dense, w: Dense) -> Dense:
    s = np.sqrt((A * A).sum(0, keepdims=True)) + w
    return np.exp(A / s) * A


@dataclass(frozen=True)
class Text:
    """A text with the values that it should have, and the formats in which entries are rows."""

    text: str
    wanted: Callable[..., Dense]
    fill: float = 0.0
    by_columns: bool = False

    @property
    def names(self) -> list[str]:
        return [name for name in "rw" if f"{name}[" in self.text]


TEXTS = {
    "softmax": Text(
        "m[i] = max(j, A[i,j]); e[i,j] = exp(A[i,j] - m[i]); z[i] = sum(j, e[i,j]); "
        "P[i,j] = e[i,j] / z[i]",
        softmax,
        -np.inf,
    ),
    "normalized": Text("s[i] = sum(j, A[i,j]); P[i,j] = A[i,j] / s[i]", normalized),
    "log": Text("P[i,j] = log1p(A[i,j] * r[i])", lambda A, stored, r, w: np.log1p(A * r[:, None])),
    "weighted": Text(
        "t[i,j] = A[i,j] * w[j]; s[i] = sum(j, t[i,j] * t[i,j]); P[i,j] = t[i,j] / sqrt(s[i])",
        weighted,
    ),
    "squared": Text("P[i,j] = A[i,j] * A[i,j]", lambda A, stored, r, w: A * A),
    "powers": Text(
        "P[i,j] = A[i,j] * exp(A[i,j] * w[j]) / (r[i] + w[j])",
        lambda A, stored, r, w: A * np.exp(A * w) / (r[:, None] + w),
    ),
    "columns": Text(
        "s[j] = sum(i, A[i,j] * A[i,j]); P[i,j] = exp(A[i,j] / (sqrt(s[j]) + w[j])) * A[i,j]",
        by_columns,
        by_columns=True,
    ),
}
FORMATS = {False: ("csr", "dcsr"), True: ("csc", "dcsc")}


def lengths(draw: Any, lines: int, most: int) -> np.ndarray:
    """Lengths of lines: none, few, about as many as a group has, or all."""
    one = st.sampled_from((0, 0, 1, 3, 17, 50, 700, 2047, 2048, 2049, 5000))
    drawn = draw(st.lists(one, min_size=1, max_size=12))
    return np.minimum(np.resize(drawn, lines), most)


@st.composite
def matrices(draw: Any, by_columns: bool) -> tuple[np.ndarray, np.ndarray]:
    """A dense array and where it is stored, with enough entries for groups."""
    lines, most = draw(st.sampled_from(((40, 5000), (300, 300), (2100, 60), (1, 20000))))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    stored = np.zeros((lines, most), bool)
    for line, length in enumerate(lengths(draw, lines, most)):
        stored[line, rng.choice(most, length, replace=False)] = True
    array = np.where(stored, rng.random(stored.shape) + 0.1, 0)
    return (array.T, stored.T) if by_columns else (array, stored)


def operand(array: np.ndarray, stored: np.ndarray, form: str, dtype: str, fill: float) -> Any:
    rows, columns = np.nonzero(stored)
    values = array[rows, columns].astype(dtype)
    matrix = sp.coo_array((values, (rows, columns)), array.shape)
    return tp.tensor(matrix, format=form, fill_value=fill)


def result_of(report: Any, array: np.ndarray) -> tuple[np.ndarray, int]:
    matrix = report if sp.issparse(report) else report.to_scipy()
    return matrix.toarray(), matrix.nnz


@pytest.fixture(autouse=True)
def _all_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_entries, "LEAST_ENTRIES", 0)
    monkeypatch.setattr(stream_entries, "LEAST_ROW", 0)


@pytest.mark.parametrize("name", TEXTS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_entries_are_as_numpy_computes_them(name: str, data: Any) -> None:
    text = TEXTS[name]
    array, stored = data.draw(matrices(text.by_columns))
    form = data.draw(st.sampled_from(FORMATS[text.by_columns]))
    dtype = data.draw(st.sampled_from(("float32", "float64")))
    threads = data.draw(st.sampled_from((1, 2, 3)))
    rng = np.random.default_rng(0)
    r, w = (rng.random(size).astype(dtype) + 0.5 for size in array.shape)
    A = operand(array, stored, form, dtype, text.fill)
    others = {key: value for key, value in (("r", r), ("w", w)) if key in text.names}
    exact = np.where(stored, array.astype(dtype).astype(float), 0)
    wanted = text.wanted(exact, stored, r.astype(float), w.astype(float))
    error = 3e-5 if dtype == "float32" else 1e-11
    before = A.data.values.copy()
    for _ in range(2):  # planned, then by the fast path
        P = tp.evaluate(text.text, A=A, **others, format=form, threads=threads)
        found, count = result_of(P, array)
        np.testing.assert_allclose(found, wanted, rtol=error, atol=error)
        assert count == stored.sum()
        np.testing.assert_array_equal(A.data.values, before)
    alone = tp.evaluate(text.text, A=A, **others, format=form, threads=1)
    np.testing.assert_array_equal(result_of(alone, array)[0], found)


def kernel_of(name: str, form: str = "csr", count: int = 40000) -> tuple[Any, dict[str, Any]]:
    text, rng = TEXTS[name], np.random.default_rng(1)
    rows, width = count // 50, 4000
    stored = np.zeros((rows, width), bool)
    for row in stored:
        row[rng.choice(width, 50, replace=False)] = True
    if text.by_columns:
        stored = stored.T
    array = np.where(stored, rng.random(stored.shape) + 0.1, 0)
    r, w = (rng.random(size).astype("float32") + 1 for size in array.shape)
    operands = {"A": operand(array, stored, form, "float32", text.fill)}
    operands |= {key: value for key, value in (("r", r), ("w", w)) if key in text.names}
    return tp.compile(text.text, {**operands, "P": form}), operands


@pytest.mark.parametrize("name", TEXTS)
def test_each_text_is_one_kernel_of_entries(name: str) -> None:
    form = FORMATS[TEXTS[name].by_columns][0]
    kernel, _ = kernel_of(name, form)
    (step,) = kernel.plan.kernels
    assert str(step.schedule.make) == "make(entry_slabs)"
    assert "TACO_STREAM" in kernel.source


@pytest.mark.parametrize("name", TEXTS)
def test_graphs_print_parse_and_keep_the_rules(name: str) -> None:
    plans = [kernel_of(name, form)[0].plan for form in FORMATS[TEXTS[name].by_columns]]
    steps = [step for plan in plans for step in plan.kernels]
    steps = [step for step in steps if str(step.schedule.make) == "make(entry_slabs)"]
    assert steps
    for step in steps:
        graph = entry_graph(entry_form(step.problem)).graph
        verify(graph)
        value = step.problem.assignment.value
        nodes = (*all_calls(value), *all_reductions(value))
        operators: dict[str, Operator] = {node.operator.name: node.operator for node in nodes}
        assert parse(to_text(graph), operators.__getitem__) == graph


@pytest.mark.parametrize("name", ["softmax", "normalized", "log", "weighted"])
def test_predicted_bytes_are_those_of_simulated_caches(name: str) -> None:
    kernel, operands = kernel_of(name, count=200_000)
    (step,) = kernel.plan.kernels
    graph = entry_graph(entry_form(step.problem))
    A = operands["A"]
    sizes = {"i": A.shape[0], "j": A.shape[1], graph.position: A.nnz / A.shape[0]}
    predicted = traffic(graph.graph, sizes, Caches(1 << 20, 0.0)).dram
    caches = SimulatedCaches((SimulatedCache(32 << 10, 8), SimulatedCache(128 << 10, 16)))
    measured = simulate_traffic(caches, kernel, **operands).total.dram_bytes
    assert 0.9 < measured / predicted < 1.1


@pytest.mark.parametrize(
    "text",
    [
        "P[i,j] = A[i,j] * B[i,j]",
        "P[i,j] = A[i,j] * sum(k, B[i,k] * B[j,k])",
        "y[i] = sum(j, A[i,j] * r[j])",
        "P[i,j] = A[i,j] + r[i]",
    ],
)
def test_other_problems_are_no_values_of_entries(text: str) -> None:
    A = sp.random_array((60, 60), density=0.3, format="csr", rng=np.random.default_rng(2))
    B = sp.random_array((60, 60), density=0.3, format="csr", rng=np.random.default_rng(3))
    every = {"A": A, "B": B, "r": np.arange(60.0)}
    operands = {key: value for key, value in every.items() if f"{key}[" in text}
    kernel = tp.compile(text, operands)
    for step in kernel.plan.kernels:
        with pytest.raises(NoSlabError):
            entry_form(step.problem)


def test_results_own_their_coordinates() -> None:
    A = sp.random_array((500, 500), density=0.2, format="csr", rng=np.random.default_rng(4))
    P = tp.evaluate("P[i,j] = exp(A[i,j]) * A[i,j]", A=A)
    assert not np.shares_memory(P.indices, A.indices)
    assert not np.shares_memory(P.indptr, A.indptr)


@pytest.mark.parametrize("form", ["sss", "dss", "dds", "sss:2,0,1"])
@pytest.mark.parametrize("threads", [1, 2])
def test_entries_of_more_modes_keep_all_coordinates(form: str, threads: int) -> None:
    rng = np.random.default_rng(9)
    dense = rng.random((30, 40, 50)) * (rng.random((30, 40, 50)) < 0.3)
    dense[4:9] = 0
    A = tp.tensor(dense, format=form)
    text = "P[i,j,k] = exp(A[i,j,k]) * A[i,j,k]"
    (step,) = tp.compile(text, {"A": A, "P": form}).plan.kernels
    assert str(step.schedule.make) == "make(entry_slabs)"
    P = tp.evaluate(text, A=A, format=form, threads=threads)
    np.testing.assert_allclose(P.to_numpy(), np.exp(dense) * dense, rtol=1e-12)
    for ours, other in zip(P.data.levels, A.data.levels, strict=True):
        for one, wanted in ((ours.pos, other.pos), (ours.crd, other.crd)):
            assert (one is None) == (wanted is None)
            if one is not None:
                np.testing.assert_array_equal(one, wanted)
                assert not np.shares_memory(one, wanted)


def test_rows_that_are_dense_below_a_list_are_no_values_of_entries() -> None:
    rng = np.random.default_rng(10)
    dense = rng.random((30, 40, 50)) * (rng.random((30, 40, 50)) < 0.3)
    A = tp.tensor(dense, format="sds")
    text = "P[i,j,k] = exp(A[i,j,k]) * A[i,j,k]"
    for step in tp.compile(text, {"A": A, "P": "sds"}).plan.kernels:
        with pytest.raises(NoSlabError):
            entry_form(step.problem)
    P = tp.evaluate(text, A=A, format="sds")
    np.testing.assert_allclose(P.to_numpy(), np.exp(dense) * dense, rtol=1e-12)


def test_functions_over_sparse_arrays_are_one_kernel_of_entries() -> None:
    def rows(A: Any) -> Any:
        return np.log1p(A / A.sum(1, keepdims=True))

    A = sp.random_array((300, 900), density=0.2, format="csr", rng=np.random.default_rng(6))
    function = tp.fuse(rows)
    wanted = rows(A.toarray())
    for _ in range(2):
        np.testing.assert_allclose(function(tp.tensor(A)).to_numpy(), wanted, rtol=1e-12)
    report = function.graph(tp.tensor(A)).explain()
    assert "runs      1 kernel, 0 copies" in report
    assert "iterates    the entries of A" in report


def test_values_for_a_structure_are_computed_alone() -> None:
    A = sp.random_array((300, 300), density=0.2, format="csr", rng=np.random.default_rng(7))
    kernel = tp.compile("P[i,j] = exp(A[i,j]) * A[i,j]", A=A)
    assert "make(entry_slabs)" in {str(step.schedule.make) for step in kernel.plan.kernels}
    pattern = kernel.assemble(A=A)
    wanted = kernel(A=A)
    np.testing.assert_array_equal(pattern.indices, wanted.indices)
    np.testing.assert_allclose(kernel.compute(pattern, A=A).data, wanted.data, rtol=1e-14)


def test_exported_kernels_check_the_order_of_coordinates(tmp_path: Path) -> None:
    A = sp.random_array((30, 40), density=0.3, format="csr", rng=np.random.default_rng(8))
    kernel = tp.compile("s[i] = sum(j, A[i,j]); P[i,j] = A[i,j] / s[i]", A=A)
    files = kernel.export(tmp_path, {"A": A}, name="rows")
    header = next(path for path in files if path.name == "rows.h").read_text()
    assert "1 to fail with 3 where coordinates of A do not ascend" in header
    printed = build(files)
    expected = arrays_of(kernel(A=A), kernel.plan.steps[-1].target)
    assert printed.keys() == expected.keys()
    for array, values in expected.items():
        np.testing.assert_allclose(printed[array], values, rtol=1e-14, err_msg=array)


@pytest.mark.parametrize("threads", [1, 2])
def test_coordinates_out_of_order_are_put_in_order(threads: int) -> None:
    text = "s[i] = sum(j, A[i,j]); P[i,j] = exp(A[i,j] / s[i]) * A[i,j]"
    rng = np.random.default_rng(5)
    A = sp.random_array((700, 700), density=0.1, format="csr", rng=rng)
    for kind in ("sorted", "reversed", "twice", "sorted"):
        B = A.copy()
        if kind == "reversed":
            for first, last in zip(B.indptr[:-1], B.indptr[1:], strict=True):
                B.indices[first:last] = B.indices[first:last][::-1].copy()
                B.data[first:last] = B.data[first:last][::-1].copy()
        if kind == "twice":
            row = int(np.argmax(np.diff(B.indptr)))
            B.indices[B.indptr[row] + 1] = B.indices[B.indptr[row]]
        dense = B.toarray()
        s = dense.sum(1, keepdims=True)
        wanted = np.exp(dense / np.where(s == 0, 1, s)) * dense
        for _ in range(2):
            P = tp.evaluate(text, A=B, threads=threads)
            np.testing.assert_allclose(P.toarray(), wanted, rtol=1e-12)

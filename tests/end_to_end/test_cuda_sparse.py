"""Sparse results on a GPU: counted, scanned, filled on the emulated device."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.devices.host_side import Host
from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.concrete.nodes import Assembly
from taco_py.compiler.iteration.graph import build_graph
from taco_py.compiler.lower.sparse_result.result import Result
from taco_py.compiler.lower.threads import row_classes, row_tables
from taco_py.compiler.schedule.assembly import check_assembly
from tests.corpus.combine import each_once
from tests.corpus.data import dense_result, initial, operands
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import operand_options, result_options, store, to_dense
from tests.problems import problem

EMULATED = "cuda-emulated"
SPARSE = [c for c in CASES if c.result_shape and initial(c) is None]


def is_sparse(form: str | None) -> bool:
    return form is not None and bool(set(form.split(":")[0]) - {"d"})


def formats(case: Case) -> tuple[str, ...]:
    """Of the operands and of the result; over the cases each format is in each place."""
    orders = [len(shape) for shape in case.shapes.values()]
    results = filter(is_sparse, result_options(len(case.result_shape), more=True))
    rows = each_once([*(operand_options(n, more=True) for n in orders), tuple(map(str, results))])
    return rows[SPARSE.index(case) % len(rows)]


@pytest.mark.rotating(3)
@pytest.mark.parametrize("case", SPARSE, ids=lambda case: case.name)
def test_corpus(case: Case) -> None:
    *forms, result = formats(case)
    for pattern in ("mixed", "zero"):
        arrays = operands(case, pattern)  # type: ignore[arg-type]
        stored = {n: store(a, f) for (n, a), f in zip(arrays.items(), forms, strict=True)}
        found = tp.evaluate(case.text, stored, format=result, target=EMULATED)
        np.testing.assert_array_equal(to_dense(found), dense_result(case.text, arrays, None))


# ---------------------------------------------------------------- patterns of operands

MAIN: dict[str, str] = {
    "scaled": "C[i,j] = 2 * A[i,j]",
    "sampled": "C[i,j] = A[i,j] * X[i,k] * Y[k,j]",
    "added": "C[i,j] = A[i,j] + B[i,j]",
    "subtracted": "C[i,j] = A[i,j] - 2 * B[i,j]",
    "multiplied": "C[i,j] = A[i,j] * B[i,j]",
    "three": "C[i,j] = A[i,j] * B[i,j] + D[i,j]",
    "product": "C[i,j] = A[i,k] * S[k,j]",
    "masked": "C[i,j] = A[i,j] * (B[i,k] * S[k,j])",
    "with sum": "C[i,j] = A[i,k] * S[k,j] + B[i,j]",
}


def example(rows: int, columns: int, density: float, form: str, seed: int = 3) -> dict[str, Any]:
    """Whole numbers, so that sums in any order are the same; one heavy row, some empty."""
    rng = np.random.default_rng(seed)

    def matrix(m: int, n: int) -> Any:
        found = np.where(rng.random((m, n)) < density, rng.integers(1, 9, (m, n)), 0).astype(float)
        found[1::3] = 0
        found[m // 2 : m // 2 + 1] = 1
        return store(found, form)

    square = {name: matrix(rows, columns) for name in "ABD"}
    dense = {"X": np.ones((rows, 3)), "Y": np.arange(3.0 * columns).reshape(3, columns)}
    return {**square, "S": matrix(columns, columns), **dense}


def chosen(text: str, given: dict[str, Any]) -> dict[str, Any]:
    return {name: operand for name, operand in given.items() if f"{name}[" in text.split("=")[1]}


@pytest.mark.rotating(2)
@pytest.mark.parametrize("form", ["CSR", "COO", "ss"])
@pytest.mark.parametrize("name", MAIN)
def test_main_expressions(name: str, form: str) -> None:
    text = MAIN[name]
    result = {"CSR": "ds", "COO": "uq", "ss": "ss"}[form]
    stored = chosen(text, example(37, 37, 0.2, form))
    found = tp.evaluate(text, stored, format=result, target=EMULATED)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, stored))


@pytest.mark.parametrize("name", MAIN)
def test_rows_are_sorted_where_that_is_asked_for(name: str) -> None:
    text = MAIN[name]
    stored = chosen(text, example(30, 30, 0.2, "CSR"))
    found, cpu = (
        tp.evaluate(text, stored, format=tp.CSR, target=target) for target in (EMULATED, "c")
    )
    np.testing.assert_array_equal(found.indptr, cpu.indptr)
    np.testing.assert_array_equal(found.indices, cpu.indices)


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (1, 1), (4, 6)])
@pytest.mark.parametrize("name", ["scaled", "added", "multiplied", "product"])
def test_nothing_stored(name: str, shape: tuple[int, int]) -> None:
    text = MAIN[name]
    square = name == "product"
    stored = {n: sp.csr_array(shape) for n in "AB"}
    if square:
        stored = {"A": sp.csr_array(shape), "S": sp.csr_array((shape[1], 3))}
    found = tp.evaluate(text, chosen(text, stored), target=EMULATED)
    assert found.nnz == 0
    assert found.shape == ((shape[0], 3) if square else shape)
    assert found.indptr.tolist() == [0] * (shape[0] + 1)


def test_long_scans() -> None:
    """More rows than one chunk of chunks has."""
    rng = np.random.default_rng(1)
    rows = 70000
    a = sp.random_array((rows, 3), density=0.3, format="csr", rng=rng)
    found = tp.evaluate("C[i,j] = 2 * A[i,j]", A=a, target=EMULATED)
    np.testing.assert_array_equal(found.indptr, a.indptr)
    np.testing.assert_array_equal(found.indices, a.indices)


@pytest.mark.parametrize("text", ["C[i,j] = A[i,j] + 7 * B[i,j]", "C[i,j] = 7 * A[i,k] * S[k,j]"])
def test_entries_that_int32_cannot_count_are_counted_in_int64(text: str) -> None:
    """With a limit of seven entries in place of that of int32."""
    stored = chosen(text, example(9, 9, 0.4, "CSR"))
    limit = property(lambda self: 7 if self.arrays.type.index_dtype == "int32" else None)
    with mock.patch.object(Result, "most_positions", limit):
        found = tp.evaluate(text, stored, target=EMULATED)
    assert found.indptr.dtype == found.indices.dtype == np.int64
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, stored))


@pytest.mark.parametrize("form", ["ds", "dd"])
def test_tables_of_large_results_are_made_in_batches(form: str) -> None:
    """With memory for 64 places in place of 2^27; a table may be larger."""
    stored = {"A": example(40, 40, 0.3, "CSR")["A"]}
    text = "C[i,j] = 5 * A[i,k] * A[k,j]"
    launches: list[str] = []
    launch = Host.launch

    def counted(host: Host, kernel: str, *arguments: Any) -> None:
        launches.append(kernel)
        launch(host, kernel, *arguments)

    with (
        mock.patch.object(row_tables, "PLACES", 64),
        mock.patch.object(row_classes, "CLASSES", ((32, 100), (64, 200))),
        mock.patch.object(Host, "launch", counted),
    ):
        found = tp.evaluate(text, stored, format=form, target=EMULATED)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, stored))
    if form == "ds":
        assert max(map(launches.count, launches)) > 10


def test_the_same_bits_each_run() -> None:
    rng = np.random.default_rng(2)
    a = sp.random_array((60, 60), density=0.2, format="csr", rng=rng)
    runs = [tp.evaluate("C[i,j] = A[i,k] * A[k,j]", A=a, target=EMULATED) for _ in range(3)]
    for run in runs[1:]:
        assert run.data.tobytes() == runs[0].data.tobytes()
        assert run.indices.tobytes() == runs[0].indices.tobytes()


def test_what_is_done_is_told() -> None:
    a = example(9, 9, 0.4, "CSR")["A"]
    told = tp.explain("C[i,j] = A[i,k] * A[k,j]", A=a, target=EMULATED)
    assert "entries are counted first, then written in place" in told
    assert "w[j]: row, a hash table each" in told
    told = tp.explain("C[i,j] = A[i,j] + B[i,j]", A=a, B=a, target=EMULATED)
    assert "one thread walks A2, B2 along j, in order" in told


def test_parts_are_not_appended() -> None:
    given = problem("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR"}, "CSR")
    statement = concretize(given, (("i", "j"), ("i", "j")))
    graph = build_graph(given, statement, assembly=Assembly.APPEND)
    check_assembly(graph)
    with pytest.raises(tp.ScheduleError, match=r"assemble\(C,Insert\)"):
        check_assembly(replace(graph, teams=False))


ENTRIES = "fuse(i,j,f), pos(f,p,A), split(p,tile,in_tile,8), parallelize(tile,CPUThread)"


@pytest.mark.parametrize("name", ["scaled", "sampled"])
def test_entries_are_shared_evenly(name: str) -> None:
    """Threads begin within rows, of which one has many entries."""
    text = MAIN[name]
    stored = chosen(text, example(40, 50, 0.2, "CSR"))
    found = tp.evaluate(text, stored, format=tp.CSR, schedule=ENTRIES, target=EMULATED)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, stored))
    np.testing.assert_array_equal(found.indptr, stored["A"].indptr)


@pytest.mark.parametrize("name", ["added", "product"])
def test_rows_are_shared_as_is_asked_for(name: str) -> None:
    text = MAIN[name]
    stored = chosen(text, example(40, 40, 0.2, "CSR"))
    for schedule in ("parallelize(i,CPUThread)", "split(i,i0,i1,4), parallelize(i0,CPUThread)"):
        found = tp.evaluate(text, stored, format=tp.CSR, schedule=schedule, target=EMULATED)
        np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, stored))


@st.composite
def matrices(draw: st.DrawFn) -> dict[str, Any]:
    m, n, k = (draw(st.integers(0, 12)) for _ in range(3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    shapes = {"A": (m, k), "S": (k, n), "B": (m, n), "D": (m, n)}
    found = {}
    for name, shape in shapes.items():
        numbers = rng.integers(-4, 5, shape) * (rng.random(shape) < density)
        found[name] = store(numbers.astype(float), draw(st.sampled_from(["CSR", "COO", "ss"])))
    return found


@settings(max_examples=25, deadline=None)
@given(
    matrices(),
    st.sampled_from(
        ["C[i,j] = B[i,j] - D[i,j]", "C[i,j] = B[i,j] * D[i,j]", "C[i,j] = A[i,k] * S[k,j]"]
    ),
    st.sampled_from(["ds", "ss", "uq"]),
)
def test_any_matrices(stored: dict[str, Any], text: str, form: str) -> None:
    operands = chosen(text, stored)
    found = tp.evaluate(text, operands, format=form, target=EMULATED)
    np.testing.assert_array_equal(to_dense(found), tp.evaluate_dense(text, operands))


@pytest.mark.parametrize("sizes", [(4, 5, 3), (10, 12, 9), (40, 90, 30), (100, 100, 100)])
def test_a_product_stores_what_it_stores_on_the_cpu(sizes: tuple[int, int, int]) -> None:
    rng = np.random.default_rng(0)
    rows, depth, columns = sizes
    a = sp.csr_array((rng.random((rows, depth)) < 0.1) * 1.0)
    b = sp.csc_array((rng.random((depth, columns)) < 0.1) * 1.0)
    found = tp.einsum("ij,jk->ik", a, b, target="cuda-emulated")
    assert found.nnz == tp.einsum("ij,jk->ik", a, b).nnz
    assert abs(found - a @ b).nnz == 0

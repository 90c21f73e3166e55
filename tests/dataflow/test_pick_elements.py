"""Reductions of the one element that a label selects: a load of it, in C and on a GPU."""

from __future__ import annotations

import re
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taco_py as tp
from codegen.runtime.traced.simulated_caches import SimulatedCache, SimulatedCaches
from taco_py.calls.kernels.simulate_traffic import simulate_traffic
from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.graph_text import parse, to_text
from taco_py.compiler.dataflow.moved_bytes import LINE_BYTES, Caches, compulsory, traffic
from taco_py.compiler.dataflow.nodes import Dataflow, Pick, SlabIndex
from taco_py.compiler.dataflow.pick_elements import pick_elements
from taco_py.compiler.dataflow.rewritten_graph import rewritten
from taco_py.compiler.dataflow.slab_form import ROW_ELEMENTS, NoSlabError, slab_form
from taco_py.compiler.dataflow.verify import verify
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways.on_gpu.gpu_slabs import GPU_SLABS_WAY
from taco_py.compiler.ways.ways import in_slabs
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.formats import dense
from taco_py.language.notation.functions.function_table import EQUAL, make_call
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import ADD, POSITION, SUB
from taco_py.language.notation.tree import map_children
from taco_py.language.problem import Problem, SideResult, TensorType
from tests.dataflow.interpreter import interpret
from tests.dataflow.random_problems import Values
from tests.dataflow.real_kernels import EMULATED, compiled, run
from tests.dataflow.test_rewrites import OPERATORS, operands_of, sizes_of
from tests.dataflow.test_units import needs_gcc

SEEDS = 400
FAR = 2**62
"""A label whose place in an array has no number of 64 bits."""


def without_positions(expr: Expr) -> Expr:
    """The same value, of which nothing says that a vector has the numbers of its index."""
    if isinstance(expr, Call) and expr.operator == POSITION:
        return expr.args[0]
    return map_children(expr, without_positions)


def stripped(problem: Problem) -> Problem:
    target = problem.assignment.target
    return Problem(
        Assignment(target, without_positions(problem.assignment.value)),
        problem.operands,
        problem.result,
        side=tuple(
            SideResult(one.target, one.type, without_positions(one.value)) for one in problem.side
        ),
    )


def picks(graph: Dataflow) -> list[Pick]:
    steps = (step for map in graph.maps for one in map.passes for step in one.body)
    return [step for step in steps if isinstance(step, Pick)]


def test_random_picks_are_the_sums_that_they_stand_for() -> None:
    count = 0
    for seed in range(SEEDS):
        problem = Values(Random(seed), "float64").problem()
        try:
            graph = pick_elements(build(problem, slab_form(problem)))
            plain = pick_elements(build(stripped(problem), slab_form(stripped(problem))))
        except NoSlabError:
            continue
        if not picks(graph):
            continue
        assert not picks(plain)
        count += len(picks(graph))
        operands = operands_of(plain, np.random.default_rng(seed))
        wanted = interpret(plain, operands, sizes_of(plain))
        results = interpret(graph, operands, sizes_of(graph))
        for name, array in wanted.items():
            np.testing.assert_allclose(results[name], array, rtol=1e-9, err_msg=f"{seed}\n{graph}")
        assert parse(to_text(graph), OPERATORS.__getitem__) == graph
    assert count > 20


def labelled(dtype: str = "float32", labels: str = "int64") -> Problem:
    """R[i] = sum(k, X[i,k]) - X[i,l[i]], or minus 0 where there is no such element."""
    mask = Call(EQUAL, (Call(POSITION, (Access("p", ("j",)),)), Access("l", ("i",))))
    number = Literal(0.0, dtype=dtype)
    selected = make_call("where", (mask, Access("X", ("i", "j")), number))
    total = Reduce(ADD, "k", Access("X", ("i", "k")))
    return Problem(
        Assignment(Access("R", ("i",)), Call(SUB, (total, Reduce(ADD, "j", selected)))),
        (
            ("X", TensorType(dense(2), dtype)),
            ("p", TensorType(dense(1), "int64")),
            ("l", TensorType(dense(1), labels)),
        ),
        TensorType(dense(1), dtype),
    )


def labelled_row() -> Problem:
    """R = X[l], or 0 where there is no such element."""
    mask = Call(EQUAL, (Call(POSITION, (Access("p", ("i",)),)), Access("l", ())))
    number = Literal(0.0, dtype="float64")
    selected = make_call("where", (mask, Access("X", ("i",)), number))
    return Problem(
        Assignment(Access("R", ()), Reduce(ADD, "i", selected)),
        (
            ("X", TensorType(dense(1), "float64")),
            ("p", TensorType(dense(1), "int64")),
            ("l", TensorType(dense(0), "int64")),
        ),
        TensorType(dense(0), "float64"),
    )


BY_LABELS = {
    labels: compiled(labelled("float64", labels), in_slabs((64,)))
    for labels in ("int64", "int32", "uint8")
}


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 70), st.sampled_from([*BY_LABELS]), st.integers(0, 99))
def test_labels_of_any_number_in_c(rows: int, columns: int, dtype: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    x[rng.random(x.shape) < 0.1] = np.inf
    least = 0 if dtype == "uint8" else -3
    labels = rng.integers(least, columns + 4, rows).astype(dtype)
    if dtype == "int64":
        labels[rng.random(rows) < 0.2] = rng.choice((FAR, -FAR))
    operands = {"X": x, "p": np.arange(columns), "l": labels}
    sizes = {"i": rows, "j": columns, "k": columns}
    result = run(labelled("float64", dtype), BY_LABELS[dtype], sizes, operands)["R"]
    with np.errstate(invalid="ignore"):
        wanted = x.sum(1) - selected_of(x, labels)
        np.testing.assert_allclose(result, wanted, rtol=1e-9, atol=1e-9)


def selected_of(x: Any, labels: Any) -> Any:
    inside = (labels >= 0) & (labels < x.shape[1])
    elements = [x[row, labels[row]] if inside[row] else 0.0 for row in range(len(labels))]
    return np.array(elements)


@needs_gcc
@pytest.mark.parametrize("labels_dtype", ["int64", "int32"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_of_any_number_on_an_emulated_gpu(dtype: str, labels_dtype: str) -> None:
    problem = labelled(dtype, labels_dtype)
    kernel = compiled(problem, Make(GPU_SLABS_WAY, (64, 8, 4, 2, 0)), EMULATED)
    rng = np.random.default_rng(0)
    for rows, columns in ((1, 1), (37, 31), (5, 29)):
        x = rng.standard_normal((rows, columns)).astype(dtype)
        labels = rng.integers(-2, columns + 2, rows).astype(labels_dtype)
        labels[::7] = np.iinfo(labels_dtype).max // 2
        operands = {"X": x, "p": np.arange(columns), "l": labels}
        result = run(problem, kernel, {"i": rows, "j": columns, "k": columns}, operands)["R"]
        wanted = x.sum(1) - selected_of(x, labels)
        np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-4)


@needs_gcc
def test_blocks_of_a_row_add_the_element_that_a_label_selects_once() -> None:
    problem = labelled_row()
    size = 3 * ROW_ELEMENTS + 5
    x = np.random.default_rng(0).standard_normal(size)
    assert not picks(pick_elements(build(problem, slab_form(problem))))
    assert picks(pick_elements(build(problem, slab_form(problem, inner_sums=True))))
    for make in (in_slabs(), in_slabs((64,))):
        kernel = compiled(problem, make)
        for label, wanted in ((0, x[0]), (5000, x[5000]), (size - 1, x[-1]), (size, 0), (-1, 0)):
            operands = {"X": x, "p": np.arange(size), "l": np.array(label)}
            np.testing.assert_array_equal(run(problem, kernel, {"i": size}, operands)["R"], wanted)


def test_a_block_that_picks_of_its_own_index_is_no_graph() -> None:
    problem = labelled_row()
    graph = pick_elements(build(problem, slab_form(problem, inner_sums=True)))
    (only,) = graph.maps
    verify(graph)
    blocks = replace(only, slab=(SlabIndex("i", ROW_ELEMENTS),))
    with pytest.raises(InternalError, match="slabs have all of what they pick of"):
        verify(replace(graph, maps=(blocks,)))


def test_a_vector_that_may_hold_other_numbers_is_read() -> None:
    problem = stripped(labelled())
    assert not picks(rewritten(problem, slab_form(problem)).graph)


def test_bytes_of_single_elements() -> None:
    problem = labelled()
    form = slab_form(problem)
    graph = rewritten(problem, form).graph
    assert [pick.buffer for pick in picks(graph)] == ["X"]
    sizes = {"i": 100.0, "k": 3000.0, "j": 3000.0}
    whole = 100 * 3000 * 4 + 100 * 8 + 100 * 4
    caches = Caches(1e9, 1e9)
    assert traffic(graph, sizes, caches).dram == whole == compulsory(graph, sizes)
    single = Problem(
        Assignment(Access("R", ("i",)), _sum_of_selected(problem)), problem.operands, problem.result
    )
    alone = rewritten(single, slab_form(single, inner_sums=True)).graph
    assert picks(alone)
    assert traffic(alone, sizes, caches).dram == 100 * (LINE_BYTES + 8 + 4)
    assert compulsory(alone, sizes) == 100 * (LINE_BYTES + 8 + 4)


def _sum_of_selected(problem: Problem) -> Expr:
    value = problem.assignment.value
    assert isinstance(value, Call)
    return value.args[1]


# ---------------------------------------------------------------- cross entropy


def expected(x: Any, labels: Any) -> Any:
    most = x.max(-1, keepdims=True)
    sums = np.log(np.exp(x - most).sum(-1)) + most[:, 0]
    inside = (labels >= 0) & (labels < x.shape[1])
    chosen = x[np.arange(len(labels)), np.where(inside, labels, 0)]
    return np.where(inside, sums - chosen, np.nan)


LOSSES = tp.fuse(lambda x, labels: tp.nn.cross_entropy(x, labels, reduction="none"))


@pytest.mark.parametrize("labels_dtype", ["int64", "int32"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(33, 70), (5, 2), (64, 257)])
def test_cross_entropy_is_one_kernel_that_reads_rows_twice(
    shape: tuple[int, int], dtype: str, labels_dtype: str
) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    labels = rng.integers(-1, shape[1] + 1, shape[0]).astype(labels_dtype)
    for _ in range(2):
        losses = LOSSES(x, labels)
        assert losses.dtype == dtype
        rtol = 1e-9 if dtype == "float64" else 2e-5
        np.testing.assert_allclose(losses, expected(x, labels), rtol)
    text = LOSSES.graph(x, labels).explain()
    assert " = pick " in text and len(re.findall(r"= load \w+\[i,j\]", text)) == 2
    assert " 1 kernel, 0 copies" in text


def test_gradient_of_cross_entropy_with_labels_that_are_no_class() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((9, 7)), np.array([0, 6, 3, -1, 7, 2, 2, 1, 5])
    loss = tp.fuse(lambda x: tp.nn.cross_entropy(x, labels, reduction="none")[:3].sum())
    gradient = tp.grad(loss, "x")(x)
    for _ in range(3):
        step = rng.standard_normal(x.shape)
        apart = expected(x + 1e-6 * step, labels) - expected(x - 1e-6 * step, labels)
        np.testing.assert_allclose((gradient * step).sum(), apart[:3].sum() / 2e-6, rtol=1e-6)


def test_cross_entropy_moves_each_row_once() -> None:
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((600, 2000), np.float32), rng.integers(0, 2000, 600)
    caches = SimulatedCaches((SimulatedCache(32 << 10, 8), SimulatedCache(512 << 10, 16)))
    waiting: list[Any] = []

    def call() -> Any:
        if not waiting:
            waiting.append(tp.fuse(lambda x, labels: tp.nn.cross_entropy(x, labels)))
        return waiting[0](x, labels)

    counted = simulate_traffic(caches, call).total.dram_bytes
    assert counted == pytest.approx(x.nbytes + labels.nbytes, rel=0.05)

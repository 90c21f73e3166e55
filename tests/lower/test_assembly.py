"""Assembly of sparse results: what is reserved when, and what happens beyond the index type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.emit.c import emit_c
from codegen.ir import Block, For, Function, If, Module, Reserve, SetLength, Sort, Stmt, While
from codegen.passes.order import run_passes
from codegen.runtime.kernel_cache import KernelSource
from codegen.runtime.signature import signature_of
from codegen.tree import find, rewrite
from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.driver import compile_recipe, native_target
from taco_py.compiler.iteration.graph import build_graph
from taco_py.compiler.lower.lower import lower
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import TensorData
from taco_py.data.tensors.tensor import as_data
from taco_py.planner.ir.nodes import KernelStep
from taco_py.running.execute.first_allocation import first_room
from taco_py.running.execute.run import Execution, compute, index_dtype_of, run
from tests.problems import plan, problem

ADD = "C[i,j] = A[i,j] + B[i,j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
CSR = {"A": "CSR", "B": "CSR"}


def lowered(text: str, order: tuple[str, ...], index_dtype: str = "int32") -> Function:
    """The loop IR of `text` over CSR matrices."""
    given = problem(text, CSR, "CSR")
    given = replace(given, result=replace(given.result, index_dtype=index_dtype))
    orders = (order,) * text.split("=")[1].count("+") + (order,)
    statement = concretize(given, orders)
    return lower(given, build_graph(given, statement), "evaluate").function


def depths(body: Block, depth: int = 0) -> Iterator[tuple[Stmt, int]]:
    """Each statement with the number of loops around it."""
    for stmt in body.body:
        yield stmt, depth
        match stmt:
            case Block():
                yield from depths(stmt, depth)
            case For() | While():
                yield from depths(stmt.body, depth + 1)
            case If():
                yield from depths(stmt.then, depth)
                yield from depths(stmt.orelse, depth)


@pytest.mark.parametrize(
    ("text", "order"), [(ADD, ("i", "j")), (PRODUCT, ("i", "k", "j"))], ids=["add", "product"]
)
def test_room_is_made_a_row_at_a_time(text: str, order: tuple[str, ...]) -> None:
    found = {
        (stmt.array.name, depth)
        for stmt, depth in depths(lowered(text, order).body)
        if isinstance(stmt, Reserve)
    }
    assert found == {("C2_pos", 0), ("C2_crd", 1), ("C_vals", 1)}


def test_the_edges_are_reserved_once() -> None:
    reserves = [r for r in find(lowered(ADD, ("i", "j")), Reserve) if r.array.name == "C2_pos"]
    assert len(reserves) == 1


def test_the_list_of_a_row_is_as_narrow_as_the_coordinates() -> None:
    (sort,) = find(lowered(PRODUCT, ("i", "k", "j")), Sort)
    assert sort.array.element.name == "int32"
    (wide,) = find(lowered(PRODUCT, ("i", "k", "j"), "int64"), Sort)
    assert wide.array.element.name == "int64"


def limits(index_dtype: str) -> dict[str, int | None]:
    function = lowered(ADD, ("i", "j"), index_dtype)
    return {s.array.name: s.limit for s in find(function, SetLength)}


def test_entries_are_counted_up_to_the_end_of_the_index_type() -> None:
    assert limits("int32") == {"C2_pos": None, "C2_crd": 2**31 - 1, "C_vals": None}
    assert set(limits("int64").values()) == {None}


def with_limit(function: Function, limit: int) -> Function:
    """`function` as if the index type counted to `limit` only."""

    def lower_it(node: Any) -> Any:
        limited = isinstance(node, SetLength) and node.limit is not None
        return replace(node, limit=limit) if limited else node

    changed: Function = rewrite(function, lower_it)
    return changed


def test_a_kernel_says_when_it_passes_its_limit() -> None:
    target = native_target()
    module = run_passes(Module((with_limit(lowered(ADD, ("i", "j")), 2),)), target)
    signatures = tuple(signature_of(f) for f in module.functions)
    source = KernelSource(emit_c(module, target), signatures)
    call = KERNELS.get_or_build("limit of 2", lambda: source).kernel.functions["evaluate"]

    def add(columns: list[int]) -> Any:
        pos = np.array([0, len(columns)], np.int32)
        matrix = (pos, np.array(columns, np.int32), np.ones(len(columns)))
        return call(0, 0, 0, *matrix, *matrix, 1)

    assert add([3, 5])[1].tolist() == [3, 5]
    with pytest.raises(OverflowError, match="index type"):
        add([3, 5, 6])
    assert add([4])[2].tolist() == [2.0]


def refuse(*_: Any) -> Any:
    raise OverflowError


class Kept(dict[str, TensorData]):
    """Tensors by name, of which temporaries stay when no step reads them any more."""

    def pop(self, name: str, *_: Any) -> TensorData:
        return self[name]


def test_entries_that_int32_cannot_count_are_counted_in_int64() -> None:
    """The kernel is replaced by one that says so; the second step reads what the first one made."""
    a: Any = sp.random_array((20, 30), density=0.2, format="csr", rng=np.random.default_rng(1))
    chain = plan(problem("D[i,l] = A[i,k] * B[k,j] * E[j,l]", {**CSR, "E": "CSR"}))
    first = next(step for step in chain.steps if isinstance(step, KernelStep))
    kernel = compile_recipe(Recipe(first.problem, first.schedule))
    tensors = Kept(A=as_data(a), B=as_data(a.T.tocsr()), E=as_data(a))
    execution = Execution(
        tensors, 1, kernels={(first.target, "evaluate"): replace(kernel, call=refuse)}
    )
    result = run(chain, execution)
    assert index_dtype_of(execution.tensors[first.target]) == "int64"
    expected = (a @ a.T @ a).toarray()
    assert np.allclose(tp.Tensor(result).to_numpy(), expected)


def test_dense_overflow_is_not_tried_twice() -> None:
    (step,) = plan(problem("y[i] = A[i,j] * x[j]", {"A": "CSR"})).steps
    assert isinstance(step, KernelStep)
    kernel = replace(compile_recipe(step.recipe()), call=refuse)
    tensors = {"A": as_data(sp.eye_array(3, format="csr")), "x": as_data(np.ones(3))}
    execution = Execution(tensors, 1, kernels={(step.target, "evaluate"): kernel})
    with pytest.raises(OverflowError):
        compute(step, execution, None)


def test_sparse_results_start_with_room_for_their_operands() -> None:
    given = problem(ADD, CSR, "CSR")
    a = as_data(sp.eye_array(7, format="csr"))
    kernel = compile_recipe(Recipe(given, Schedule.of_orders([("i", "j"), ("i", "j")])))
    rooms = {
        parameter.name: first_room(source, {"A": a, "B": a})
        for parameter, source in kernel.parameters
        if parameter.name.startswith("C")
    }
    assert rooms == {"C2_pos": 0, "C2_crd": 14, "C_vals": 14}


def test_a_pattern_does_not_ask_values() -> None:
    """Whether a sum under a divisor is stored decides its value, and none of the coordinates."""
    rows = tp.Tensor.from_coo([np.array([0, 2, 5])], [1.0, 2.0, 3.0], (7,), format="s")
    columns = tp.Tensor.from_coo([np.array([0, 3])], [2.0, 4.0], (5,), format="s")
    operands = {"a": rows, "b": columns, "c": np.array(2.0)}
    text = "R[i] = a[i] / b[j] / c"
    kernel = tp.compile(text, a="s", b="s", c=tp.dense(0), R="s")
    found = kernel.compute(kernel.assemble(**operands), **operands)
    np.testing.assert_array_equal(found.to_numpy(), tp.evaluate_dense(text, operands))

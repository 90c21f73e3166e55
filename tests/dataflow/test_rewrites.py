"""Rewrites of dataflow graphs: no memory's bytes rise, and results stay as they are."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.graph_text import parse, to_text
from taco_py.compiler.dataflow.moved_bytes import Caches, traffic
from taco_py.compiler.dataflow.nodes import Dataflow
from taco_py.compiler.dataflow.optimize import length, optimize
from taco_py.compiler.dataflow.pick_elements import pick_elements
from taco_py.compiler.dataflow.rewrites.rewrite_table import REWRITES
from taco_py.compiler.dataflow.slab_form import NoSlabError, SlabForm, slab_form
from taco_py.compiler.dataflow.verify import verify
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.functions.function_table import EQUAL, MAX, MIN, WHERE, make_call
from taco_py.language.notation.nodes import Call, Literal
from taco_py.language.notation.operators import ADD, MUL, POSITION, SUB
from tests.dataflow.interpreter import interpret
from tests.dataflow.random_problems import Values

GRAPHS = 2000
SIZES = {"i": 3, "j": 4, "k": 5}
EXP = make_call("exp", (Literal(1),))
assert isinstance(EXP, Call)
OPERATORS = {op.name: op for op in (ADD, SUB, MUL, MAX, MIN, EXP.operator, EQUAL, WHERE, POSITION)}


def drawn(seed: int) -> tuple[Dataflow, SlabForm] | None:
    """The graph of a random problem before any rewrite; None where it is none of slabs."""
    problem = Values(Random(seed), "float64").problem()
    try:
        form = slab_form(problem)
    except NoSlabError:
        return None
    graph = build(problem, form)
    graph = pick_elements(graph) if seed % 4 else graph
    return (graph, form) if form.slab else None


def operands_of(graph: Dataflow, numbers: np.random.Generator) -> dict[str, np.ndarray]:
    operands = {}
    for buffer in graph.buffers:
        if buffer.role.value == "operand":
            shape = tuple(SIZES[index[0]] for index in buffer.indices)
            whole = {"p": np.arange(shape[0] if shape else 1), "l": numbers.integers(-2, 7, shape)}
            operands[buffer.name] = whole.get(buffer.name, numbers.uniform(-1, 1, shape))
    return operands


def sizes_of(graph: Dataflow) -> dict[str, int]:
    """The size of each index: modes have names that begin with the letter of one of `SIZES`."""
    indices = dict.fromkeys(index for buffer in graph.buffers for index in buffer.indices)
    loops = (index for map in graph.maps for one in map.passes for index in one.over)
    return {index: SIZES[index[0]] for index in (*indices, *loops)}


def assert_same(
    graph: Dataflow, wanted: dict[str, np.ndarray], operands: dict[str, np.ndarray]
) -> None:
    found = interpret(graph, operands, sizes_of(graph))
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-9, err_msg=str(graph))


@pytest.mark.parametrize("part", range(4))
def test_no_rewrite_raises_a_component_or_changes_results(part: int, thorough: bool) -> None:
    """Rewrites in random order, each checked: traffic, rules of graphs, and what they compute."""
    tried = 0
    for seed in range(part, GRAPHS if thorough else GRAPHS // 8, 4):
        graph_and_form = drawn(seed)
        if graph_and_form is None:
            continue
        tried += 1
        graph, form = graph_and_form
        numbers, rng = Random(seed), np.random.default_rng(seed)
        sizes = {index: float(numbers.choice((1, 7, 300, 5000))) for index in form.order}
        caches = Caches(
            float(numbers.choice((0, 10**5, 10**9))), float(10 ** numbers.randint(3, 8))
        )
        operands = operands_of(graph, rng)
        wanted = interpret(graph, operands, sizes_of(graph))
        verify(graph)
        now, changed = traffic(graph, sizes, caches), True
        while changed:
            changed = False
            for rewrite in numbers.sample(REWRITES, len(REWRITES)):
                for site in rewrite.sites(graph):
                    after = traffic(site.graph, sizes, caches)
                    try:
                        verify(site.graph)
                    except InternalError as error:
                        raise AssertionError(
                            f"{seed} {rewrite.name} {site.site}: {error}\n{graph}\n{site.graph}"
                        ) from error
                    if after.rises_from(now):
                        continue
                    if after != now or length(site.graph) < length(graph):
                        assert_same(site.graph, wanted, operands)
                        graph, now, changed = site.graph, after, True
                        break
        assert parse(to_text(graph), OPERATORS.__getitem__) == graph
    assert tried > 40


def test_the_order_of_rewrites_leaves_the_same_bytes_of_main_memory() -> None:
    """What greedy rewriting reaches does not depend on the order: there is no search back."""
    for seed in range(200):
        graph_and_form = drawn(seed)
        if graph_and_form is None:
            continue
        graph, form = graph_and_form
        sizes, caches = dict.fromkeys(form.order, 1000.0), Caches(1e9, 1e3)
        first = optimize(graph, sizes, caches)
        second = optimize(graph, sizes, caches, tuple(reversed(REWRITES)))
        assert first.after.dram == second.after.dram, f"{seed}\n{first.graph}\n{second.graph}"

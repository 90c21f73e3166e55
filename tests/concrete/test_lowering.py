"""Every expression of the corpus, in a few formats, through the middle layers without a compiler.

The concrete notation of each kernel is legal and prints the same each time; so is its loop IR, in
each phase.
"""

from __future__ import annotations

import pytest

from codegen.passes.phases import structure_only
from codegen.verify import verify as verify_function
from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.concrete.verify import verify
from taco_py.compiler.iteration.graph import build_graph
from taco_py.compiler.lower.lower import lower
from taco_py.compiler.schedule.parallel import choose_parallel
from taco_py.language.phase import COMPUTE, EVALUATE
from taco_py.planner.ir.nodes import KernelStep
from tests.corpus.combine import each_once
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import operand_options, result_options
from tests.problems import plan, problem


def kernels(case: Case, rows: int) -> list[KernelStep]:
    """The kernels of a case in that many format combinations, each once."""
    options = [
        *(operand_options(len(shape), more=True) for shape in case.shapes.values()),
        result_options(len(case.result_shape), more=True),
    ]
    found: dict[tuple[object, ...], KernelStep] = {}
    for row in each_once(options)[:rows]:
        formats = dict(zip(case.shapes, map(str, row[:-1]), strict=True))
        for kernel in plan(problem(case.text, formats, row[-1])).kernels:
            found[kernel.problem, kernel.schedule.orders] = kernel
    return list(found.values())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_lowered_is_legal(case: Case) -> None:
    for kernel in kernels(case, rows=3):
        statement = concretize(kernel.problem, kernel.schedule.orders)
        verify(kernel.problem, statement)
        marked = choose_parallel(build_graph(kernel.problem, statement), kernel.schedule).statement
        verify(kernel.problem, marked)
        graph = build_graph(kernel.problem, marked)
        function = lower(kernel.problem, graph, "evaluate").function
        verify_function(function)
        assert lower(kernel.problem, graph, "evaluate").function == function


@pytest.mark.parametrize("case", CASES[:: len(CASES) // 12], ids=lambda case: case.name)
def test_each_phase_is_legal(case: Case) -> None:
    for kernel in kernels(case, rows=2):
        graph = build_graph(kernel.problem, concretize(kernel.problem, kernel.schedule.orders))
        for phase in (EVALUATE, COMPUTE):
            function = lower(kernel.problem, graph, phase).function
            verify_function(function)
            verify_function(structure_only(function))

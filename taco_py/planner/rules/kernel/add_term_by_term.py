"""Add terms to a dense result one by one: full ones in vectors, sparse ones at their entries.

    C[i,j] = A[i,j] + D[i,j]    by loops(i,j), loops(i,j)
    → the same    by loops(i,j), loops(i,j), fission(j)
    forall i (forall j C[i,j] = D[i,j];  forall j C[i,j] += A[i,j])

The second loop over j goes through A's entries. One loop for all terms asks at each coordinate
whether the sparse ones have an entry there, which no vector does. Loops around it stay shared, so
that what is added to is near.
"""

from __future__ import annotations

from dataclasses import replace

from taco_py.compiler.concrete.nodes import Assign
from taco_py.compiler.iteration.graph import IterationGraph, Loop, all_iterators
from taco_py.compiler.iteration.lattice import is_full
from taco_py.compiler.iteration.region import Everything, Regions
from taco_py.compiler.schedule.commands import Fission
from taco_py.compiler.schedule.fission import addends
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.ways import way_of
from taco_py.language.legal.stored import is_sparse
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import KernelStep
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Outcome, Phase, Rewrite, Rule, Site, Trait, kernels


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Give each term of a sum of full and sparse ones a loop of its own."""
    kernel = program.kernel(site.target)
    if not way_of(kernel.schedule.make).in_loops or kernel.schedule.on_loops.commands:
        return None
    split = added_in_turn(kernel)
    return None if split is kernel else Rewrite(program.with_kernel(split), split.in_turn)


def added_in_turn(kernel: KernelStep) -> KernelStep:
    """Return `kernel` with `fission(…)` of the loop that merges sparse terms with full ones."""
    problem = kernel.problem
    if is_sparse(problem.result.format) or len(kernel.schedule.orders) == 1:
        return kernel
    graph = Loops(problem.assignment, kernel.schedule.orders).graph(problem)
    shared_loop = next((loop for loop in graph.loops if _pays(graph, loop)), None)
    if shared_loop is None:
        return kernel
    sparse = ", ".join(map(str, shared_loop.lattice.iterators))
    index = shared_loop.index
    reason = f"terms in turn, each in a loop over {index}: full ones all along, others at {sparse}"
    schedule = kernel.schedule.then(Schedule((Fission(shared_loop.index),)))
    return replace(kernel, schedule=schedule, in_turn=reason)


def _pays(graph: IterationGraph, loop: Loop) -> bool:
    """Tell whether a loop adds full terms and terms that only some coordinates have."""
    body = loop.body
    if not loop.merges or not isinstance(body, Assign):
        return False
    if body.operator is not None or body.target != graph.problem.assignment.target:
        return False
    regions = Regions(all_iterators(graph.problem, graph.statement), frozenset())
    values = addends(graph.problem, graph.statement, body, loop.index)
    regions_ = [regions.expression(value, loop.index) for value in values]
    sparse = [region for region in regions_ if not isinstance(region, Everything)]
    return 0 < len(sparse) < len(regions_) and not any(map(is_full, sparse))


RULE = Rule("add_term_by_term", Phase.KERNEL, apply, kernels, traits=Trait.WALKS)

"""The expected seconds of values that kernels compute of dense tensors and of products' elements.

    y[i] = sum(j, exp(S[i,j]))  by loops(i,j)    →   of its dataflow graph
    max(sum(k, X[i,k] * W[k,j]) + b[j], 0)       →   of the product, and + and max for each i, j

A kernel that joins several is priced as one: what it keeps near moves no bytes, and what it makes
once costs once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.dataflow.build_dataflow import build
from taco_py.compiler.dataflow.graph_seconds import (
    Work,
    seconds_of_graph,
    work_of_operator,
)
from taco_py.compiler.dataflow.nodes import Dataflow
from taco_py.compiler.dataflow.pick_elements import pick_elements
from taco_py.compiler.dataflow.slab_form import NoSlabError, SlabForm, slab_form
from taco_py.compiler.epilogue.of_problem import MainLoop, main_loop
from taco_py.compiler.order.orders import order_cost
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.legal.stored import is_full_problem
from taco_py.language.notation.checks import accesses, all_indices
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.tree import all_calls, children
from taco_py.language.problem import Problem


def seconds_in_slabs(graph: Dataflow, form: SlabForm, stats: Statistics) -> float:
    """Return the seconds of a dataflow graph of the slabs of a problem."""
    sizes = {mode: stats.sizes[names[0]] for mode, names in form.names.items()}
    return seconds_of_graph(graph, sizes, stats.machine)


def seconds_of_values(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of loops over dense tensors, or of a product with its epilogue.

    None where neither is known: the loops of each term are priced then.
    """
    seconds = seconds_in_vectors(problem, schedule, stats)
    all_dense = is_full_problem(problem)  # a sparse factor restricts the loops of a product
    loop = main_loop(problem) if seconds is None and all_dense else None
    if loop is None or loop.product.value == problem.assignment.value:
        return seconds
    return seconds_in_loops(loop, schedule, stats)


def seconds_in_loops(loop: MainLoop, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of a product's loops and of its epilogue; None without their order."""
    terms = split_terms(loop.problem.assignment.value)
    indices = {*all_indices(loop.problem.assignment)}
    order = next((order for order in schedule.orders if {*order} == indices), None)
    if len(terms) > 1 or order is None:
        return None
    steps = order_cost(loop.problem, terms[0], stats, order)
    return steps * stats.machine.step_seconds + seconds_of_epilogue(loop, stats)


def seconds_in_vectors(problem: Problem, schedule: Schedule, stats: Statistics) -> float | None:
    """Return the seconds of loops over dense tensors; None where no loop runs along neighbours."""
    if not _runs_along_neighbours(problem, schedule):
        return None
    try:
        form = slab_form(problem)
    except NoSlabError:
        return None
    return seconds_in_slabs(pick_elements(build(problem, form)), form, stats)


def _runs_along_neighbours(problem: Problem, schedule: Schedule) -> bool:
    """Tell whether all arrays that have the index of an innermost loop store it last."""
    every = (problem.assignment.target, *accesses(problem.assignment.value))
    arrays = [(problem.stored(access), problem.type_of(access.tensor)) for access in every]
    return all(
        stored[-1] == order[-1] and type.unit_stride
        for order in schedule.orders
        for stored, type in arrays
        if order and order[-1] in stored
    )


def seconds_of_epilogue(loop: MainLoop, stats: Statistics) -> float:
    """Return the seconds that an epilogue takes besides its product."""
    dtype, product = loop.problem.result.dtype, loop.product
    total = Work()
    for part in dict.fromkeys(_parts(loop)):
        indices = {index for access in accesses(part) for index in access.indices}
        rounds = stats.volume(indices.intersection((product.rows, product.columns)))
        total += _work_of(part, dtype).times(rounds)
    return total.seconds(stats.machine)


def _work_of(part: Expr, dtype: str) -> Work:
    """Return the work of the operator of an expression, for one element."""
    match part:
        case Call(operator, _):
            return work_of_operator(operator, dtype)
        case Access() | Literal() | Reduce():
            return Work()
    assert_never(part)


def _parts(loop: MainLoop) -> Iterator[Expr]:
    """Yield the parts of all outputs that are outside of the product."""
    waiting = [output.value for output in loop.outputs]
    while waiting:
        expr = waiting.pop()
        if expr != loop.product.value:
            yield expr
            waiting += children(expr)


def work_of_functions(value: Expr, dtype: str) -> Work:
    """Return the work of the functions and quotients of an expression, for one element."""
    calls = dict.fromkeys(all_calls(value))
    every = (work_of_operator(call.operator, dtype) for call in calls)
    return sum((work for work in every if not work.quick), Work())

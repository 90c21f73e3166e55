"""One assignment as one kernel: its loop orders, the copies they need, what it appends to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from codegen.names import Names
from taco_py.autoschedule.orders import best_order, needs_copy
from taco_py.concrete.concretize import (
    Order,
    can_scatter,
    copies_pattern,
    result_order,
    shared_prefix,
)
from taco_py.concrete.terms import Term, split_terms
from taco_py.convert.convert import describe
from taco_py.cost.estimate import Pattern, Statistics
from taco_py.formats import Format, dense
from taco_py.notation.checks import accesses, operand_names
from taco_py.notation.nodes import Access, Assignment
from taco_py.notation.tree import map_accesses
from taco_py.plan.formats import appendable, is_tall, reordered, with_chain
from taco_py.plan.nodes import Compute, Operand, Reformat, Step
from taco_py.problem import Problem, TensorType

SMALL = 64
"""A size below which no size is told from another."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller wants: the result's type, and sizes to compile in, by index."""

    type: TensorType
    static: tuple[tuple[str, int], ...] = ()


def statistics(assignment: Assignment, operands: Mapping[str, Operand]) -> Statistics:
    """Sizes and patterns of one assignment's operands, those of a tiny problem taken for small.

    The best order of a kernel that takes microseconds does not matter; that it is the order of the
    next larger operands does, for the kernel is compiled then already.
    """
    found = list(accesses(assignment))
    tiny = max((n for a in found for n in operands[a.tensor].shape), default=0) < SMALL
    floor = SMALL if tiny else 1
    sizes: dict[str, float] = {}
    for access in found:
        shape = operands[access.tensor].shape
        sizes.update((i, float(max(n, floor))) for i, n in zip(access.indices, shape, strict=True))
    patterns = {}
    for access in found:
        operand = operands[access.tensor]
        volume = prod((sizes[i] for i in access.indices), start=1.0)
        form = operand.type.format
        nnz = volume if form.is_dense else min(volume, max(operand.nnz, floor * floor / 8))
        patterns[access.tensor] = Pattern(nnz, form)
    return Statistics(sizes, patterns)


def plan_single(
    assignment: Assignment,
    operands: Mapping[str, Operand],
    request: Request,
    names: Names,
    orders: tuple[Order, ...] | None = None,
) -> tuple[Step, ...]:
    """Copies first, then the kernel, then the conversion of what cannot be appended to."""
    stats = statistics(assignment, operands)
    draft = _problem(assignment, operands, request)
    if not copies_pattern(draft):
        draft = _with_result(draft, appendable)
    terms = split_terms(assignment.value)
    if orders is None:
        orders = tuple(best_order(draft, term, stats).order for term in terms)
    copies = _copies(draft, terms, orders, names, stats)
    everything = {**operands, **{c.target: _copied(operands[c.source], c) for c in copies.values()}}
    value = map_accesses(assignment.value, lambda access: _walked(access, copies))
    final = _problem(replace(assignment, value=value), everything, request)
    final = replace(final, result=draft.result)
    final = _chained(final, orders)
    target = assignment.target.tensor
    steps: list[Step] = [*copies.values(), Compute(target, final, orders, _size_sources(final))]
    wanted = request.type.format
    if str(final.result.format) != str(wanted):
        reason = f"the result is wanted as {wanted}: {describe(final.result.format, wanted)}"
        steps.append(Reformat(names.fresh(target), target, wanted, reason))
    return tuple(steps)


def _size_sources(problem: Problem) -> tuple[tuple[str, str, int], ...]:
    found = {
        index: (index, access.tensor, mode)
        for access in reversed(accesses(problem.assignment))
        for mode, index in enumerate(access.indices)
    }
    return tuple(found.values())


def _problem(assignment: Assignment, operands: Mapping[str, Operand], request: Request) -> Problem:
    types = tuple((name, operands[name].type) for name in operand_names(assignment))
    return Problem(assignment, types, request.type, request.static)


def _with_result(problem: Problem, change: Callable[[Format], Format]) -> Problem:
    result = problem.result
    return replace(problem, result=replace(result, format=change(result.format)))


def _chained(problem: Problem, orders: tuple[Order, ...]) -> Problem:
    """With a result that several loops can scatter into.

    That part of it becomes a coordinate list, or a dense array where only rows can be absent.
    """
    prefix = shared_prefix(problem, split_terms(problem.assignment.value), orders)
    depth = len(prefix)
    rest = len(result_order(problem)) - depth
    if rest < 2 or can_scatter(problem, depth):
        return problem
    if depth == 0 and is_tall(problem.result.format):
        return _with_result(problem, lambda form: dense(form.order))
    return _with_result(problem, lambda form: with_chain(form, depth))


def _copies(
    problem: Problem,
    terms: tuple[Term, ...],
    orders: tuple[Order, ...],
    names: Names,
    stats: Statistics,
) -> dict[Access, Reformat]:
    """For each access that its term's order cannot walk: the copy to walk instead."""
    found: dict[Access, Reformat] = {}
    made: dict[tuple[str, str], Reformat] = {}
    for term, order in zip(terms, orders, strict=True):
        for access in accesses(term.body):
            if access in found or not needs_copy(problem, term, access, order):
                continue
            form = problem.type_of(access.tensor).format
            target = reordered(form, access, order, _entries_a_row(access, order, stats))
            key = (access.tensor, str(target))
            if key not in made:
                reason = f"loops run in the order {','.join(order)}: {describe(form, target)}"
                name = names.fresh(f"{access.tensor}_{''.join(_stored(access, target))}")
                made[key] = Reformat(name, access.tensor, target, reason)
            found[access] = made[key]
    return found


def _entries_a_row(access: Access, order: Order, stats: Statistics) -> float:
    """How many entries there are for each coordinate of the index that is bound first."""
    first = min(access.indices, key=order.index)
    return stats.patterns[access.tensor].nnz / stats.sizes[first]


def _stored(access: Access, form: Format) -> tuple[str, ...]:
    """The access's indices in the order in which `form` stores them."""
    return tuple(access.indices[mode] for mode in form.mode_order)


def _copied(source: Operand, copy: Reformat) -> Operand:
    return replace(source, type=replace(source.type, format=copy.format))


def _walked(access: Access, copies: Mapping[Access, Reformat]) -> Access:
    """The access of the copy to walk instead, if there is one."""
    copy = copies.get(access)
    return access if copy is None else replace(access, tensor=copy.target)

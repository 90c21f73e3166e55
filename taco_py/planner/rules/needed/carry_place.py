"""Find places of extrema in steps of their own, value and place carried through one loop.

    y[i] = min(j, place(logical_or(A[i,j] == max(k, A[i,k]), A[i,j] != A[i,j]), p[j], n)) - 1
    → T[i] = min(j, place(logical_or(A[i,j] == max(k, A[i,k]), A[i,j] != A[i,j]), p[j], n))
      y[i] = T[i] - 1

of the text y[i] = argmax(j, A[i,j]) - 1. What is an assignment as a whole stays one: a kernel of
`ways/places` makes it. Elsewhere loops compare each element with the extremum of its line, which is
another temporary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod

from taco_py.compiler.ways.place_match import place_of, walk_of
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.tree import children, exchange
from taco_py.language.problem import Problem, TensorType
from taco_py.planner.context import Context
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Define, Program
from taco_py.planner.rules.base import Phase, Rewrite, Rule, Site, Trials, program_site

REASON = "value and place are found in one loop"


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Put each place of an extremum inside an expression in a temporary."""
    for target in [define.target for define in program.defines]:
        while (first := _first(program, target)) is not None:
            place, assignment, facts = first
            extended = program.before(
                target, (Define(assignment, REASON),), {assignment.target.tensor: facts}
            )
            outer = extended.define(target).assignment
            value = exchange(outer.value, place, assignment.target)
            program = yield Rewrite(extended.with_assignment(replace(outer, value=value)), REASON)


def _first(program: Program, target: str) -> tuple[Expr, Assignment, Operand] | None:
    """Return the first inner place of an extremum that one loop can find, with its step
    and facts.
    """
    outer = program.define(target).assignment
    for place in _inside(outer.value):
        name = program.fresh("T")
        assignment = Assignment(Access(name, free_indices(place)), place)
        form = program.usual_format(assignment)
        if place is outer.value or not is_full(form):
            continue
        type = TensorType(form, "int64", program.facts[target].type.index_dtype)
        operands = {a.tensor for a in accesses(place)}
        types = tuple((name_, program.facts[name_].type) for name_ in sorted(operands))
        if walk_of(Problem(assignment, types, type, program.static)) is None:
            continue
        shape = tuple(int(program.sizes[index]) for index in assignment.target.indices)
        return place, assignment, Operand(type, shape, float(prod(shape)))
    return None


def _inside(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, Reduce) and place_of(expr) is not None:
        yield expr
    for child in children(expr):
        yield from _inside(child)


RULE = Rule("carry_place", Phase.NECESSARY, apply, program_site, on_host=True)

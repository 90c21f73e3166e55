"""Compute a value once that is looked for among others, and compare what is stored.

    a[u] = min(i, where(sum(k, U[u,k] * Y[i,k]) == max(j, sum(k, U[u,k] * Y[j,k])), p[i], n))
    → T[u,i] = sum(k, U[u,k] * Y[i,k])
      a[u] = min(i, where(T[u,i] == max(j, T[u,j]), p[i], n))

Two loops round a sum, or a product that is added to, in two ways, so that a maximum equals none of
the values that it was taken from. Both sides of such a comparison read one tensor, which no later
rule computes where it is read: the program says so (`once`), and a rewrite without the step that
makes it is refused. What rounds nothing, or once, stays where it is; so does a tensor of the text
that is made of more than that and compared with itself, which is marked alike.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from taco_py.compiler.cost.estimate import result_size
from taco_py.language.legal.absent import fill_of, same
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.notation.compared_values import compared, form_of, occurrences
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import FILLED, Number
from taco_py.language.notation.rewrites.fills import filled_of_type, stored_alone
from taco_py.language.notation.tree import is_call_of, map_children
from taco_py.language.problem import TensorType
from taco_py.planner.context import Context
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Define, Program
from taco_py.planner.rules.base import Phase, Rewrite, Rule, Site, Trials, program_site

REASON = "it is compared with itself: computed once, and stored"


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Store each expression that is compared with itself, and read it wherever it occurs."""
    assignments = [define.assignment for define in program.defines]
    repeated = compared(assignments, program.dtypes)
    if repeated.tensors:
        program = yield Rewrite(replace(program, unique=program.unique | repeated.tensors))
    while (place := _first(program, repeated.forms)) is not None:
        target, value = place
        program = yield Rewrite(_stored(program, context, target, value), REASON)


def _first(program: Program, forms: frozenset[Expr]) -> tuple[str, Expr] | None:
    """Return the first assignment that has one of the expressions, and the expression in it.

    None where each is made by a step of its own, and read by all others.
    """
    stored: set[Expr] = set()
    for define in program.defines if forms else ():
        right_side = define.assignment.value
        unfilled = right_side.args[0] if is_call_of(right_side, FILLED) else right_side
        if define.target in program.unique and form_of(unfilled)[0] in forms:
            stored.add(form_of(unfilled)[0])
            continue
        for value, (form, _) in occurrences(right_side, forms):
            if form not in stored:
                return define.target, value
    return None


def _stored(program: Program, context: Context, target: str, value: Expr) -> Program:
    """Return the program that stores a value before an assignment, and reads it in all
    later ones.
    """
    form, indices = form_of(value)
    assignment = program.define(target).assignment
    fill: Number | None = None
    if assignment.value is value and _may_hold(program, assignment):
        name, order = target, tuple(assignment.target.indices)
        program = replace(program, unique=program.unique | {name})
    else:
        name, order = program.fresh("T"), indices
        temporary = Assignment(Access(name, indices), value)
        fill = _fill(program, value)
        if not same(fill, 0) and is_sparse(program.usual_format(stored_alone(temporary))):
            temporary = stored_alone(temporary) if fill is not None else temporary
        facts = _facts(program, context, temporary)
        program = program.before(target, (Define(temporary, REASON),), {name: facts})
        program = replace(program, unique=program.unique | {name})
    places = tuple(indices.index(index) for index in order)
    dtype = program.dtypes[name]

    def read(expr: Expr) -> Expr:
        if isinstance(expr, Call | Reduce):
            other, names = form_of(expr)
            if other == form:
                access = Access(name, tuple(names[place] for place in places))
                return filled_of_type(access, fill, dtype)
        return map_children(expr, read)

    for define in tuple(program.defines):
        if define.target != name:
            right_side = read(define.assignment.value)
            program = program.with_assignment(replace(define.assignment, value=right_side))
    return program


def _may_hold(program: Program, assignment: Assignment) -> bool:
    """Tell whether an assignment stores its value in the type of the computation."""
    type = program.facts[assignment.target.tensor].type
    dtype = expression_dtype(assignment.value, program.dtypes)
    return (
        assignment.operator is None
        and not type.stored
        and type.dtype == dtype.name
        and not type.fill
    )


def _fill(program: Program, value: Expr) -> Number | None:
    """Return the value where operands store nothing; None where it has none."""
    return fill_of(value, lambda a: None if program.is_full(a.tensor) else 0, program.dtypes)


def _facts(program: Program, context: Context, assignment: Assignment) -> Operand:
    """Return the expected facts of a tensor with an entry for each entry of its value."""
    machine = context.goal.machine
    stats = real_statistics(assignment, program.facts, machine)
    sizes = {**program.sizes, **stats.sizes}
    shape = tuple(int(sizes[index]) for index in assignment.target.indices)
    form, entries = program.usual_format(assignment), float(prod(shape))
    if not is_full(form):
        entries = min(entries, result_size(stats, assignment.value, assignment.target.indices))
    dtype = expression_dtype(assignment.value, program.dtypes).name
    return Operand(TensorType(form, dtype, _index_dtype(program)), shape, entries)


def _index_dtype(program: Program) -> str:
    """Return the type of the index arrays of results."""
    return program.facts[program.results[-1]].type.index_dtype


RULE = Rule("compute_once", Phase.NECESSARY, apply, program_site)

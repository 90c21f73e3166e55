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
from taco_py.planner.rules.base import Phase, Rewrite, Rule, Site, Trials, whole

WHY = "it is compared with itself: computed once, and stored"


def apply(program: Program, site: Site, context: Context) -> Trials:
    """Store each expression that is compared with itself, and read it wherever it occurs."""
    assignments = [each.assignment for each in program.defines]
    found = compared(assignments, program.dtypes)
    if found.tensors:
        program = yield Rewrite(replace(program, once=program.once | found.tensors))
    while (place := _first(program, found.forms)) is not None:
        target, value = place
        program = yield Rewrite(_stored(program, context, target, value), WHY)


def _first(program: Program, forms: frozenset[Expr]) -> tuple[str, Expr] | None:
    """Return the first assignment with one of the expressions, and the expression as it stands
    there.

    None where each is made by a step of its own, and read by all others.
    """
    made: set[Expr] = set()
    for each in program.defines if forms else ():
        whole = each.assignment.value
        own = whole.args[0] if is_call_of(whole, FILLED) else whole
        if each.target in program.once and form_of(own)[0] in forms:
            made.add(form_of(own)[0])
            continue
        for value, (form, _) in occurrences(whole, forms):
            if form not in made:
                return each.target, value
    return None


def _stored(program: Program, context: Context, target: str, value: Expr) -> Program:
    """Return the program that makes a value before an assignment, and reads it from there on."""
    form, indices = form_of(value)
    own = program.define(target).assignment
    fill: Number | None = None
    if own.value is value and _may_hold(program, own):
        name, order = target, tuple(own.target.indices)
        program = replace(program, once=program.once | {name})
    else:
        name, order = program.fresh("T"), indices
        made = Assignment(Access(name, indices), value)
        fill = _fill(program, value)
        if not same(fill, 0) and is_sparse(program.usual_format(stored_alone(made))):
            made = stored_alone(made) if fill is not None else made
        facts = _facts(program, context, made)
        program = program.before(target, (Define(made, WHY),), {name: facts})
        program = replace(program, once=program.once | {name})
    places = tuple(indices.index(index) for index in order)
    dtype = program.dtypes[name]

    def read(expr: Expr) -> Expr:
        if isinstance(expr, Call | Reduce):
            other, names = form_of(expr)
            if other == form:
                access = Access(name, tuple(names[place] for place in places))
                return filled_of_type(access, fill, dtype)
        return map_children(expr, read)

    for each in tuple(program.defines):
        if each.target != name:
            changed = read(each.assignment.value)
            program = program.with_assignment(replace(each.assignment, value=changed))
    return program


def _may_hold(program: Program, own: Assignment) -> bool:
    """Tell whether what an assignment makes is its value, in the type in which that is computed."""
    type = program.facts[own.target.tensor].type
    dtype = expression_dtype(own.value, program.dtypes)
    return own.operator is None and not type.stored and type.dtype == dtype.name and not type.fill


def _fill(program: Program, value: Expr) -> Number | None:
    """Return the value where operands store nothing; None where it has none."""
    return fill_of(value, lambda a: None if program.is_full(a.tensor) else 0, program.dtypes)


def _facts(program: Program, context: Context, made: Assignment) -> Operand:
    """Return the facts that are expected of a tensor, which stores what its value has an entry
    for."""
    machine = context.goal.machine
    stats = real_statistics(made, program.facts, machine)
    sizes = {**program.sizes, **stats.sizes}
    shape = tuple(int(sizes[index]) for index in made.target.indices)
    form, entries = program.usual_format(made), float(prod(shape))
    if not is_full(form):
        entries = min(entries, result_size(stats, made.value, made.target.indices))
    dtype = expression_dtype(made.value, program.dtypes).name
    return Operand(TensorType(form, dtype, _index_dtype(program)), shape, entries)


def _index_dtype(program: Program) -> str:
    """Return the type of the index arrays of results."""
    return program.facts[program.results[-1]].type.index_dtype


RULE = Rule("compute_once", Phase.NEEDED, apply, whole)

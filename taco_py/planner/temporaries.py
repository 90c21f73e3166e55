"""Temporaries: parts of an assignment computed first, and inner sums by themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from taco_py.compiler.concrete.terms import summed
from taco_py.compiler.cost.estimate import result_size
from taco_py.compiler.cost.sets import One
from taco_py.language.formats import Format, dense
from taco_py.language.legal.absent import restricts
from taco_py.language.legal.needed_places import asked_where, kept_where
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.legal.stored_places import StoredPlaces
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Access, Assignment, Expr, Reduce
from taco_py.language.notation.tree import children, map_children
from taco_py.language.problem import TensorType
from taco_py.planner.context import Context
from taco_py.planner.ir.formats import COMPRESSED
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Define, Program


def where_asked(program: Program, expr: Expr, part: Expr, replacement: Expr | None = None) -> Expr:
    """Restrict a dense part of an expression to the coordinates of the sparse operands beside it.

    sum(k, Q[i,k] * K[j,k]) of M[i,j] * exp(sum(…))   →   kept(sum(…), stored(M[i,j]))

    replacement  what the part is written as
    """
    value = part if replacement is None else replacement
    stored = StoredPlaces({name: (False,) * len(f.shape) for name, f in program.facts.items()})
    for name in program.facts:
        stored.note(name, 0 if is_sparse(program.facts[name].type.format) else None)
    if len(free_indices(part)) < 2 or stored.fill(part) == 0:
        return value
    where = asked_where(stored, expr, part)
    return kept_where(value, sorted(where, key=str)) if where else value


def with_temporary(
    program: Program,
    context: Context,
    value: Expr,
    keep: Sequence[str],
    reason: str,
    dtype: DType | None = None,
) -> tuple[Program, Access]:
    """Assign `value`, summed over all indices but `keep`, to a new tensor before the result.

        y[i] = A[i,j] * sum(k, B[j,k])
        → T[j] = sum(k, B[j,k]);  y[i] = A[i,j] * sum(k, B[j,k]),  and the access T[j]

    dtype  the type that the sum is added up in, where that is not its own
    """
    value = summed(value, (i for i in free_indices(value) if i not in keep))
    target = Access(program.fresh("T"), tuple(keep))
    assignment = Assignment(target, value)
    facts = described(program, context, assignment)
    if dtype is not None:
        facts = replace(facts, type=replace(facts.type, dtype=dtype.name))
    if is_full(facts.type.format) and is_sparse(program.usual_format(assignment)):
        fill = fill_of(program, context, value, keep)
        cheap = (
            "for"
            if fill >= context.goal.machine.copies.full_share
            else "which is cheaper here, though"
        )
        reason = f"{reason}; dense, {cheap} {fill:.0%} of it is expected to be there"
    few = any(_stores_few_rows(program.facts[access.tensor]) for access in accesses(value))
    root = facts.type.format.levels[:1]
    if few and root and not root[0].full and program.usual_format(assignment).levels[0].full:
        reason = f"{reason}; without empty rows, for few others are expected to be there"
    name = target.tensor
    return program.before(program.result, (Define(assignment, reason),), {name: facts}), target


def described(program: Program, context: Context, assignment: Assignment) -> Operand:
    """Return the expected facts of the target of `assignment`, a temporary."""
    key = (Operand, program.result_type, context.full, *context.key(program, assignment))
    return context.effort.recall(key, lambda: _described(program, context, assignment))


def _described(program: Program, context: Context, assignment: Assignment) -> Operand:
    value, keep, machine = assignment.value, assignment.target.indices, context.goal.machine
    sizes = real_statistics(Assignment(Access("", ()), value), program.facts, machine).sizes
    shape = tuple(int(sizes[i]) for i in keep)
    nnz = result_size(context.statistics(program, value), value, keep)
    dtype = expression_dtype(value, program.dtypes).name
    form = program.usual_format(assignment)
    if is_sparse(form) and _better_dense(program, context, assignment, shape):
        form = dense(len(keep))
    if _has_few_rows(program, context, assignment, form):
        form = replace(form, levels=(COMPRESSED, *form.levels[1:]))
    return Operand(TensorType(form, dtype, program.result_type.index_dtype), shape, nnz)


def _better_dense(
    program: Program, context: Context, assignment: Assignment, shape: Sequence[int]
) -> bool:
    """Tell whether a temporary is better dense than sparse.

    Not where the result is sparse: its entries would be those of all the zeros too.
    """
    machine = context.goal.machine
    if prod(shape) > machine.copies.dense_elements or is_sparse(program.result_type.format):
        return False
    if context.full and len(shape) == 1:
        return True
    return (
        fill_of(program, context, assignment.value, assignment.target.indices)
        >= machine.copies.full_share
    )


def _stores_few_rows(operand: Operand) -> bool:
    """Tell whether a sparse operand with a dense root has fewer entries than rows."""
    form = operand.type.format
    is_rooted = is_sparse(form) and form.levels[0].full
    return is_rooted and operand.nnz < operand.shape[form.mode_order[0]]


def _has_few_rows(program: Program, context: Context, assignment: Assignment, form: Format) -> bool:
    """Tell whether a temporary with a dense root is expected to store few rows.

    T[i,k] = sum(j, A[i,j] * B[j,k]) is sd, not dd, where most rows of A in CSR are empty.
    """
    if form.order < 2 or not form.levels[0].full or context.goal.machine.is_gpu:
        return False
    value, stats = assignment.value, context.statistics(program, assignment.value)
    root = assignment.target.indices[form.mode_order[0]]
    few = (a for a in accesses(value) if root in a.indices and stats.stores_few_rows(a))
    restricting = (access for access in few if restricts(value, access))
    outer = One(frozenset((root,)))
    rows = (stats.access_share(access, outer, visited=False) for access in restricting)
    return min(map(float, rows), default=1.0) <= context.goal.machine.copies.few_rows_share


def fill_of(program: Program, context: Context, value: Expr, keep: Sequence[str]) -> float:
    """Return the expected fraction of stored elements of `value` over `keep`."""
    stats = context.statistics(program, value)
    return result_size(stats, value, keep) / max(stats.volume(frozenset(keep)), 1.0)


def program_of_sum(program: Program, sum_: Reduce) -> Program:
    """Return a program whose result is an inner sum, dense where the whole result is dense.

    y[i] = A[i,j] * sum(k, B[j,k])  →  [j] = sum(k, B[j,k])
    """
    assignment = Assignment(Access("", free_indices(sum_)), sum_)
    result_type = program.result_type
    order = len(assignment.target.indices)
    form = dense(order) if is_full(result_type.format) else program.usual_format(assignment)
    facts = {**program.facts, "": Operand(replace(result_type, format=form), (), 0.0)}
    return replace(program, steps=(Define(assignment),), facts=facts, results=("",))


def through_children(
    program: Program, expr: Expr, visit: Callable[[Program, Expr], tuple[Program, Expr]]
) -> tuple[Program, Expr]:
    """Return the expression with `visit` applied to each child."""
    new: list[Expr] = []
    for child in children(expr):
        program, child_ = visit(program, child)
        new.append(child_)
    rest = iter(new)
    return program, map_children(expr, lambda _: next(rest))

"""Fused schedules, whose temporaries are computed inside loops: as commands, and as kernels in
turn.

forall k where( forall i forall j A[i,j] += B[i,k] * w[j],
                forall l forall j w[j] += C[k,l] * D[l,j] )

→ reorder(k,l,i,j), precompute(C(k,l)*D(l,j),j,j,w)             the same loops, by commands
→ where( forall k forall i forall j A[i,j] += B[i,k] * w[k,j],
         forall k forall l forall j w[k,j] += C[k,l] * D[l,j] ) with as many rounds, by kernels
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import assert_never

from taco_py.compiler.concrete.merged_order import merge_orders
from taco_py.compiler.concrete.nodes import Assign, Forall, Statement, Where, WorkspaceKind
from taco_py.compiler.concrete.nodes import (
    Sequence as Statements,
)
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.concrete.terms import sums_outside
from taco_py.compiler.concrete.tree import read_in
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.commands import Command, Precompute, Reorder
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import dense
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr
from taco_py.language.notation.tree import is_call_of, map_accesses
from taco_py.language.problem import Problem, TensorType


def fused_schedule(assignment: Assignment, statement: Statement) -> Schedule | None:
    """Return the commands that derive the loops of `statement` from the assignment's loops.

    None where there are none: for workspaces whose producer and consumer run through them in
    different orders, sums that were multiplied out, and loops around operations that are not linear
    in them.
    """
    order = one_order(statement)
    if order is None:
        return None
    loops = (Reorder(order),) if len(order) > 1 else ()
    schedule = Schedule((*loops, *_parts(statement)))
    return schedule if _makes(schedule, assignment, statement) else None


def one_order(statement: Statement) -> tuple[str, ...] | None:
    """Return one order of all loops of producers and consumers; None where their orders clash."""
    match statement:
        case Forall(index, body):
            inner = one_order(body)
            return None if inner is None else (index, *inner)
        case Where(_, consumer, producer):
            reads, makes = one_order(consumer), one_order(producer)
            return None if reads is None or makes is None else merge_orders(makes, reads)
        case _:
            return () if isinstance(statement, Assign) else None


def _parts(statement: Statement) -> Iterator[Command]:
    """Yield a command for each temporary, the outermost first."""
    match statement:
        case Forall(_, body):
            yield from _parts(body)
        case Where(workspace, consumer, producer):
            names = workspace.indices
            yield Precompute(_full_value(producer), names, names, workspace.name)
            yield from _parts(producer)
            yield from _parts(consumer)


def _full_value(statement: Statement) -> Expr:
    """Return the value that a statement assigns, with temporaries replaced by their values."""
    match statement:
        case Forall(_, body):
            return _full_value(body)
        case Where(workspace, consumer, producer):
            producer_value = _full_value(producer)
            return _exchanged(_full_value(consumer), workspace.name, producer_value)
        case Assign(_, value):
            return value
        case _:
            raise ScheduleError(f"Expected loops around one assignment, found {statement}")


def _exchanged(expr: Expr, tensor: str, value: Expr) -> Expr:
    match expr:
        case Access():
            return value if expr.tensor == tensor else expr
        case Call(_, args):
            return replace(expr, args=tuple(_exchanged(arg, tensor, value) for arg in args))
        case _:
            return expr


def _makes(schedule: Schedule, assignment: Assignment, statement: Statement) -> bool:
    """Tell whether the commands lead to these loops, where all tensors are dense."""
    assignment = sums_outside(assignment)
    types = {a.tensor: TensorType(dense(len(a.indices)), "float64") for a in accesses(assignment)}
    result = TensorType(dense(len(assignment.target.indices)), "float64")
    problem = Problem(assignment, tuple(types.items()), result)
    try:
        loops = apply_all(Loops(assignment, textual_orders(assignment)), schedule)
        return _shape(_bare(loops.statement(problem), loops.workspaces)) == _shape(statement)
    except ScheduleError:
        return False


def _bare(statement: Statement, names: Sequence[str]) -> Statement:
    """Return the statement without scalars for partial sums, except workspaces in `names`."""
    match statement:
        case Forall(_, body):
            return replace(statement, body=_bare(body, names))
        case Where(workspace, Assign(target, value), producer) if (
            workspace.name not in names and value == workspace.access
        ):
            return _bare(_retargeted(producer, workspace.access, target), names)
        case Where(_, consumer, producer):
            consumer, producer = _bare(consumer, names), _bare(producer, names)
            return replace(statement, consumer=consumer, producer=producer)
        case _:
            return statement


def _retargeted(statement: Statement, old: Access, new: Access) -> Statement:
    match statement:
        case Forall(_, body):
            return replace(statement, body=_retargeted(body, old, new))
        case Where(_, consumer, _):
            return replace(statement, consumer=_retargeted(consumer, old, new))
        case Assign(target):
            return replace(statement, target=new) if target == old else statement
        case _:
            return statement


def _shape(statement: Statement) -> Hashable:
    """Return a statement up to the order of factors and the kinds of workspaces."""
    match statement:
        case Forall(index, body):
            return index, _shape(body)
        case Where(workspace, consumer, producer):
            return workspace.name, _shape(consumer), _shape(producer)
        case Assign(target, value):
            return target.tensor, tuple(sorted(target.indices)), _factors(value)
        case _:
            return to_text(statement)


def _factors(expr: Expr) -> Hashable:
    """Return an expression up to the order of arguments of commutative, associative operators."""
    if isinstance(expr, Call) and expr.operator.commutative and expr.operator.associative:
        return expr.operator.name, tuple(sorted(map(repr, map(_factors, _flat(expr)))))
    if isinstance(expr, Call):
        return expr.operator.name, tuple(map(_factors, expr.args))
    if isinstance(expr, Access):
        return expr.tensor, tuple(sorted(expr.indices))
    return str(expr)


def _flat(expr: Call) -> Iterator[Expr]:
    for arg in expr.args:
        if is_call_of(arg, expr.operator):
            yield from _flat(arg)
        else:
            yield arg


# ---------------------------------------------------------------- kernels in turn


def fused_inside(where: Where) -> Statement:
    """Return the statement with a temporary computed inside the common outer loops: the inverse of
    `unfused`.

    where(forall i forall k H[i,k] += T[i,k], forall i forall j forall k T[i,k] += …) → forall i
    where(forall k H[i,k] += T[k], forall j forall k T[k] += …)
    """
    workspace, consumer, producer = where.workspace, where.consumer, where.producer
    if isinstance(consumer, Where):
        inner_producer = consumer.producer
        if any(workspace.name == access.tensor for access in read_in(inner_producer)):
            return replace(consumer, producer=fused_inside(replace(where, consumer=inner_producer)))
        inside = fused_inside(replace(where, consumer=consumer.consumer))
        return replace(consumer, consumer=inside)
    if not (isinstance(consumer, Forall) and isinstance(producer, Forall)):
        return where
    index = consumer.index
    if index != producer.index or index not in workspace.indices:
        return where
    name, rest = workspace.name, tuple(i for i in workspace.indices if i != index)
    consumer_body, producer_body = (
        _accessed(part.body, name, lambda access: replace(access, indices=rest))
        for part in (consumer, producer)
    )
    kind = workspace.kind if rest else WorkspaceKind.SCALAR
    narrow = replace(workspace, indices=rest, kind=kind)
    return Forall(index, fused_inside(Where(narrow, consumer_body, producer_body)))


def unfused(statement: Statement) -> Statement:
    """Return the statement with each temporary computed before all loops, over their indices too.

    Every loop runs equally often.
    """
    match statement:
        case Forall(index, body):
            return _distribute(index, unfused(body))
        case Where(_, consumer, producer):
            return replace(statement, consumer=unfused(consumer), producer=unfused(producer))
        case _:
            return statement


def _distribute(index: str, body: Statement) -> Statement:
    """Return a loop over each part of a statement whose temporaries are computed before."""
    if not isinstance(body, Where):
        return Forall(index, body)
    name = body.workspace.name
    wider = replace(body.workspace, indices=(index, *body.workspace.indices))
    consumer, producer = (
        _distribute(index, _widened(part, name, index)) for part in (body.consumer, body.producer)
    )
    return Where(wider, consumer, producer)


def _widened(statement: Statement, name: str, index: str) -> Statement:
    """Return the statement with `index` before the other indices of the temporary `name`."""

    def wide(access: Access) -> Access:
        return replace(access, indices=(index, *access.indices))

    return _accessed(statement, name, wide)


def _accessed(statement: Statement, name: str, change: Callable[[Access], Access]) -> Statement:
    """Return the statement with accesses to the temporary `name` changed."""

    def apply(access: Access) -> Access:
        return change(access) if access.tensor == name else access

    match statement:
        case Forall(_, body):
            return replace(statement, body=_accessed(body, name, change))
        case Where(_, consumer, producer):
            return replace(
                statement,
                consumer=_accessed(consumer, name, change),
                producer=_accessed(producer, name, change),
            )
        case Statements(statements):
            return Statements(tuple(_accessed(part, name, change) for part in statements))
        case Assign(target, value):
            return replace(statement, target=apply(target), value=map_accesses(value, apply))
        case _:
            assert_never(statement)

"""Values under a condition: where a mask is false, nothing is computed, added or appended.

    w[j] += kept(a, m[j] != 0)     →  if (m[j] != 0) w[j] += a
    out[j] = kept(t, m[j] != 0)    →  if (m[j] != 0) { out[p] = t; crd[p++] = j }    out is sparse

The element is then what it was before: the identity of what is added, or not stored.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from codegen import build
from codegen.ir import Expr as LoopExpr
from codegen.types import BOOL
from taco_py.compiler.concrete.nodes import Assign, Forall, Statement, Where
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.compiler.lower.expressions import lower_value
from taco_py.language.legal.absent import same
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.functions.function_table import AND, nonzero
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.operators import FILLED, KEEP, SELECTED, Number
from taco_py.language.notation.tree import is_call_of

ALWAYS = build.const(True)


def condition_of(value: Expr, nothing: Number | None) -> tuple[Expr | None, Expr]:
    """Split a value that is `nothing` where a condition is false into the condition and the rest.

    kept(a, c)           →  c, a                of nothing = 0
    kept(kept(a, c), d)  →  d and c, a          of nothing = 0
    selected(c, a, inf)  →  c, a                of nothing = inf
    """
    match value:
        case Call(operator, (kept, condition)) if operator == KEEP and same(nothing, 0):
            return _combine(condition, *condition_of(kept, nothing))
        case Call(operator, (condition, kept, Literal(other))) if operator == SELECTED:
            if same(other, nothing):
                return _combine(condition, *condition_of(kept, nothing))
        case Call(operator, (kept, Literal(other))) if operator == FILLED and same(other, nothing):
            inner, rest = condition_of(kept, nothing)
            return inner, value if inner is None else rest
    return None, value


def _combine(outer: Expr, inner: Expr | None, value: Expr) -> tuple[Expr, Expr]:
    """Combine two conditions on a value."""
    if inner is None:
        return outer, value
    return Call(AND, (nonzero(outer), nonzero(inner))), value


def lower_condition(env: Environment, scope: Scope, condition: Expr | None) -> LoopExpr:
    """Lower a condition at the current coordinates; it is true where there is none."""
    return ALWAYS if condition is None else lower_value(env, scope, condition, BOOL)


def split_consumer(
    statement: Statement, nothing: Number, target: Access
) -> tuple[Expr | None, Statement]:
    """Split a statement that assigns one value to a target into its condition and the rest.

    out[j] = kept(w, m[j] != 0) where w = …  →  m[j] != 0,  out[j] = w where w = …

    A condition on what the statement computes itself stays: it is not known before. So does one
    around a sum that is stored besides, where the condition is false too.
    """
    if isinstance(statement, Where):
        condition, consumer = split_consumer(statement.consumer, nothing, target)
        workspace = statement.workspace
        if condition is None and not workspace.stored and _hands_on(statement, nothing, target):
            return producer_condition(statement, target.indices), statement
        if condition is None or workspace.stored or workspace.access in accesses(condition):
            return None, statement
        return condition, replace(statement, consumer=consumer)
    if not isinstance(statement, Assign) or statement.target != target or statement.operator:
        return None, statement
    condition, value = condition_of(statement.value, nothing)
    return condition, replace(statement, value=value)


def _hands_on(where: Where, nothing: Number, target: Access) -> bool:
    """Tell whether a statement assigns a sum to a target, and over no terms `nothing`.

    out[i,j] = t where …               where t begins with nothing
    out[i,j] = filled(t, 0) where …    which stores nothing over no terms
    """
    consumer = where.consumer
    if not isinstance(consumer, Assign) or consumer.target != target:
        return False
    value, is_nothing = consumer.value, same(where.workspace.initial, nothing)
    while is_call_of(value, FILLED):
        value, is_nothing = value.args[0], True
    return consumer.operator is None and value == where.workspace.access and is_nothing


def producer_condition(where: Where, bound: Collection[str]) -> Expr | None:
    """Find the condition of all terms of a sum where it has indices that are bound around it.

    t where forall k t += kept(a, m[i,j] != 0)  →  m[i,j] != 0
    """
    producer = where.producer
    while isinstance(producer, Forall):
        producer = producer.body
    if not isinstance(producer, Assign) or producer.target != where.workspace.access:
        return None
    condition, _ = condition_of(producer.value, where.workspace.initial)
    if condition is None or not set(free_indices(condition)) <= set(bound):
        return None
    return condition


def condition_on(value: Expr, access: Access) -> Expr | None:
    """Find the condition under which a value reads an access at all; None where it always does.

    kept(t / d[i], m[i] != 0)  →  m[i] != 0    of t
    """
    match value:
        case Call(operator, (kept, Literal())) if operator == FILLED:
            return condition_on(kept, access)
        case Call(operator, (_, condition)) if operator == KEEP:
            pass
        case Call(operator, (condition, _, other)) if operator == SELECTED:
            if access in accesses(other):
                return None
        case _:
            return None
    return None if access in accesses(condition) else condition

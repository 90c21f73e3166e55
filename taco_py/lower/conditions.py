"""Values under a condition: where a mask keeps nothing, nothing is computed, added or appended.

    w[j] += kept(a, m[j] != 0)     →  if (m[j] != 0) w[j] += a
    out[j] = kept(t, m[j] != 0)    →  if (m[j] != 0) { out[p] = t; crd[p++] = j }    out is sparse

The element is then what it was before: the identity of what is added, or not stored.
"""

from __future__ import annotations

from dataclasses import replace

from codegen import build
from codegen.ir import Expr as LoopExpr
from codegen.types import BOOL
from taco_py.concrete.nodes import Assign, Statement, Where
from taco_py.legal.absent import same
from taco_py.lower.environment import Environment, Scope
from taco_py.lower.expressions import lower_value
from taco_py.notation.checks import accesses
from taco_py.notation.nodes import Access, Call, Expr, Literal
from taco_py.notation.operators import FILLED, KEPT, SELECTED, Number

ALWAYS = build.const(True)


def condition_of(value: Expr, nothing: Number | None) -> tuple[Expr | None, Expr]:
    """Split a value that is `nothing` where a condition is false into the condition and the rest.

    kept(a, c)           →  c, a                of nothing = 0
    selected(c, a, inf)  →  c, a                of nothing = inf
    """
    match value:
        case Call(operator, (kept, condition)) if operator == KEPT and same(nothing, 0):
            return condition, kept
        case Call(operator, (condition, kept, Literal(other))) if operator == SELECTED:
            return (condition, kept) if same(other, nothing) else (None, value)
        case Call(operator, (kept, Literal(other))) if operator == FILLED and same(other, nothing):
            asked, rest = condition_of(kept, nothing)
            return asked, value if asked is None else rest
    return None, value


def lower_condition(env: Environment, scope: Scope, condition: Expr | None) -> LoopExpr:
    """Lower a condition at the current coordinates; it is true where there is none."""
    return ALWAYS if condition is None else lower_value(env, scope, condition, BOOL)


def split_consumer(
    statement: Statement, nothing: Number, target: Access
) -> tuple[Expr | None, Statement]:
    """Split a statement that assigns one value to a target into its condition and the rest.

    out[j] = kept(w, m[j] != 0) where w = …  →  m[j] != 0,  out[j] = w where w = …

    A condition on what the statement computes itself stays: it is not known before.
    """
    if isinstance(statement, Where):
        condition, consumer = split_consumer(statement.consumer, nothing, target)
        if condition is None or statement.workspace.access in accesses(condition):
            return None, statement
        return condition, replace(statement, consumer=consumer)
    if not isinstance(statement, Assign) or statement.target != target or statement.operator:
        return None, statement
    condition, value = condition_of(statement.value, nothing)
    return condition, replace(statement, value=value)


def condition_on(value: Expr, access: Access) -> Expr | None:
    """Find the condition under which a value reads an access at all; None where it always does.

    kept(t / d[i], m[i] != 0)  →  m[i] != 0    of t
    """
    match value:
        case Call(operator, (kept, Literal())) if operator == FILLED:
            return condition_on(kept, access)
        case Call(operator, (_, condition)) if operator == KEPT:
            pass
        case Call(operator, (condition, _, other)) if operator == SELECTED:
            if access in accesses(other):
                return None
        case _:
            return None
    return None if access in accesses(condition) else condition

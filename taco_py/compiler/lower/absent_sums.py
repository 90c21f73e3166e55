"""Sums that may be absent: whether their readers need another value than zero then.

    y[i] = t / d[i]   where   t += A[i,j] * x[j]

Where A stores nothing in row i, y[i] is 0 whatever d[i] is; a `t` of zero would be NaN over 0.
"""

from __future__ import annotations

from taco_py.compiler.concrete.nodes import Assign, Forall, Statement, Where
from taco_py.compiler.concrete.tree import assignments, walk
from taco_py.compiler.lower.environment import Environment, Scope
from taco_py.language.legal.absent import (
    depends_on_presence,
    differs_where_absent,
    is_everywhere,
    restricts,
    tells_zero,
)
from taco_py.language.legal.stored import is_full, is_sparse
from taco_py.language.legal.types import has_special_values
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Access, Call, Expr
from taco_py.language.notation.tree import walk as nodes


def tells_absent(env: Environment, where: Where) -> bool:
    """Tell whether the reader of a sum has another value where none of its terms is stored."""
    access, initial = where.workspace.access, where.workspace.initial
    result = env.problem.result.format

    def special(expr: Call) -> bool:
        return tells_zero(expr) or has_special_values(expression_dtype(expr, env.dtypes))

    def reads(assign: Assign) -> bool:
        target = env.workspaces.get(assign.target.tensor)
        if target is not None and target.stored is not None and restricts(assign.value, access):
            return True
        if initial != 0:  # which is a number as any other; in a sparse result it stays as it is
            kept_sparse = assign.target.tensor == env.target.tensor and is_sparse(result)
            return depends_on_presence(assign.value, access) and not kept_sparse
        return differs_where_absent(assign.value, access, special)

    return any(map(reads, assignments(where.consumer))) and not has_terms(env, where)


def has_terms(env: Environment, where: Where, scope: Scope | None = None) -> bool:
    """Tell whether a sum has a term that is stored whatever sparse operands store.

    Where a condition is false nothing is.

    scope  the state of the outer loops: the elements of operands that they visit are stored
    """
    read = [a for assign in assignments(where.producer) for a in accesses(assign.value)]
    ahead = {a.tensor for a in read if scope is None or not _is_met(scope, a)}
    inner = {w.workspace.name: w for w in walk(where.producer) if isinstance(w, Where)}

    def full(name: str) -> bool:
        if name in inner:
            return has_terms(env, inner[name], scope)
        if name in env.workspaces:
            return env.workspaces[name].present is None
        return name not in ahead or is_full(env.tensors[name].type.format)

    name = where.workspace.name
    adding = (assign for assign in assignments(where.producer) if assign.target.tensor == name)
    return any(
        is_everywhere(assign.value, full, where.workspace.initial)
        and not is_conditional(assign.value)
        for assign in adding
    )


def term_of(env: Environment, where: Where) -> tuple[Access, frozenset[str]] | None:
    """Find the access of which each stored element is a term of a sum; None where there is none.

    t = max(j, filled(S[i,j], -inf))   →   S[i,j], over {j}
    """
    loops: list[str] = []
    inside = where.producer
    while isinstance(inside, Forall):
        loops.append(inside.index)
        inside = inside.body
    if not isinstance(inside, Assign) or is_conditional(inside.value):
        return None
    every = dict.fromkeys(accesses(inside.value))
    sparse = [access for access in every if not _is_stored(env, access)]
    reduced = frozenset(loops)
    if len(sparse) != 1 or any(sparse[0].indices.count(index) > 1 for index in reduced):
        return None
    if not reduced <= {*sparse[0].indices}:
        return None
    certain = is_everywhere(inside.value, lambda name: True, where.workspace.initial)
    return (sparse[0], reduced) if certain else None


def _is_stored(env: Environment, access: Access) -> bool:
    """Tell whether each element of a tensor, or of an outer sum, is stored."""
    arrays = env.workspaces.get(access.tensor)
    if arrays is not None:
        return arrays.present is None and arrays.scalar is not None
    return is_full(env.tensors[access.tensor].type.format)


def has_met_term(scope: Scope, term: tuple[Access, frozenset[str]], value: Expr) -> bool:
    """Tell whether loops already visit a stored term of a sum, in a value that reads the sum."""
    access, reduced = term
    return any(
        read.tensor == access.tensor
        and _is_met(scope, read)
        and all(
            index == other or index in reduced
            for index, other in zip(access.indices, read.indices, strict=True)
        )
        for read in accesses(value)
    )


def _is_met(scope: Scope, access: Access) -> bool:
    """Tell whether loops visit an element, which is then stored."""
    return access not in scope.absent and scope.bound.issuperset(access.indices)


def is_conditional(value: Expr) -> bool:
    """Tell whether an expression has a condition without which nothing of it is stored."""
    return any(
        isinstance(node, Call) and node.operator.condition is not None for node, _ in nodes(value)
    )


def only_values(env: Environment, consumer: Statement) -> bool:
    """Tell whether a reader computes one value, and appends no coordinate."""
    if not isinstance(consumer, Assign):
        return False
    arrays = env.workspaces.get(consumer.target.tensor)
    return arrays is None or arrays.scalar is not None

"""Values with kinks, inlined into branches that determine the side of the kink.

e[i] = exp(-abs(x[i]))
y[i] = where(x[i] >= 0, 1 / (1 + e[i]), e[i] / (1 + e[i]))
→    y[i] = where(x[i] >= 0, 1 / (1 + exp(-abs(x[i]))), …)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taco_py.language.autodiff.index_names import with_indices
from taco_py.language.autodiff.sides import (
    NO_SIDES,
    Sides,
    compares_order,
    is_size,
    pair_of,
    sides_below,
)
from taco_py.language.notation.checks import free_indices, operand_names
from taco_py.language.notation.functions.function_table import MAX, MIN
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.tree import map_accesses, walk


def with_kinks_in_branches(statements: Sequence[Assignment]) -> tuple[Assignment, ...]:
    """Inline values of statements into branches that determine the side of a kink."""
    inlinable: dict[str, Assignment] = {}
    result = []
    for statement in statements:
        new = replace(statement, value=_written_out(statement.value, inlinable, NO_SIDES))
        result.append(new)
        inlined = replace(new, value=map_accesses(new.value, lambda a: _value(a, inlinable) or a))
        target = statement.target.tensor
        for name in [n for n, s in inlinable.items() if target in (n, *operand_names(s))]:
            del inlinable[name]
        if _is_of_elements(inlined) and _kinks(inlined.value):
            inlinable[target] = inlined
    return tuple(result)


def _written_out(expr: Expr, inlinable: dict[str, Assignment], sides: Sides) -> Expr:
    """Inline values with a kink on one of the sides that an expression is used on."""
    if isinstance(expr, Access):
        value = _value(expr, inlinable)
        return expr if value is None or sides.isdisjoint(_kinks(value)) else value
    if isinstance(expr, Reduce):
        return replace(expr, body=_written_out(expr.body, inlinable, NO_SIDES))
    if not isinstance(expr, Call):
        return expr
    args = tuple(
        _written_out(arg, inlinable, sides_below(expr, place, sides))
        for place, arg in enumerate(expr.args)
    )
    return replace(expr, args=args)


def _value(access: Access, inlinable: dict[str, Assignment]) -> Expr | None:
    """Return the value of the statement that an access reads, at its indices."""
    statement = inlinable.get(access.tensor)
    if statement is None or access.subscripts:
        return None
    names = dict(zip(statement.target.indices, access.indices, strict=True))
    return with_indices(statement.value, names)


def _is_of_elements(statement: Assignment) -> bool:
    """Tell whether a statement computes each element from elements at the same indices."""
    target, value = statement.target, statement.value
    return (
        statement.operator is None
        and not target.subscripts
        and target.tensor not in operand_names(statement)
        and {*target.indices} == {*free_indices(value)}
        and not any(
            isinstance(node, Reduce) or (isinstance(node, Access) and node.subscripts)
            for node, _ in walk(value)
        )
    )


def _kinks(expr: Expr) -> Sides:
    """Return the pairs of values whose ties are kinks of an expression, in both orders."""
    pairs: set[tuple[str, str]] = set()
    for node, _ in walk(expr):
        if not isinstance(node, Call):
            continue
        compared: tuple[Expr, ...] = ()
        if node.operator in (MIN, MAX):
            compared = node.args
        elif is_size(node):
            compared = (node.args[0], Literal(0))
        elif compares_order(node) and isinstance(node.args[0], Call):
            compared = node.args[0].args
        if compared:
            pairs |= {pair_of(*compared), pair_of(*reversed(compared))}
    return frozenset(pairs)

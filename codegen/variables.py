"""Which variables a piece of loop IR reads, assigns and introduces; putting values in their place.

The loop IR declares a field that holds a value as `Expr` and one that holds a variable being
introduced or assigned as `Var`: that is all these functions need to know about its nodes. No name
is declared twice in nested scopes (`verify`), so nothing can be captured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from codegen.ir import Array, Assign, Declare, Expr, For, Insert, Reduction, Var
from codegen.tree import find, map_fields, map_nodes, rewrite, walk

N = TypeVar("N")


def is_target(node: object, field: str) -> bool:
    """Whether a field holds variables that `node` introduces or assigns."""
    return "Var" in str(type(node).__dataclass_fields__[field].type)  # type: ignore[attr-defined]


def substitute(node: N, values: Mapping[Var, Expr]) -> N:
    """`node` with each variable of `values` replaced where it is read.

    Before `y = x + 1` with x ↦ 2; after `y = 2 + 1`. Targets of assignments stay as they are.
    """

    def within(name: str, value: Any) -> Any:
        if is_target(node, name):
            return value
        return map_nodes(value, lambda child: substitute(child, values))

    if isinstance(node, Var):
        return values.get(node, node)  # type: ignore[return-value]
    return map_fields(node, within)


def rename(node: N, names: Mapping[Var, Var]) -> N:
    """`node` with variables replaced everywhere, also where they are declared and assigned."""
    return rewrite(node, lambda below: names.get(below, below) if isinstance(below, Var) else below)


def variables_read(node: object) -> frozenset[Var]:
    """The variables whose value `node` uses."""
    found: set[Var] = set()
    _collect_read(node, found)
    return frozenset(found)


def _collect_read(node: object, found: set[Var]) -> None:
    def within(name: str, value: Any) -> Any:
        def visit(child: Any) -> Any:
            _collect_read(child, found)
            return child

        return value if is_target(node, name) else map_nodes(value, visit)

    if isinstance(node, Var):
        found.add(node)
    else:
        map_fields(node, within)


def declared_vars(node: object) -> frozenset[Var]:
    """The variables `node` introduces: declared locals, loop counters, entry numbers."""
    found = set()
    for below in walk(node):
        match below:
            case Declare(var=var) | For(var=var) | Insert(entry=var):
                found.add(var)
    return frozenset(found)


def assigned_vars(node: object) -> frozenset[Var]:
    """The variables `node` gives a new value after their declaration."""
    assigned = frozenset(below.var for below in find(node, Assign))
    return assigned | frozenset(below.var for below in find(node, Reduction))


def free_vars(node: object) -> frozenset[Var]:
    """The variables `node` reads or assigns but does not introduce."""
    return frozenset(find(node, Var)) - declared_vars(node)


def arrays_of(node: object) -> frozenset[Array]:
    """The arrays that occur in `node`."""
    return frozenset(find(node, Array))

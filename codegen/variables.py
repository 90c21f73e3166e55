"""Which variables a piece of loop IR reads, assigns and introduces; putting values in their place.

The loop IR declares a field that holds a value as `Expr` and one that holds a variable being
introduced or assigned as `Var`: that is all these functions need to know about its nodes. No name
is declared twice in nested scopes (`verify`), so nothing can be captured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TypeVar

from codegen.ir import (
    Array,
    Assign,
    AtomicFetch,
    Block,
    Declare,
    Expr,
    For,
    Function,
    If,
    Insert,
    Stmt,
    Table,
    Team,
    Var,
    While,
)
from codegen.names import Names
from codegen.tree import find, map_children, node_fields, rewrite, walk

N = TypeVar("N")


@cache
def targets(cls: Any) -> frozenset[str]:
    """Return the fields of a node class that hold variables it introduces or assigns."""
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    return frozenset(name for name, field in fields.items() if "Var" in str(field.type))


@cache
def value_fields(cls: Any) -> tuple[str, ...]:
    """Return the other fields of a node class that can hold nodes."""
    return tuple(name for name in node_fields(cls) if name not in targets(cls))


def substitute(node: N, values: Mapping[Var, Expr]) -> N:
    """Return `node` with each variable of `values` replaced where it is read.

    Before `y = x + 1` with x ↦ 2; after `y = 2 + 1`. Targets of assignments stay as they are.
    """

    def below(node: Any) -> Any:
        if node.__class__ is Var:
            return values.get(node, node)
        return map_values(node, below)

    return below(node)  # type: ignore[no-any-return]


def map_values(node: N, fn: Callable[[Any], Any]) -> N:
    """Return `node` with `fn` applied to each child but the variables it introduces or assigns."""
    cls: Any = node.__class__
    return map_children(node, fn, value_fields(cls))


def rename(node: N, names: Mapping[Var, Var]) -> N:
    """Return `node` with variables replaced everywhere, also where they are declared and
    assigned."""
    return rewrite(node, lambda below: names.get(below, below) if isinstance(below, Var) else below)


def names_beside(node: Any) -> Names:
    """Return a supply of names that no variable, array or table in `node` has.

    The node is walked when the first name is asked for: most passes ask for none.
    """

    def used() -> Iterator[str]:
        return (below.name for below in walk(node) if isinstance(below, Var | Array | Table))

    return Names(used)


def count_reads(node: Any) -> Counter[Var]:
    """Return how often `node` reads each variable."""
    reads: list[Var] = []
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if node.__class__ is Var:
            reads.append(node)
            continue
        for name in value_fields(node.__class__):
            value = getattr(node, name)
            if value.__class__ is tuple:
                waiting.extend(value)
            else:
                waiting.append(value)
    return Counter(reads)


def variables_read(node: object) -> frozenset[Var]:
    """Return the variables whose value `node` uses."""
    return frozenset(count_reads(node))


def statements(node: object) -> Iterator[Stmt]:
    """Yield the statements in `node`, itself included, parents first; expressions are not
    entered."""
    waiting: list[Any] = [node.body if isinstance(node, Function) else node]
    while waiting:
        stmt = waiting.pop()
        yield stmt
        match stmt:
            case Block(body=body):
                waiting.extend(reversed(body))
            case If(then=then, orelse=orelse):
                waiting.extend((orelse, then))
            case For(body=inner) | While(body=inner):
                waiting.append(inner)
            case Team(setup=setup, body=inner):
                waiting.extend((inner, setup))


def declared_vars(node: object) -> frozenset[Var]:
    """Return the variables `node` introduces: declared locals, loop counters, entry numbers."""
    variables = set()
    for stmt in statements(node):
        match stmt:
            case Declare(var=var) | For(var=var) | Insert(entry=var) | Team(piece=var):
                variables.add(var)
            case AtomicFetch(var=var):
                variables.add(var)
    return frozenset(variables)


def assigned_vars(node: object) -> frozenset[Var]:
    """Return the variables `node` gives a new value after their declaration."""
    variables = set()
    for stmt in statements(node):
        match stmt:
            case Assign(var=var):
                variables.add(var)
            case For(reductions=reductions):
                variables.update(r.var for r in reductions)
    return frozenset(variables)


def free_vars(node: object) -> frozenset[Var]:
    """Return the variables `node` reads or assigns but does not introduce."""
    return frozenset(find(node, Var)) - declared_vars(node)


def arrays_of(node: object) -> frozenset[Array]:
    """Return the arrays that occur in `node`."""
    return frozenset(find(node, Array))

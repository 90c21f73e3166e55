"""Walking and rewriting trees of frozen dataclasses: loop IR, index notation, all of that shape.

A node is a dataclass instance whose class does not call itself an atom (`is_atom = True`); its
children are the nodes in its fields and in the tuples among its fields. No function here knows any
node by name.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter, is_
from typing import Any, TypeVar

N = TypeVar("N")
Rule = Callable[[Any], Any]

_FIXPOINT_LIMIT = 100
_ATOMS = frozenset(("str", "int", "bool", "float", "complex", "bytes", "None"))


@cache
def is_node_class(cls: Any) -> bool:
    """Tell whether the instances of `cls` are nodes."""
    return hasattr(cls, "__dataclass_fields__") and not getattr(cls, "is_atom", False)


@cache
def node_fields(cls: Any) -> tuple[str, ...]:
    """Return the fields of a node class that can hold nodes: those not declared as text or
    atoms."""
    fields: dict[str, Any] = getattr(cls, "__dataclass_fields__", {})
    names = vars(sys.modules[cls.__module__])
    return tuple(n for n, f in fields.items() if f.init and not _is_atomic(str(f.type), names))


def _is_atomic(annotation: str, names: dict[str, Any]) -> bool:
    """Tell whether every word of an annotation is a plain type or an atom."""
    words = re.findall(r"\w+", annotation)
    return all(w in _ATOMS or getattr(names.get(w), "is_atom", False) for w in words)


@cache
def _get_fields(cls: Any) -> Callable[[Any], tuple[Any, ...]] | None:
    """Return the getter of a node's fields that can hold nodes, the last first; None for others."""
    if not is_node_class(cls):
        return None
    names = node_fields(cls)[::-1]
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda node: (getattr(node, names[0]),)) if names else (lambda node: ())


def children(node: Any) -> Iterator[Any]:
    """Yield the nodes directly below `node`, in the order of the fields."""
    for name in node_fields(node.__class__):
        value = getattr(node, name)
        if value.__class__ is tuple:
            yield from (item for item in value if is_node_class(item.__class__))
        elif is_node_class(value.__class__):
            yield value


def walk(node: Any) -> Iterator[Any]:
    """Yield `node` and everything below it, parents first."""
    waiting: list[Any] = [node]
    take, add = waiting.pop, waiting.extend
    while waiting:
        node = take()
        if node.__class__ is tuple:
            add([item for item in node[::-1] if is_node_class(item.__class__)])
            continue
        fields = _get_fields(node.__class__)
        if fields is not None:
            yield node
            add(fields(node))


def find(node: object, kind: type[N]) -> Iterator[N]:
    """Yield the nodes of one class in `node`, parents first."""
    return (below for below in walk(node) if isinstance(below, kind))


def map_fields(node: N, fn: Callable[[str, Any], Any]) -> N:
    """Return `node` with `fn(name, value)` for the value of each field that can hold nodes.

    It is `node` itself when `fn` returned every value as it was.
    """
    values: dict[str, Any] = {}
    cls: Any = node.__class__
    for name in node_fields(cls):
        old = getattr(node, name)
        new = fn(name, old)
        if new is not old:
            values[name] = new
    return _replaced(node, values) if values else node


def _replaced(node: N, values: dict[str, Any]) -> N:
    names = node.__class__.__match_args__  # type: ignore[attr-defined]
    return type(node)(*(values[n] if n in values else getattr(node, n) for n in names))


def map_nodes(value: Any, fn: Rule) -> Any:
    """Return a field's value with `fn` applied to its node, or to each node of its tuple."""
    if value.__class__ is tuple:
        items = [fn(item) if is_node_class(item.__class__) else item for item in value]
        return value if all(map(is_, items, value)) else tuple(items)
    return fn(value) if is_node_class(value.__class__) else value


def map_children(node: N, fn: Rule, names: tuple[str, ...] | None = None) -> N:
    """Return `node` with `fn` applied to each direct child; `node` itself when no child changed.

    names  the only fields whose nodes count as children
    """
    values: dict[str, Any] = {}
    cls: Any = node.__class__
    for name in node_fields(cls) if names is None else names:
        old = getattr(node, name)
        if old.__class__ is tuple:
            new = map_nodes(old, fn)
        elif is_node_class(old.__class__):
            new = fn(old)
        else:
            continue
        if new is not old:
            values[name] = new
    return _replaced(node, values) if values else node


def rewrite(node: N, fn: Rule) -> N:
    """Replace every node by `fn(node)`, children before parents; `node` itself when none changed.

    Before `x * (y + 0)`, with fn: `e + 0 -> e`; after `x * y`. `fn` returns its argument to keep
    it.
    """

    def below(child: Any) -> Any:
        return fn(map_children(child, below))

    return below(node)  # type: ignore[no-any-return]


def rewrite_again(node: N, fn: Rule, normal_forms: dict[int, Any]) -> N:
    """Return `rewrite(node, fn)`, where `fn` looks at nothing but the node.

    normal_forms  nodes, by identity, that `fn` is known to keep with all below them: they are
                  passed over, and others are added
    """

    def below(child: Any) -> Any:
        if id(child) in normal_forms:
            return child
        after = fn(map_children(child, below))
        if after is child:
            normal_forms[id(child)] = child
        return after

    return below(node)  # type: ignore[no-any-return]


def fixpoint(node: N, *functions: Callable[[N], N]) -> N:
    """Apply the functions in turn until each of them returns the very object it was given.

    Raises RuntimeError when that has not happened after a hundred rounds: they go in circles.
    """
    unchanged = 0
    for fn in functions * _FIXPOINT_LIMIT:
        after = fn(node)
        unchanged = unchanged + 1 if after is node else 0
        if unchanged == len(functions):
            return node
        node = after
    names = ", ".join(getattr(fn, "__name__", str(fn)) for fn in functions)
    raise RuntimeError(f"no fixpoint of {names} after {_FIXPOINT_LIMIT} rounds")

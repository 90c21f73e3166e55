"""Walking and rewriting trees of frozen dataclasses: loop IR, index notation, all of that shape.

A node is a dataclass instance; its children are the nodes in its fields and in the tuples among its
fields. No function here knows any node by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

N = TypeVar("N")
Rule = Callable[[Any], Any]

_FIXPOINT_LIMIT = 100


def is_node(value: object) -> bool:
    """Whether `value` is an instance of a dataclass."""
    return hasattr(type(value), "__dataclass_fields__")


def children(node: object) -> Iterator[Any]:
    """The nodes directly below `node`, in the order of the fields."""
    for name in getattr(type(node), "__match_args__", ()):
        value = getattr(node, name)
        if type(value) is tuple:
            yield from (item for item in value if is_node(item))
        elif is_node(value):
            yield value


def walk(node: object) -> Iterator[Any]:
    """`node` and everything below it, parents first."""
    yield node
    for child in children(node):
        yield from walk(child)


def find(node: object, kind: type[N]) -> Iterator[N]:
    """The nodes of one class in `node`, parents first."""
    for below in walk(node):
        if isinstance(below, kind):
            yield below


def map_fields(node: N, fn: Callable[[str, Any], Any]) -> N:
    """`node` with each field's value replaced by `fn(name, value)`; `node` when none changed."""
    values = []
    changed = False
    for name in getattr(type(node), "__match_args__", ()):
        old = getattr(node, name)
        new = fn(name, old)
        changed = changed or new is not old
        values.append(new)
    return type(node)(*values) if changed else node


def map_nodes(value: Any, fn: Rule) -> Any:
    """A field's value with `fn` applied to the node, or to each node of the tuple, that it is."""
    if type(value) is tuple:
        items = tuple(fn(item) if is_node(item) else item for item in value)
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else items
    return fn(value) if is_node(value) else value


def map_children(node: N, fn: Rule) -> N:
    """`node` with `fn` applied to each direct child; `node` itself when no child changed."""
    return map_fields(node, lambda _, value: map_nodes(value, fn))


def rewrite(node: N, fn: Rule) -> N:
    """Replace every node by `fn(node)`, children before parents; `node` itself when none changed.

    Before `x * (y + 0)`, with fn: `e + 0 -> e`; after `x * y`. `fn` returns its argument to keep
    it.
    """
    return fn(map_children(node, lambda child: rewrite(child, fn)))  # type: ignore[no-any-return]


def fixpoint(node: N, fn: Callable[[N], N]) -> N:
    """Apply `fn` until it returns the very object it was given.

    Raises RuntimeError when that has not happened after a hundred rounds: `fn` goes in circles.
    """
    for _ in range(_FIXPOINT_LIMIT):
        after = fn(node)
        if after is node:
            return node
        node = after
    raise RuntimeError(
        f"no fixpoint of {getattr(fn, '__name__', fn)} after {_FIXPOINT_LIMIT} rounds"
    )

"""What a function reads besides its arguments: closures and globals, looked at in each call.

A trace is made for the objects that these names have, and for what containers and the user's own
objects among them hold; under other objects it is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from codegen.records import dataclass

MOST_HELD = 200
"""Containers and objects that are looked into."""

OWN = "__fused_"
"""How names of what is kept on a user's object begin."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeVariables:
    """Names with what they were bound to in a trace.

    cells   of closures, with their contents
    names   dictionaries of globals, with a name and its value each
    held    containers, and dictionaries of objects, with what they held
    """

    cells: tuple[tuple[Any, Any], ...]
    names: tuple[tuple[dict[str, Any], str, Any], ...]
    held: tuple[tuple[Any, tuple[Any, ...]], ...] = ()

    def hold(self) -> bool:
        """Tell whether all names are bound to the same objects still."""
        for cell, value in self.cells:
            if cell.cell_contents is not value:
                return False
        for space, name, value in self.names:
            if space.get(name) is not value:
                return False
        return all(_is_same(_elements(container), values) for container, values in self.held)


def _is_same(found: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    return len(found) == len(values) and all(a is b for a, b in zip(found, values, strict=True))


def _elements(container: Any) -> tuple[Any, ...]:
    """What a container holds, in order, but for what is kept on an object."""
    if isinstance(container, dict):
        return tuple(
            value
            for key, value in container.items()
            if not (isinstance(key, str) and key.startswith(OWN))
        )
    return tuple(container)


def free_variables(function: Callable[..., Any]) -> FreeVariables:
    """Find what a function, and the user's functions that it calls by name, reads."""
    cells: list[tuple[Any, Any]] = []
    names: list[tuple[dict[str, Any], str, Any]] = []
    seen: set[int] = set()
    roots: list[Any] = []
    waiting: list[Any] = [function]
    while waiting:
        found = waiting.pop()
        if isinstance(found, MethodType):
            roots.append(found.__self__)
            found = found.__func__
        found = getattr(found, "__wrapped__", found)  # of tp.fuse, tp.grad and others
        if not isinstance(found, FunctionType) or id(found) in seen:
            continue
        seen.add(id(found))
        cells += _cells(found)
        names += _globals(found)
        bound = [value for _, value in _cells(found)] + [value for *_, value in _globals(found)]
        waiting += [
            value for value in bound if getattr(value, "__module__", None) == found.__module__
        ]
        roots += bound
    return FreeVariables(tuple(cells), tuple(names), tuple(_held(roots)))


def _cells(function: FunctionType) -> list[tuple[Any, Any]]:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append((cell, cell.cell_contents))
        except ValueError:  # it is bound later
            continue
    return found


def _globals(function: FunctionType) -> list[tuple[dict[str, Any], str, Any]]:
    space = function.__globals__
    names = dict.fromkeys(name for name in _names(function.__code__) if name in space)
    return [(space, name, space[name]) for name in names if not isinstance(space[name], ModuleType)]


def global_values(function: FunctionType) -> list[Any]:
    """Return what the global names of a function stand for, but for functions of other modules."""
    found = [value for *_, value in _globals(function)]
    return [
        value for value in found
        if not callable(value) or getattr(value, "__module__", None) == function.__module__
    ]  # fmt: skip


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code asks for, and the functions that are defined in it."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _held(roots: list[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield containers among objects and inside of them, with what they hold."""
    waiting, seen = list(roots), set[int]()
    while waiting and len(seen) < MOST_HELD:
        each = waiting.pop()
        if isinstance(each, FunctionType | type) or id(each) in seen:
            continue
        seen.add(id(each))
        own = each if isinstance(each, dict | list | tuple) else _attributes(each)
        if own is None:
            continue
        held = _elements(own)
        if not isinstance(own, tuple):
            yield own, held
        waiting += held


def _attributes(obj: Any) -> dict[str, Any] | None:
    """Return the attributes of an object of a class of the user's."""
    home = type(obj).__module__.split(".")[0]
    if home in ("builtins", "numpy", "scipy", "taco_py", "functools", "types"):
        return None
    return getattr(obj, "__dict__", None)

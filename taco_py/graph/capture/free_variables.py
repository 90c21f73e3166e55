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

FUSED_PREFIX = "__fused_"
"""How names of what is kept on a user's object begin."""


@dataclass(frozen=True, slots=True, eq=False)
class FreeVariables:
    """Names with what they were bound to in a trace.

    cells     of closures, with their contents
    names     dictionaries of globals, with a name and its value each
    contents  containers, and dictionaries of objects, with what they held
    """

    cells: tuple[tuple[Any, Any], ...]
    names: tuple[tuple[dict[str, Any], str, Any], ...]
    contents: tuple[tuple[Any, tuple[Any, ...]], ...] = ()

    def hold(self) -> bool:
        """Tell whether all names are bound to the same objects still."""
        for cell, value in self.cells:
            if cell.cell_contents is not value:
                return False
        for space, name, value in self.names:
            if space.get(name) is not value:
                return False
        return all(_is_same(_elements(container), values) for container, values in self.contents)


def _is_same(items: tuple[Any, ...], values: tuple[Any, ...]) -> bool:
    return len(items) == len(values) and all(a is b for a, b in zip(items, values, strict=True))


def _elements(container: Any) -> tuple[Any, ...]:
    """Return the elements of a container in order, without bound functions that fusing stores."""
    if isinstance(container, dict):
        return tuple(
            value
            for key, value in container.items()
            if not (isinstance(key, str) and key.startswith(FUSED_PREFIX))
        )
    return tuple(container)


def free_variables(function: Callable[..., Any]) -> FreeVariables:
    """Find the variables that a function, and the user's functions that it calls by name, reads."""
    cells: list[tuple[Any, Any]] = []
    names: list[tuple[dict[str, Any], str, Any]] = []
    visited: set[int] = set()
    roots: list[Any] = []
    waiting: list[Any] = [function]
    while waiting:
        callee = waiting.pop()
        if isinstance(callee, MethodType):
            roots.append(callee.__self__)
            callee = callee.__func__
        callee = getattr(callee, "__wrapped__", callee)  # of tp.fuse, tp.grad and others
        if not isinstance(callee, FunctionType) or id(callee) in visited:
            continue
        visited.add(id(callee))
        cells += _cells(callee)
        names += _globals(callee)
        bound = [value for _, value in _cells(callee)] + [value for *_, value in _globals(callee)]
        waiting += [
            value for value in bound if getattr(value, "__module__", None) == callee.__module__
        ]
        roots += bound
    return FreeVariables(tuple(cells), tuple(names), tuple(_containers(roots)))


def _cells(function: FunctionType) -> list[tuple[Any, Any]]:
    pairs = []
    for cell in function.__closure__ or ():
        try:
            pairs.append((cell, cell.cell_contents))
        except ValueError:  # it is bound later
            continue
    return pairs


def _globals(function: FunctionType) -> list[tuple[dict[str, Any], str, Any]]:
    space = function.__globals__
    names = dict.fromkeys(name for name in _names(function.__code__) if name in space)
    return [(space, name, space[name]) for name in names if not isinstance(space[name], ModuleType)]


def global_values(function: FunctionType) -> list[Any]:
    """Return the values of a function's global names, without functions of other modules."""
    values = [value for *_, value in _globals(function)]
    return [
        value for value in values
        if not callable(value) or getattr(value, "__module__", None) == function.__module__
    ]  # fmt: skip


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that code asks for, and the functions that are defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _containers(roots: list[Any]) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield containers among objects and inside of them, with their elements."""
    waiting, visited = list(roots), set[int]()
    while waiting and len(visited) < MOST_HELD:
        item = waiting.pop()
        if isinstance(item, FunctionType | type) or id(item) in visited:
            continue
        visited.add(id(item))
        container = item if isinstance(item, dict | list | tuple) else _attributes(item)
        if container is None:
            continue
        elements = _elements(container)
        if not isinstance(container, tuple):
            yield container, elements
        waiting += elements


def _attributes(obj: Any) -> dict[str, Any] | None:
    """Return the attributes of an object of a class of the user's."""
    home = type(obj).__module__.split(".")[0]
    if home in ("builtins", "numpy", "scipy", "taco_py", "functools", "types"):
        return None
    return getattr(obj, "__dict__", None)

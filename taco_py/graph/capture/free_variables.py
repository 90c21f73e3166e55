"""What a function reads besides its arguments: closures and globals, looked at in each call.

A trace is made for the objects that these names have; under another object it is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from codegen.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class FreeVariables:
    """Names with what they were bound to in a trace.

    cells   of closures, with their contents
    names   dictionaries of globals, with a name and its value each
    """

    cells: tuple[tuple[Any, Any], ...]
    names: tuple[tuple[dict[str, Any], str, Any], ...]

    def hold(self) -> bool:
        """Tell whether all names are bound to the same objects still."""
        for cell, value in self.cells:
            if cell.cell_contents is not value:
                return False
        return all(space.get(name) is value for space, name, value in self.names)


def free_variables(function: Callable[..., Any]) -> FreeVariables:
    """Find what a function, and the user's functions that it calls by name, reads."""
    cells: list[tuple[Any, Any]] = []
    names: list[tuple[dict[str, Any], str, Any]] = []
    seen: set[int] = set()
    waiting: list[Any] = [function]
    while waiting:
        found = waiting.pop()
        if not isinstance(found, FunctionType) or id(found) in seen:
            continue
        seen.add(id(found))
        for cell in found.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # it is bound later
                continue
            cells.append((cell, value))
            waiting.append(value)
        for name in _names(found.__code__):
            if name in found.__globals__:
                value = found.__globals__[name]
                if isinstance(value, ModuleType):
                    continue
                names.append((found.__globals__, name, value))
                if getattr(value, "__module__", None) == found.__module__:
                    waiting.append(value)
    return FreeVariables(tuple(cells), tuple(names))


def _names(code: CodeType) -> Iterator[str]:
    """The names that code asks for, and the functions that are defined in it."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)

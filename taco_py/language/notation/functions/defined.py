"""The functions that users define: by name the operator and the text of the body.

Functions of one name in two processes are distinguished by their bodies: fast paths of calls are
cached under the names and bodies of the functions in their texts (`bodies_in`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


class Defined:
    """The functions of users in this process, by name."""

    __slots__ = ("bodies", "operators")

    def __init__(self) -> None:
        self.operators: dict[str, Any] = {}
        self.bodies: dict[str, str] = {}

    def define(self, name: str, operator: Any, body: str) -> None:
        """Register an operator under a name, replacing an earlier one."""
        self.operators[name] = operator
        self.bodies[name] = body

    def forget(self, name: str) -> None:
        """Remove the function of a name."""
        self.operators.pop(name, None)
        self.bodies.pop(name, None)


DEFINED = Defined()
"""The functions of users in this process."""


def bodies_in(text: object, bodies: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names and bodies of the functions that a text mentions, sorted by name."""
    if not bodies or not isinstance(text, str):
        return ()
    names = sorted(bodies.keys() & set(re.findall(r"\w+", text)))
    return tuple(part for name in names for part in (name, bodies[name]))

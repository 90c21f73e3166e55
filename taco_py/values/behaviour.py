"""What Tensors do as arrays, found when it is first asked for.

    T + U   →   BEHAVIOUR.find("elementwise")("add", T, U)

Values know no compiler: the functions are in `taco_py.arrays`, which `taco_py` names at its import.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Behaviour:
    """Functions by name, of the table `OPERATIONS` in a module that is imported once needed.

    home  the module's name
    """

    __slots__ = ("functions", "home")

    def __init__(self) -> None:
        self.home = ""
        self.functions: dict[str, Callable[..., Any]] = {}

    def find(self, name: str) -> Callable[..., Any]:
        """Return a function by its name."""
        if not self.functions:
            self.functions = dict(import_module(self.home).OPERATIONS)
        return self.functions[name]


BEHAVIOUR = Behaviour()
"""What Tensors of this process do."""

"""The array behaviour of Tensors, imported at its first use.

    T + U   →   BEHAVIOUR.find("elementwise")("add", T, U)

Tensors do not import the compiler: the functions are in `taco_py.arrays`, which `taco_py` names at
its import.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from threading import get_ident
from typing import Any

from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.byte_counts import limited_result


class Behaviour:
    """Functions by name, from the table `OPERATIONS` of a module that is imported at the first use.

    home   the module's name
    taken  functions that intercept operations, by the thread that records them (`tp.lazy`)
    """

    __slots__ = ("functions", "home", "taken")

    def __init__(self) -> None:
        self.home = ""
        self.functions: dict[str, Callable[..., Any]] = {}
        self.taken: dict[int, Callable[[str], Callable[..., Any]]] = {}

    def find(self, name: str) -> Callable[..., Any]:
        """Return a function by its name."""
        if self.taken and (take := self.taken.get(get_ident())) is not None:
            return take(name)
        function = self.function_named(name)
        return partial(limited_result, name, function) if KERNELS.memory.on else function

    def function_named(self, name: str) -> Callable[..., Any]:
        """Return a function of the table by its name."""
        if not self.functions:
            self.functions = dict(import_module(self.home).OPERATIONS)
        return self.functions[name]


BEHAVIOUR = Behaviour()
"""The array behaviour of Tensors in this process."""

"""What Tensors do as arrays, found when it is first asked for.

    T + U   →   BEHAVIOUR.find("elementwise")("add", T, U)

Values know no compiler: the functions are in `taco_py.arrays`, which `taco_py` names at its import.
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
    """Functions by name, of the table `OPERATIONS` in a module that is imported once needed.

    home   the module's name
    taken  who takes operations over, by the thread in which they are noted (`tp.lazy`)
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
        found = self.known(name)
        return partial(limited_result, name, found) if KERNELS.memory.on else found

    def known(self, name: str) -> Callable[..., Any]:
        """Return a function of the table by its name."""
        if not self.functions:
            self.functions = dict(import_module(self.home).OPERATIONS)
        return self.functions[name]


BEHAVIOUR = Behaviour()
"""What Tensors of this process do."""

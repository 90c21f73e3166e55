"""Plans that are not chosen by price: `schedule="measure"` and `schedule="tuned"`.

Calls know no tuning: the function is in `taco_py.tuning`, in the module that `taco_py` names at its
import.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from taco_py.arguments.options import CallOptions
from taco_py.language.notation.einsum import Squeezed
from taco_py.language.notation.nodes import Assignment


class PlanChoice:
    """CallOptions for the operands of a call, by timing plans or from the store of tuned plans.

    home  the name of the module with the function `chosen`
    """

    __slots__ = ("home",)

    def __init__(self) -> None:
        self.home = ""

    def options(
        self,
        assignment: Assignment,
        objects: Mapping[str, Any],
        options: CallOptions,
        squeezed: Squeezed,
    ) -> tuple[CallOptions, str]:
        """Return options with a plan that is priced or given, and the lines of explain() on it."""
        if not (options.measure or options.tuned):
            return options, ""
        choice: tuple[CallOptions, str] = import_module(self.home).chosen(
            assignment, objects, options, squeezed
        )
        return choice


PLAN_CHOICE = PlanChoice()
"""How plans of this process are chosen other than by price."""

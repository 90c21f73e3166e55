"""Plans that are not chosen by price: `schedule="measure"` and `schedule="tuned"`.

Calls know no tuning: the function is in `taco_py.tuning`, in the module that `taco_py` names at its
import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taco_py.arguments.options import CallOptions
    from taco_py.calls.call.computation import Computation


class PlanChoice:
    """CallOptions for the operands of a call, by timing plans or from the store of tuned plans.

    home  the name of the module with the function `resolve_settings`
    """

    __slots__ = ("home",)

    def __init__(self) -> None:
        self.home = ""

    def options(self, computation: Computation) -> tuple[CallOptions, str]:
        """Return options with a plan that is priced or given, and the lines of explain() on it."""
        if not computation.options.chosen_by_data:
            return computation.options, ""
        options: tuple[CallOptions, str] = import_module(self.home).resolve_settings(computation)
        return options


PLAN_CHOICE = PlanChoice()
"""How plans of this process are chosen other than by price."""

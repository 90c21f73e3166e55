"""The options of a search, checked wherever they are given: to `tune`, in files and in rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.option_checks import integer
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.searches.search_table import USUAL_SEARCH, search_of


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The arguments of `tune` besides those of a call.

    trials   plans that are run at most, and seconds for all of them
    search   a name of `searches.search_table`, and the seed of its random choices
    """

    trials: int = 100
    seconds: float = 60.0
    search: str = USUAL_SEARCH
    seed: int = 0

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> SearchOptions:
        """Check arguments by name, in their order. Raises OperandTypeError or ScheduleError."""
        names = (name for name in SEARCH_OPTIONS if name in keywords)
        options = {name: checked_search_option(name, keywords[name]) for name in names}
        return cls(**options)


SEARCH_OPTIONS = tuple(field.name for field in fields(SearchOptions))
"""The arguments of `tune` besides those of a call, by name."""
EXPECTED = {
    "trials": "a whole number from 1 on",
    "limit": "a whole number from 1 on",
    "seconds": "a number of seconds above 0",
    "seed": "a whole number",
}


def checked_search_option(name: str, value: Any) -> Any:
    """Return the value of an option of a search, of Python's types where NumPy's were given.

    Raises OperandTypeError or ScheduleError for a value that it cannot have.
    """
    if name == "search":
        search_of(value)
        return value
    integral = integer(value)
    if name == "seconds":
        is_number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
        number = integral if integral is not None else float(value) if is_number else None
    else:
        number = integral
    if number is None or not (name == "seed" or number > 0):
        raise OperandTypeError(f"Expected {name} to be {EXPECTED[name]}, found {value!r}")
    return number

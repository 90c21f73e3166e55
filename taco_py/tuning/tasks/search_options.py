"""The options of a search, checked wherever they are given: to `tune`, in files and in rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.arguments.option_checks import integer
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.tuning.searches.search_table import search_of

SEARCH_OPTIONS = ("trials", "seconds", "search", "seed")
"""What `tune` takes besides a call."""
EXPECTED = {
    "trials": "a whole number from 1 on",
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
    whole = integer(value)
    if name == "seconds":
        is_number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
        found = whole if whole is not None else float(value) if is_number else None
    else:
        found = whole
    if found is None or not (name == "seed" or found > 0):
        raise OperandTypeError(f"Expected {name} to be {EXPECTED[name]}, found {value!r}")
    return found

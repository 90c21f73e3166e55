"""The options of a search, checked wherever they are given: to `tune`, in files and in rules."""

from __future__ import annotations

from typing import Any

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.tune.searches.search_table import search_of

SEARCH_OPTIONS = ("trials", "seconds", "search", "seed")
"""What `tune` takes besides a call."""


def check_search_option(name: str, value: Any) -> None:
    """Raise OperandTypeError or ScheduleError for values that an option of a search cannot have."""
    if name == "search":
        search_of(value)
    elif name == "seed":
        if isinstance(value, bool) or not isinstance(value, int):
            raise OperandTypeError(f"Expected seed to be a whole number, found {value!r}")
    else:
        _check_number(name, value, whole=name == "trials")


def _check_number(name: str, value: Any, whole: bool) -> None:
    """Raise OperandTypeError unless it is a number above 0, and a whole one where that is asked."""
    number = isinstance(value, int) if whole else isinstance(value, int | float)
    if isinstance(value, bool) or not number or not value > 0:
        kind = "a whole number from 1 on" if whole else "a number of seconds above 0"
        raise OperandTypeError(f"Expected {name} to be {kind}, found {value!r}")

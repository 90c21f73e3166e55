"""Operands that stand for arrays while a function is traced: they take a call over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def taker_of(values: Iterable[Any]) -> Any:
    """Return the first of operands that takes calls over, None where none does."""
    return next((each for each in values if hasattr(type(each), "__taco_function__")), None)


def taken_over(taker: Any, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Leave a call to an operand, with the options that it gives."""
    given = {key: each for key, each in options.items() if each is not None}
    return taker.__taco_function__(name, args, given)

"""Axes as NumPy's functions take them: negative ones count from the end."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from taco_py.language.diagnostics.errors import DimensionError, OperandTypeError


def place_of(axis: Any, order: int) -> int:
    """Return the mode that a number denotes. Raises OperandTypeError, or DimensionError."""
    try:
        place = index(axis)
    except TypeError:
        place = None
    if place is None or isinstance(axis, bool):
        raise OperandTypeError(
            f"Expected a whole number or several as axis, found {axis!r}", hint="as in axis=0"
        )
    if not -order <= place < order:
        raise DimensionError(
            f"Expected an axis from {-order} to {order - 1} of an array of order {order}, found "
            f"{place}",
            hint="axes count from 0, or from the last one backwards from -1",
        )
    return place % order


def listed_axes(axis: Any) -> tuple[Any, ...]:
    """Return one axis or several as a tuple."""
    return tuple(axis) if isinstance(axis, Sequence | np.ndarray) else (axis,)


def places_of(axis: Any, order: int) -> tuple[int, ...]:
    """Return the modes that an argument names, in its order; all for None.

    Raises DimensionError for a mode that does not exist or occurs twice.
    """
    if axis is None:
        return tuple(range(order))
    places = tuple(place_of(number, order) for number in listed_axes(axis))
    if len({*places}) != len(places):
        raise DimensionError(
            f"Expected each mode once in axis, found {axis}", hint="leave out the second one"
        )
    return places


def axes_of(axis: Any, order: int) -> tuple[int, ...]:
    """Return the modes that an argument names, in ascending order. Raises as `places_of`."""
    return tuple(sorted(places_of(axis, order)))


def at_axis(place: int, part: Any) -> tuple[Any, ...]:
    """Make the subscripts of a part along a mode: x[:, part] for 1."""
    return (*(slice(None),) * place, part)

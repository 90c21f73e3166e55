"""Checks of borrowed index arrays, made once: kernels read without bounds checks.

    0 = pos[0] <= pos[1] <= …         0 <= crd[p] < size for each p < pos[-1]

A sound array object is not checked again for as long as it exists; later writes into it are not
noticed. Another object in its place is checked.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import StructureError

CHECKS = {np.dtype(f"int{bits}"): f"taco_within_int{bits}" for bits in (32, 64)}
REMEDY = (
    "rebuild it from its coordinates; .check_format() of scipy's arrays says more of these. Arrays "
    "are looked at once: replace one that was mended in place by a copy"
)
is_known = KERNELS.known_arrays.keys.__contains__
"""Tell whether a key belongs to arrays that were checked."""


class _NameOfPlace(Protocol):
    def __call__(self, place: int) -> str: ...


def are_sound(pos: Any, crd: Any, size: int) -> bool:
    """Tell whether the arrays of a compressed level fit together and a mode of this size.

    Sound arrays are remembered.

    >>> are_sound(np.array([0, 1, 2]), np.array([0, 3]), 3)
    False
    """
    if KERNELS.known_arrays.on and not _check(pos, crd, size):
        return False
    KERNELS.known_arrays.add((id(pos), id(crd), size), (pos, crd))
    return True


def in_range(crd: Any, size: int) -> bool:
    """Tell whether coordinates lie in a mode of this size; remember the array if they do.

    >>> in_range(np.array([0, 2]), 3), in_range(np.array([0, -2]), 3)
    (True, False)
    """
    if KERNELS.known_arrays.on and not _check(None, crd, size):
        return False
    KERNELS.known_arrays.add((id(crd), size), (crd,))
    return True


def look_at_indices(on: bool) -> None:
    """Turn checks of index arrays on or off; arrays that were not checked will be."""
    KERNELS.known_arrays.on = on
    KERNELS.known_arrays.clear()


def _check(pos: Any, crd: Any, size: int) -> bool:
    """Check all positions and coordinates."""
    look = KERNELS.host_functions.get(CHECKS.get(crd.dtype, ""))
    ends = crd if pos is None else pos
    plain = ends.dtype == crd.dtype and _is_plain(ends) and _is_plain(crd)
    if look is not None and plain:
        result = np.zeros(1, np.int64)
        look(ends, crd, result, -1 if pos is None else len(pos) - 1, len(crd), size)
        return bool(result[0])
    if pos is not None:
        if pos[0] != 0 or (pos[1:] < pos[:-1]).any() or pos[-1] > len(crd):
            return False
        crd = crd[: int(pos[-1])]
    return len(crd) == 0 or bool(crd.min() >= 0 and crd.max() < size)


def _is_plain(array: Array) -> bool:
    return array.strides == (array.itemsize,)


def require_sound(
    pos: Any, crd: Any, size: int, names: tuple[str, str], what: tuple[str, str]
) -> None:
    """Raise StructureError, which names the place, unless a compressed level's arrays are sound.

    names  of the two arrays
    what   the words for coordinates above and of the level, as in ("row", "columns")
    """
    if is_known((id(pos), id(crd), size)) or are_sound(pos, crd, size):
        return
    name, (above, _) = names[0], what
    if pos[0] != 0:
        raise StructureError(f"Expected {name}[0] to be 0, found {pos[0]}", hint=REMEDY)
    falls = np.flatnonzero(pos[1:] < pos[:-1])
    if len(falls):
        place = int(falls[0])
        raise StructureError(
            f"Expected {name} to ascend from 0 to {pos[-1]}, found {name}[{place}] = {pos[place]} "
            f"and then {name}[{place + 1}] = {pos[place + 1]}, where {above} {place} ends",
            hint=REMEDY,
        )
    _refuse(crd[: int(pos[-1])], size, names[1], what[1])


def require_in_range(crd: Any, size: int, name: str, what: str) -> None:
    """Raise StructureError, which names the place, unless coordinates lie in a mode of this size.

    name  of the array
    what  the word for the coordinates, as in "rows"
    """
    if not is_known((id(crd), size)) and not in_range(crd, size):
        _refuse(crd, size, name, what)


def _refuse(crd: Array, size: int, name: str, what: str) -> None:
    """Raise StructureError for the first coordinate that is not within 0 … size - 1."""
    outside = np.flatnonzero((crd < 0) | (crd >= size))
    if len(outside):
        place = int(outside[0])
        allowed = f"from 0 to {size - 1}" if size else "of none"
        raise StructureError(
            f"Expected {name} {allowed}, for there are {size} {what}, found {name}[{place}] = "
            f"{crd[place]}",
            hint=REMEDY,
        )

"""Index arrays that somebody else owns, looked at once: kernels read without bounds checks.

    0 = pos[0] <= pos[1] <= …         0 <= crd[p] < size for each p < pos[-1]

An array object that was found sound is not looked at again for as long as it exists; what is
written into it since is not seen. Another object in its place is looked at.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import StructureError

WITHIN = {np.dtype(f"int{bits}"): f"taco_within_int{bits}" for bits in (32, 64)}
REMEDY = (
    "rebuild it from its coordinates; .check_format() of scipy's arrays says more of these. Arrays "
    "are looked at once: replace one that was mended in place by a copy"
)
is_known = KERNELS.known_arrays.keys.__contains__
"""Whether a key is that of arrays which were looked at."""


class _Named(Protocol):
    def __call__(self, place: int) -> str: ...


def are_sound(pos: Any, crd: Any, size: int) -> bool:
    """Tell whether the arrays of a compressed level fit together and a mode of this size, and
    remember it where they do.

    >>> are_sound(np.array([0, 1, 2]), np.array([0, 3]), 3)
    False
    """
    if KERNELS.known_arrays.on and not _within(pos, crd, size):
        return False
    KERNELS.known_arrays.add((id(pos), id(crd), size), (pos, crd))
    return True


def in_range(crd: Any, size: int) -> bool:
    """Tell whether coordinates lie in a mode of this size, and remember it where they do.

    >>> in_range(np.array([0, 2]), 3), in_range(np.array([0, -2]), 3)
    (True, False)
    """
    if KERNELS.known_arrays.on and not _within(None, crd, size):
        return False
    KERNELS.known_arrays.add((id(crd), size), (crd,))
    return True


def look_at_indices(on: bool) -> None:
    """Look at index arrays from now on, those that were taken unseen too; or take them unseen."""
    KERNELS.known_arrays.on = on
    KERNELS.known_arrays.clear()


def _within(pos: Any, crd: Any, size: int) -> bool:
    """Look at all positions and coordinates."""
    look = KERNELS.host_functions.get(WITHIN.get(crd.dtype, ""))
    ends = crd if pos is None else pos
    plain = ends.dtype == crd.dtype and _is_plain(ends) and _is_plain(crd)
    if look is not None and plain:
        found = np.zeros(1, np.int64)
        look(ends, crd, found, -1 if pos is None else len(pos) - 1, len(crd), size)
        return bool(found[0])
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
    what   the coordinates above and those of the level, as in ("row", "columns")
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
    what  the coordinates are, as in "rows"
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

"""NumPy's functions that move elements, written by transposes, slices and concatenations.

np.moveaxis(x, 0, -1)   →   np.transpose(x, (1, 2, 0))
np.diff(x)              →   x[..., 1:] - x[..., :-1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import at_axis, axes_of, listed_axes, place_of, places_of
from taco_py.arrays.numpy_surface.surface_operands import operands
from taco_py.language.diagnostics.errors import DimensionError, OperandTypeError

# ---------------------------------------------------------------- orders of modes


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """Move modes to other places; the others keep their order."""
    old, new = (places_of(listed_axes(axes), a.ndim) for axes in (source, destination))
    if len(old) != len(new):
        raise DimensionError(
            f"Expected as many distinct places as modes to move, found {source} and {destination}",
            hint="as in moveaxis((0, 1), (1, 0))",
        )
    order = [axis for axis in range(a.ndim) if axis not in old]
    for place, axis in sorted(zip(new, old, strict=True)):
        order.insert(place, axis)
    return np.transpose(a, order)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Exchange two modes."""
    order = [*range(a.ndim)]
    one, two = (place_of(axis, a.ndim) for axis in (axis1, axis2))
    order[one], order[two] = two, one
    return np.transpose(a, order)


def matrix_transpose(x: Any) -> Any:
    """Exchange the last two modes."""
    check_matrices(x)
    return swapaxes(x, -1, -2)


def check_matrices(x: Any, function: str = "") -> None:
    """Raise DimensionError for an array of fewer than two modes."""
    if x.ndim < 2:
        raise DimensionError(
            f"Expected an array of two modes or more{f' for {function}' * bool(function)}, found "
            f"one of order {x.ndim}",
            hint="x[:, None] makes a matrix of a vector",
        )


def flip(m: Any, axis: Any = None) -> Any:
    """Reverse the order along modes; along all where axis is None."""
    axes = axes_of(axis, m.ndim)
    return m[tuple(slice(None, None, -1 if n in axes else None) for n in range(m.ndim))]


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """Turn the plane of two modes by quarters."""
    one, two = axes
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return flip(flip(m, one), two)
    turned = swapaxes(m if k % 4 == 3 else flip(m, two), one, two)
    return flip(turned, two) if k % 4 == 3 else turned


# ---------------------------------------------------------------- parts


def take(a: Any, indices: Any, axis: int | None = None) -> Any:
    """Take elements at positions along a mode; without axis, of all in row-major order."""
    (a,) = operands(a, arguments=(indices,))
    if axis is None:
        a, axis = a.ravel(), 0
    positions = np.asarray(indices) if isinstance(indices, list | tuple) else indices
    return a[at_axis(place_of(axis, a.ndim), positions)]


def unstack(x: Any, *, axis: int = 0) -> tuple[Any, ...]:
    """Return the parts along a mode."""
    place = place_of(axis, x.ndim)
    return tuple(x[at_axis(place, n)] for n in range(int(x.shape[place])))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split an array at positions, or into equal parts. Raises DimensionError for a rest."""
    count, size = indices_or_sections, ary.shape[place_of(axis, ary.ndim)]
    if np.ndim(count) == 0 and int(size) % int(count):
        raise DimensionError(
            f"Expected {count} equal parts of {size}, found a rest", hint="np.array_split"
        )
    return array_split(ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Split an array at positions, or into parts whose sizes differ by no more than 1."""
    place = place_of(axis, ary.ndim)
    ends = indices_or_sections
    if np.ndim(ends) == 0:
        size, more = divmod(int(ary.shape[place]), int(ends))
        sizes = [size + 1] * more + [size] * (int(ends) - more)
        ends = np.cumsum(sizes).tolist()[:-1]
    pairs = zip([None, *ends], [*ends, None], strict=True)
    return [ary[at_axis(place, slice(*pair))] for pair in pairs]


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split an array along its first mode."""
    return split(ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Split an array along its second mode, a vector along its first."""
    return split(ary, indices_or_sections, 1 if ary.ndim > 1 else 0)


# ---------------------------------------------------------------- arrays put together


def stack(arrays: Sequence[Any], axis: int = 0) -> Any:
    """Put arrays of one shape beside one another along a new mode."""
    return np.concatenate([np.expand_dims(x, axis) for x in operands(*arrays)], axis)


def vstack(tup: Sequence[Any]) -> Any:
    """Put arrays one below another, vectors as rows."""
    return np.concatenate([_with_modes(x, 2) for x in operands(*tup)], 0)


def hstack(tup: Sequence[Any]) -> Any:
    """Put arrays beside one another along their second mode, vectors along their first."""
    parts = [_with_modes(x, 1) for x in operands(*tup)]
    return np.concatenate(parts, 0 if parts[0].ndim == 1 else 1)


def column_stack(tup: Sequence[Any]) -> Any:
    """Put arrays beside one another, vectors as columns."""
    parts = operands(*tup)
    return np.concatenate([np.expand_dims(x, 1) if x.ndim == 1 else x for x in parts], 1)


def block(arrays: Any) -> Any:
    """Join arrays of lists in lists, the innermost beside one another along the last mode."""
    leaves = operands(*_leaves(arrays))
    rest = iter(leaves)
    deepest = _depth(arrays)
    count = max(deepest, *map(np.ndim, leaves))

    def join(part: Any, level: int) -> Any:
        if not isinstance(part, list):
            return _with_modes(next(rest), count)
        parts = [join(inner, level - 1) for inner in part]
        return parts[0] if len(parts) == 1 else np.concatenate(parts, -level)

    return join(arrays, deepest)


def _leaves(part: Any) -> Iterator[Any]:
    """Yield the arrays of lists in lists."""
    if isinstance(part, list):
        for inner in part:
            yield from _leaves(inner)
    else:
        yield part


def _depth(part: Any) -> int:
    return 1 + max(map(_depth, part)) if isinstance(part, list) else 0


def at_least(order: int) -> Callable[..., Any]:
    """Make np.atleast_1d, or np.atleast_2d."""

    def stretch(*arys: Any) -> Any:
        stretched = tuple(_with_modes(x, order) for x in operands(*arys))
        return stretched[0] if len(stretched) == 1 else stretched

    return stretch


def _with_modes(x: Any, order: int) -> Any:
    """Add modes of size 1 in front of an array that has fewer modes."""
    missing = order - np.ndim(x)
    return np.expand_dims(x, tuple(range(missing))) if missing > 0 else x


def tile(A: Any, reps: Any) -> Any:  # noqa: N803
    """Put copies of an array beside one another; `reps` counts them along each mode."""
    counts = tuple(map(int, reps if np.iterable(reps) else (reps,)))
    tiled = _with_modes(A.copy(), len(counts))
    for place, count in enumerate((1,) * (tiled.ndim - len(counts)) + counts):
        if count != 1:
            copies = [tiled] * count or [tiled[at_axis(place, slice(0, 0))]]
            tiled = np.concatenate(copies, place)
    return tiled


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """Move elements along modes; those beyond the end go to the beginning."""
    if axis is None:
        return np.reshape(roll(a.ravel(), shift, 0), a.shape)
    shifts, axes = listed_axes(shift), listed_axes(axis)
    count = max(len(shifts), len(axes))
    shifts, axes = (x * count if len(x) == 1 else x for x in (shifts, axes))
    if len(shifts) != len(axes):
        raise DimensionError(
            f"Expected a shift for each axis, found {shift} and {axis}", hint="shift=1, axis=0"
        )
    rolled = a
    for step, number in zip(map(int, shifts), axes, strict=True):
        place = place_of(number, a.ndim)
        size = a.shape[place]
        if step == 0 or size == 0:
            continue
        inside = step if size > abs(step) else step % int(size)
        parts = (slice(-inside, None), slice(None, -inside))
        rolled = np.concatenate([rolled[at_axis(place, part)] for part in parts], place)
    return rolled if rolled is not a else a.copy()


def meshgrid(*xi: Any, indexing: str = "xy") -> list[Any]:
    """Stretch vectors to all their pairs; each varies along a mode of its own.

    indexing  "xy" to exchange the first two modes, or "ij"
    """
    if indexing not in ("xy", "ij"):
        raise DimensionError(
            f'Expected the indexing "xy" or "ij", found {indexing!r}', hint='indexing="ij"'
        )
    vectors = [x.ravel() for x in operands(*xi)]
    places = [*range(len(vectors))]
    if indexing == "xy":
        places[:2] = reversed(places[:2])
    shape = tuple(vectors[places.index(n)].shape[0] for n in range(len(vectors)))
    new_modes = [tuple(n for n in places if n != place) for place in places]
    return [
        np.broadcast_to(np.expand_dims(x, axes), shape)
        for x, axes in zip(vectors, new_modes, strict=True)
    ]


# ---------------------------------------------------------------- neighbours and diagonals


def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """Subtract each element from the next one along a mode, n times; booleans are compared."""
    (a,) = operands(a, arguments=(prepend, append))
    place = place_of(axis, a.ndim)
    ends = [end for end in (prepend, a, append) if end is not None]
    differences = np.concatenate(ends, place) if len(ends) > 1 else a
    for _ in range(n):
        later = differences[at_axis(place, slice(1, None))]
        earlier = differences[at_axis(place, slice(None, -1))]
        differences = later != earlier if differences.dtype.kind == "b" else later - earlier
    return differences


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """Add up a diagonal."""
    return a.diagonal(offset, axis1, axis2).sum(-1, dtype=dtype)


def repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    """Repeat each element along a mode, as often as the others."""
    if np.ndim(repeats):
        raise OperandTypeError(
            "Expected one number of repetitions, found an array", hint="x[positions] has any"
        )
    if axis is None:
        return repeat(a.ravel(), repeats, 0)
    place, count = place_of(axis, a.ndim), int(repeats)
    before, (size, *after) = a.shape[:place], a.shape[place:]
    stretched = np.broadcast_to(np.expand_dims(a.copy(), place + 1), (*before, size, count, *after))
    return np.reshape(stretched, (*before, size * count, *after))

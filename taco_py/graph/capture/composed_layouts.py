"""NumPy's functions that move elements, written by slices and concatenations, or by positions.

np.roll(x, 1)   →   concatenate(x[-1:], x[:-1])
np.tril(x)      →   where(row >= column, x, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taco_py.graph.capture import traced_layouts as layouts
from taco_py.graph.capture import traced_ufuncs as ufuncs
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.symbolic_size import extent_of
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.capture.traced_ufuncs import axes_of

Traced = Any
"""A traced array."""


def traced(recorder: Recorder, x: Any) -> Traced:
    """Return what stands for an array, a number or a constant."""
    return recorder.traced(recorder.name_of(x))


def axis_of(recorder: Recorder, x: Traced, axis: int) -> int:
    """Return an axis of an array, from 0. Raises DimensionError."""
    (found,) = axes_of(recorder, axis, x.ndim)
    return found


def along_axis(axis: int, part: Any) -> tuple[Any, ...]:
    """Make the subscripts of a part along an axis."""
    return (*(slice(None),) * axis, part)


# ---------------------------------------------------------------- parts moved


def roll(recorder: Recorder, x: Any, shift: Any, axis: Any = None) -> Traced:
    """Note np.roll: what leaves at one end comes in at the other."""
    x = traced(recorder, x)
    given = x.name
    if axis is None:
        shape = x.shape
        return layouts.reshape(recorder, roll(recorder, x.ravel(), shift, 0), shape)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    shifts = shift if isinstance(shift, tuple | list) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        refuse("Expected a shift for each axis, found another number", "name each axis once")
    for each, by in zip(axes, shifts, strict=True):
        own = axis_of(recorder, x, each)
        size = x.shape[own]
        if int(by) == 0 or size == 0:
            continue
        inside = int(by) if size > abs(int(by)) else int(by) % int(size)
        parts = (slice(-inside, None), slice(None, -inside))
        x = layouts.concatenate(recorder, [x[along_axis(own, part)] for part in parts], own)
    return x if x.name != given else layouts.copied(recorder, x)


def diff(recorder: Recorder, x: Any, n: int = 1, axis: int = -1) -> Traced:
    """Note np.diff: differences of neighbours, n times."""
    x = traced(recorder, x)
    own = axis_of(recorder, x, axis)
    for _ in range(n):
        later, former = x[along_axis(own, slice(1, None))], x[along_axis(own, slice(None, -1))]
        x = later != former if x.dtype.kind == "b" else later - former
    return x


def tile(recorder: Recorder, x: Any, reps: Any) -> Traced:
    """Note np.tile: an array put beside itself."""
    counts = tuple(map(int, reps if np.iterable(reps) else (reps,)))
    x = layouts.copied(recorder, x)
    while x.ndim < len(counts):
        x = layouts.expand_dims(recorder, x, 0)
    for axis, count in enumerate((1,) * (x.ndim - len(counts)) + counts):
        if count != 1:
            parts = [x] * count or [x[along_axis(axis, slice(0, 0))]]
            x = layouts.concatenate(recorder, parts, axis)
    return x


def repeat(recorder: Recorder, x: Any, repeats: Any, axis: int | None = None) -> Traced:
    """Note np.repeat: each element so many times, as often as the others."""
    if np.ndim(repeats):
        refuse("Expected one number of repetitions, found an array", "x[positions] has any")
    x, count = layouts.copied(recorder, x), int(repeats)
    if axis is None:
        return repeat(recorder, x.ravel(), count, 0)
    own = axis_of(recorder, x, axis)
    shape = x.shape
    wide = layouts.expand_dims(recorder, x, own + 1)
    stretched = layouts.broadcast_to(recorder, wide, (*shape[: own + 1], count, *shape[own + 1 :]))
    whole = (*shape[:own], shape[own] * count, *shape[own + 1 :])
    return layouts.reshape(recorder, stretched, whole)


def at_least(order: int) -> Callable[..., Any]:
    """np.atleast_1d, np.atleast_2d."""

    def stretch(recorder: Recorder, *arrays: Any) -> Any:
        found = []
        for each in arrays:
            x = traced(recorder, each)
            while x.ndim < order:
                x = layouts.expand_dims(recorder, x, 0)
            found.append(x)
        return found[0] if len(found) == 1 else tuple(found)

    return stretch


def column_stack(recorder: Recorder, arrays: Sequence[Any]) -> Traced:
    """Note np.column_stack: vectors as columns beside each other."""
    parts = [traced(recorder, each) for each in arrays]
    wide = [layouts.expand_dims(recorder, x, 1) if x.ndim == 1 else x for x in parts]
    return layouts.concatenate(recorder, wide, 1)


def unstack(recorder: Recorder, x: Any, *, axis: int = 0) -> tuple[Traced, ...]:
    """Note np.unstack: the parts along an axis."""
    x = traced(recorder, x)
    own = axis_of(recorder, x, axis)
    return tuple(x[along_axis(own, place)] for place in range(int(x.shape[own])))


def divided(axis: int) -> Callable[..., Any]:
    """np.vsplit and np.hsplit."""

    def parts(recorder: Recorder, x: Any, where: Any) -> Any:
        x = traced(recorder, x)
        return recorder.operations["split"](recorder, x, where, axis if x.ndim > 1 else 0)

    return parts


def rot90(recorder: Recorder, m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Traced:
    """Note np.rot90: quarters of a turn in the plane of two axes."""
    x = traced(recorder, m)
    one, two = axes
    if k % 4 == 0:
        return x
    if k % 4 == 2:
        return layouts.flip(recorder, layouts.flip(recorder, x, one), two)
    turned = x if k % 4 == 3 else layouts.flip(recorder, x, two)
    swapped = layouts.swapaxes(recorder, turned, one, two)
    return layouts.flip(recorder, swapped, two) if k % 4 == 3 else swapped


def block(recorder: Recorder, arrays: Any) -> Traced:
    """Note np.block of lists in lists: the innermost beside each other along the last mode."""

    def depth(part: Any) -> int:
        return 1 + max(map(depth, part)) if isinstance(part, list) else 0

    def order(part: Any) -> int:
        return max(map(order, part)) if isinstance(part, list) else traced(recorder, part).ndim

    deepest = depth(arrays)
    wide = max(deepest, order(arrays))

    def joined(part: Any, level: int) -> Traced:
        if not isinstance(part, list):
            return at_least(wide)(recorder, part)
        parts = [joined(each, level - 1) for each in part]
        return parts[0] if len(parts) == 1 else layouts.concatenate(recorder, parts, -level)

    return joined(arrays, deepest)


def meshgrid(recorder: Recorder, *vectors: Any, indexing: str = "xy") -> list[Traced]:
    """Note np.meshgrid: vectors stretched to all their pairs."""
    arrays = [traced(recorder, each).ravel() for each in vectors]
    order = len(arrays)
    places = [*range(order)]
    if indexing == "xy" and order > 1:
        places[:2] = [1, 0]
    shape: list[Any] = [None] * order
    for place, x in zip(places, arrays, strict=True):
        shape[place] = x.shape[0]
    wide = [
        layouts.expand_dims(recorder, x, tuple(each for each in range(order) if each != place))
        if order > 1 else x
        for place, x in zip(places, arrays, strict=True)
    ]  # fmt: skip
    return [layouts.broadcast_to(recorder, x, tuple(shape)) for x in wide]


# ---------------------------------------------------------------- by positions


def places(recorder: Recorder, size: Any) -> Traced:
    """Note the positions 0, 1, … along a mode of a size."""
    return recorder.add("places", (), (extent_of(size),), "int64")


def triangle(lower: bool) -> Callable[..., Any]:
    """np.tril and np.triu."""

    def part(recorder: Recorder, x: Any, k: int = 0) -> Traced:
        x = traced(recorder, x)
        if x.ndim < 2:
            refuse(f"Expected an array of two modes or more, found {x.ndim}", "x[None, :] has two")
        rows = places(recorder, x.shape[-2])[:, None]
        columns = places(recorder, x.shape[-1])[None, :]
        inside = columns - rows <= k if lower else columns - rows >= k
        return ufuncs.where(recorder, inside, x, x.dtype.type(0))

    return part


def diag(recorder: Recorder, x: Any, k: int = 0) -> Traced:
    """Note np.diag: the diagonal of a matrix, or the matrix of a diagonal."""
    x = traced(recorder, x)
    if x.ndim == 2:
        return recorder.operations["diagonal"](recorder, x, k)
    if x.ndim != 1 or k:
        refuse("Expected a vector on the main diagonal, found another", "pad the vector first")
    return recorder.add("diag", (x.name,), (*x.fact.shape, *x.fact.shape), x.fact.dtype)


def take_along_axis(recorder: Recorder, x: Any, indices: Any, axis: Any = -1) -> Traced:
    """Note np.take_along_axis: of each line along an axis the elements at its positions."""
    x, chosen = traced(recorder, x), traced(recorder, indices)
    if axis is None:
        return x.ravel()[chosen.ravel()]
    own, order = axis_of(recorder, x, axis), x.ndim
    if chosen.ndim != order:
        refuse("Expected positions with as many modes as the array, found others", "reshape them")
    key = []
    for each in range(order):
        if each == own:
            key.append(chosen)
            continue
        lines = places(recorder, x.shape[each])
        others = tuple(other for other in range(order) if other != each)
        key.append(layouts.expand_dims(recorder, lines, others) if others else lines)
    return x[tuple(key)]

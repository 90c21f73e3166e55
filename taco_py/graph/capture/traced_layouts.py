"""Functions that move elements: shapes, transposes, parts, arrays put together, positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import axes_of, place_of
from taco_py.arrays.numpy_surface.layouts import check_matrices
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.reshape_factors import factors_of_reshape
from taco_py.graph.capture.symbolic_size import Size, extent_of
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.extents import ONE, Extent, const, product, total
from taco_py.graph.nodes import Fact, Shape
from taco_py.graph.samples import sample
from taco_py.language.diagnostics.errors import DimensionError, PositionError


def _name_and_fact(recorder: Recorder, x: Any) -> tuple[str, Fact]:
    name = recorder.name_of(x)
    return name, recorder.facts[name]


def transpose(recorder: Recorder, x: Any, *axes: Any) -> Any:
    """Note np.transpose: modes in another order, reversed by default."""
    name, fact = _name_and_fact(recorder, x)
    requested = axes[0] if len(axes) == 1 and (axes[0] is None or np.iterable(axes[0])) else axes
    order = tuple(axis.__index__() % max(fact.order, 1) for axis in requested or ())
    order = order or tuple(reversed(range(fact.order)))
    if sorted(order) != [*range(fact.order)]:
        refuse(
            f"Expected each of {fact.order} modes once, found {order}",
            "axes= names the modes in their new order",
            DimensionError,
        )
    shape = tuple(fact.shape[axis] for axis in order)
    return recorder.add("transpose", (name,), shape, fact.dtype, axes=order)


def reshape(recorder: Recorder, x: Any, *shape: Any, **options: Any) -> Any:
    """Note np.reshape in row-major order; one size may be -1."""
    if options.pop("order", "C") != "C" or options.pop("copy", None) is not None:
        refuse("Expected row-major order, found another", "write x.T.reshape(…).T")
    shape = (options.pop("newshape", options.pop("shape", shape)),) if options else shape
    requested = shape[0] if len(shape) == 1 and np.iterable(shape[0]) else shape
    name, fact = _name_and_fact(recorder, x)
    sizes = [extent_of(size if isinstance(size, Size) else size.__index__()) for size in requested]
    elements = product(fact.shape)
    unknown = [place for place, size in enumerate(sizes) if size.constant == -1]
    if len(unknown) == 1:
        factors = [size for size in sizes if size.constant not in (-1, 1)]
        left = list(fact.shape)
        for factor in tuple(factors):
            if factor in left:
                left.remove(factor)
                factors.remove(factor)
        sizes[unknown[0]] = _quotient(recorder, product(left), product(factors))
    if len(unknown) > 1 or not recorder.same(product(sizes), elements):
        refuse(
            f"Expected a shape of {recorder.value(elements)} elements, found {tuple(requested)}",
            "one size may be -1",
            DimensionError,
        )
    after = tuple(map(recorder.result_size, sizes))
    common = factors_of_reshape(recorder, fact.shape, after)
    return recorder.add("reshape", (name,), after, fact.dtype, factors=common)


def _quotient(recorder: Recorder, elements: Extent, rest: Extent) -> Extent:
    if rest.constant == 1:
        return elements
    if rest.constant == 0 or recorder.value(rest) == 0:
        refuse("Expected a shape whose other sizes are not 0, found 0", "name all sizes")
    if elements.constant is not None and rest.constant is not None:
        return const(int(elements.constant) // int(rest.constant))
    return Extent("//", (elements, rest))


def ravel(recorder: Recorder, x: Any, order: str = "C") -> Any:
    """Note np.ravel."""
    return reshape(recorder, x, -1, order=order)


def flatten(recorder: Recorder, x: Any, order: str = "C") -> Any:
    """Note x.flatten(): a copy in one mode."""
    return copied(recorder, ravel(recorder, x, order))


def expand_dims(recorder: Recorder, x: Any, axis: Any) -> Any:
    """Note np.expand_dims: modes of size 1."""
    name, fact = _name_and_fact(recorder, x)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    order = fact.order + len(axes)
    new = axes_of(tuple(axes), order)
    rest = iter(fact.shape)
    shape = tuple(ONE if mode in new else next(rest) for mode in range(order))
    return recorder.add("expand_dims", (name,), shape, fact.dtype, axis=new)


def squeeze(recorder: Recorder, x: Any, axis: Any = None) -> Any:
    """Note np.squeeze: without modes of size 1."""
    name, fact = _name_and_fact(recorder, x)
    units = tuple(place for place, unit in enumerate(fact.units) if unit)
    off = units if axis is None else axes_of(axis, fact.order)
    if not {*off} <= {*units}:
        refuse(f"Expected modes of size 1 to leave out, found {off}", "reshape it", DimensionError)
    shape = tuple(size for place, size in enumerate(fact.shape) if place not in off)
    return recorder.add("squeeze", (name,), shape, fact.dtype, axis=off)


def broadcast_to(recorder: Recorder, x: Any, shape: Any) -> Any:
    """Note np.broadcast_to."""
    name, fact = _name_and_fact(recorder, x)
    sizes = shape if np.iterable(shape) else (shape,)
    target = tuple(map(recorder.result_size, map(extent_of, sizes)))
    stretched = recorder.stretched(fact.shape, target)
    if len(stretched) != len(target) or not all(map(recorder.same, stretched, target)):
        refuse(f"Expected a shape that x stretches to, found {tuple(sizes)}", "reshape it first")
    return recorder.add("broadcast_to", (name,), target, fact.dtype)


def concatenate(recorder: Recorder, arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """Note np.concatenate."""
    names = [recorder.name_of(array) for array in arrays]
    facts = [recorder.facts[name] for name in names]
    if axis is None:
        return concatenate(recorder, [ravel(recorder, array) for array in arrays], 0, dtype)
    if len({fact.order for fact in facts}) != 1 or not facts[0].order:
        refuse("Expected arrays of as many modes each, at least one, found others", "reshape them")
    (mode,) = axes_of(axis, facts[0].order)
    for fact in facts[1:]:
        for place, (one, other) in enumerate(zip(facts[0].shape, fact.shape, strict=True)):
            if place != mode and not recorder.same(one, other):
                refuse(
                    f"Expected equal sizes but along axis {mode}, found "
                    f"{recorder.concrete(facts[0].shape)} and {recorder.concrete(fact.shape)}",
                    "slice or pad them first",
                    DimensionError,
                )
    shape = list(facts[0].shape)
    shape[mode] = total([fact.shape[mode] for fact in facts])
    result_type = str(np.concatenate([np.atleast_1d(sample(fact)) for fact in facts], mode).dtype)
    result = recorder.add("concatenate", names, tuple(shape), result_type, axis=mode)
    return result if dtype is None else astype(recorder, result, dtype)


def astype(recorder: Recorder, x: Any, dtype: Any, **options: Any) -> Any:
    """Note a conversion to another type."""
    name, fact = _name_and_fact(recorder, x)
    target = str(np.dtype(dtype))
    if target == fact.dtype and not fact.weak:
        return recorder.traced(name) if options.get("copy") is False else copied(recorder, x)
    return recorder.add("astype", (name,), fact.shape, target, dtype=target)


def copied(recorder: Recorder, x: Any, *args: Any, **options: Any) -> Any:
    """Note a copy: the same elements, in memory of their own where it is a result."""
    name, fact = _name_and_fact(recorder, x)
    return recorder.add("copy", (name,), fact.shape, fact.dtype)


def same(recorder: Recorder, x: Any, *args: Any, **options: Any) -> Any:
    """Return the array: other sparse formats have the same elements."""
    return recorder.traced(recorder.name_of(x), True)


def to_dense(recorder: Recorder, x: Any) -> Any:
    """Note a dense array of a sparse one."""
    name, fact = _name_and_fact(recorder, x)
    return recorder.add("to_dense", (name,), fact.shape, fact.dtype)


# ---------------------------------------------------------------- subscripts


def subscript(recorder: Recorder, x: Any, key: Any) -> Any:
    """Note x[key]: integers, slices, None, …, arrays that are known, and traced integers."""
    name, fact = _name_and_fact(recorder, x)
    if _has_traced(recorder, key):
        return gather(recorder, x, key)
    keys = _full_key(recorder, key, fact.order)
    arrays = [entry for entry in keys if isinstance(entry, np.ndarray)]
    shape: list[Extent] = []
    parts: list[tuple[Any, ...]] = []
    sizes = iter(fact.shape)
    for entry in keys:
        if entry is None:
            shape.append(ONE)
            parts.append(("new",))
        elif isinstance(entry, np.ndarray):
            next(sizes)
            parts.append(("array",))
        elif isinstance(entry, slice):
            size = next(sizes)
            ends = tuple(map(_end, (entry.start, entry.stop, entry.step)))
            shape.append(_every(recorder, size, ends) or _length(recorder, size, ends))
            _guard_both_ends(recorder, size, ends)
            parts.append(("slice", *ends))
        else:
            parts.append(("at", _position(recorder, entry, next(sizes))))
    if not arrays:
        return recorder.add("slice", (name,), tuple(shape), fact.dtype, key=tuple(parts))
    inputs = (name, *(recorder.name_of(array) for array in arrays))
    result_shape = _shape_with_arrays(recorder, fact, keys, shape)
    return recorder.add("index", inputs, result_shape, fact.dtype, key=tuple(parts))


def _every(recorder: Recorder, size: Extent, ends: tuple[Extent | None, ...]) -> Extent | None:
    """Return the size of every k-th element of a mode that has a multiple of k of them.

    x[::2], x[1::2]    x.shape[0] // 2, where the trace holds for even sizes
    """
    start, stop, step = (None if end is None else end.constant for end in ends)
    if size.constant is not None or stop is not None or not isinstance(step, int) or step < 2:
        return None
    if ends[1] is not None or (ends[0] is not None and start is None):
        return None
    rest = Extent("%", (size, const(step)))
    recorder.guard(rest, recorder.value(rest))
    if recorder.value(rest) or not 0 <= int(start or 0) < step:
        return None
    return Extent("//", (size, const(step)))


def _guard_both_ends(recorder: Recorder, size: Extent, ends: tuple[Extent | None, ...]) -> None:
    """Note that the trace holds where a slice with two ends has elements: where it begins before
    it ends."""
    start, stop, _ = ends
    if start is not None and stop is not None and size.constant is None:
        is_any = Extent(">", (Extent("slice", (size, *ends)), const(0)))
        recorder.guard(is_any, recorder.value(is_any))


def _has_traced(recorder: Recorder, key: Any) -> bool:
    """Tell whether a traced array is among subscripts."""
    entries = key if isinstance(key, tuple) else (key,)
    return any(isinstance(entry, recorder.operations["TracedArray"]) for entry in entries)


def gather(recorder: Recorder, x: Any, key: Any) -> Any:
    """Note x[positions] of traced integers, with slices of whole modes beside them."""
    name, fact = _name_and_fact(recorder, x)
    entries = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for entry in entries if entry is not Ellipsis)
    dots = next((place for place, entry in enumerate(entries) if entry is Ellipsis), len(entries))
    entries[dots : dots + 1] = [slice(None)] * max(fact.order - used, 0)
    is_full = [isinstance(entry, slice) and entry == slice(None) for entry in entries]
    if any(entry is None for entry in entries) or len(entries) != fact.order:
        refuse("Expected a subscript for each mode, found others", "x[positions][:, None] has None")
    if any(isinstance(entry, slice) and not w for entry, w in zip(entries, is_full, strict=True)):
        refuse("Expected slices of whole modes beside a traced array, found others", "slice before")
    names = [recorder.name_of(entry) for entry, w in zip(entries, is_full, strict=True) if not w]
    facts = [recorder.facts[name] for name in names]
    if any(fact.dtype[:3] not in ("int", "uin") for fact in facts):
        refuse(
            f"Expected positions, found {', '.join(fact.dtype for fact in facts)}: how many truths "
            "there are is not known while the function is traced",
            "write np.where(mask, x, y), or sum x * mask",
        )
    places = [place for place, w in enumerate(is_full) if not w]
    first = places[0] if places == [*range(places[0], places[-1] + 1)] else 0
    rest = [size for size, w in zip(fact.shape, is_full, strict=True) if w]
    shape = (*rest[:first], *recorder.stretched(*(fact.shape for fact in facts)), *rest[first:])
    parts = tuple(("slice", None, None, None) if w else ("array",) for w in is_full)
    return recorder.add("index", (name, *names), shape, fact.dtype, key=parts)


def _full_key(recorder: Recorder, key: Any, order: int) -> list[Any]:
    """Return a subscript for each mode and each new one, arrays of truths as positions."""
    entries = list(key) if isinstance(key, tuple) else [key]
    for place, entry in enumerate(entries):
        if isinstance(entry, list | np.ndarray):
            entries[place] = np.asarray(entry)
            if entries[place].dtype.kind == "b":
                if entries[place].ndim != 1:
                    refuse("Expected truths of one mode, found more", "write np.where(mask, x, y)")
                entries[place] = np.flatnonzero(entries[place])
    used = sum(1 for entry in entries if entry is not None and entry is not Ellipsis)
    if used > order:
        refuse(
            f"Expected {order} subscripts at most, found {used}",
            "an array has one for each mode",
            PositionError,
        )
    rest: list[Any] = [slice(None)] * (order - used)
    dots = [place for place, entry in enumerate(entries) if entry is Ellipsis]
    if not dots:
        return entries + rest
    return entries[: dots[0]] + rest + entries[dots[0] + 1 :]


def _end(end: Any) -> Extent | None:
    return None if end is None else extent_of(end if isinstance(end, Size) else end.__index__())


def _length(recorder: Recorder, size: Extent, ends: tuple[Extent | None, ...]) -> Extent:
    if ends == (None, None, None):
        return size
    length = Extent("slice", (size, *ends))
    is_constant = all(end is None or end.constant is not None for end in (size, *ends))
    return const(recorder.value(length)) if is_constant else length


def _position(recorder: Recorder, position: Any, size: Extent) -> Extent:
    place = extent_of(position if isinstance(position, Size) else position.__index__())
    value, length = recorder.value(place), recorder.value(size)
    if not -length <= value < length:
        refuse(
            f"Expected a position from {-length} to {length - 1}, found {value}",
            "positions count from 0",
            PositionError,
        )
    if size.constant is None:
        recorder.guard(Extent("<", (place, size)), True)
        recorder.guard(Extent("<=", (Extent("neg", (size,)), place)), True)
    return place


def _shape_with_arrays(
    recorder: Recorder, fact: Fact, keys: Sequence[Any], rest: Sequence[Extent]
) -> Shape:
    """Return the shape of a result of arrays of positions among subscripts, as NumPy has it."""
    sizes = recorder.concrete(fact.shape)
    probe = np.broadcast_to(np.zeros(()), sizes)
    plain = tuple(
        part.value if isinstance(part, Size) else _fixed(part) if isinstance(part, slice) else part
        for part in keys
    )
    try:
        result_shape = probe[plain].shape
    except IndexError as error:
        refuse(str(error), "positions count from 0", PositionError)
    arrays = [place for place, entry in enumerate(plain) if isinstance(entry, np.ndarray)]
    wide_arrays: list[Any] = [plain[place] for place in arrays]
    width = np.broadcast(*wide_arrays).ndim
    ints = [p for p, entry in enumerate(plain) if isinstance(entry, int | np.integer)]
    advanced = sorted(arrays + ints)
    adjacent = advanced == [*range(advanced[0], advanced[-1] + 1)]
    before = sum(1 for entry in plain[: advanced[0]] if entry is None or isinstance(entry, slice))
    first = before if adjacent else 0
    wide = tuple(map(const, result_shape[first : first + width]))
    for size in fact.shape:  # positions are inside of sizes of these calls
        if size.constant is None:
            recorder.guard(size, recorder.value(size))
    return (*rest[:first], *wide, *rest[first:])


def _fixed(part: slice) -> slice:
    return slice(
        *(e.value if isinstance(e, Size) else e for e in (part.start, part.stop, part.step))
    )


# ---------------------------------------------------------------- by positions


def places(recorder: Recorder, size: Any) -> Any:
    """Note the positions 0, 1, … along a mode of a size."""
    return recorder.add("places", (), (extent_of(size),), "int64")


def triangle(lower: bool) -> Callable[..., Any]:
    """Make np.tril or np.triu: where(row >= column, x, 0)."""

    def note(recorder: Recorder, x: Any, k: int = 0) -> Any:
        check_matrices(x)
        rows = places(recorder, x.shape[-2])[:, None]
        columns = places(recorder, x.shape[-1])[None, :]
        inside = columns - rows <= k if lower else columns - rows >= k
        return np.where(inside, x, x.dtype.type(0))

    return note


def diag(recorder: Recorder, x: Any, k: int = 0) -> Any:
    """Note np.diag: the diagonal of a matrix, or the matrix of a diagonal."""
    if x.ndim == 2:
        return x.diagonal(k)
    if x.ndim != 1 or k:
        refuse("Expected a vector on the main diagonal, found another", "pad the vector first")
    return recorder.add("diag", (x.name,), (*x.fact.shape, *x.fact.shape), x.fact.dtype)


def take_along_axis(recorder: Recorder, x: Any, indices: Any, axis: Any = -1) -> Any:
    """Note np.take_along_axis: of each line along an axis the elements at its positions."""
    x, positions = (recorder.traced(recorder.name_of(operand)) for operand in (x, indices))
    if axis is None:
        return x.ravel()[positions.ravel()]
    place, order = place_of(axis, x.ndim), x.ndim
    if positions.ndim != order:
        refuse("Expected positions with as many modes as the array, found others", "reshape them")
    key = [
        positions
        if n == place
        else np.expand_dims(places(recorder, x.shape[n]), tuple(m for m in range(order) if m != n))
        for n in range(order)
    ]
    return x[tuple(key)]

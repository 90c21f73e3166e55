"""Functions that move elements: shapes, transposes, parts, arrays put together, positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from taco_py.arrays.numpy_surface.axes import axes_of, place_of
from taco_py.arrays.numpy_surface.layouts import check_matrices
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.symbolic_size import Size, extent_of
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.extents import ONE, Extent, const, product, total
from taco_py.graph.nodes import Fact, Shape
from taco_py.graph.samples import sample
from taco_py.language.diagnostics.errors import DimensionError, PositionError


def _known(recorder: Recorder, x: Any) -> tuple[str, Fact]:
    name = recorder.name_of(x)
    return name, recorder.facts[name]


def transpose(recorder: Recorder, x: Any, *axes: Any) -> Any:
    """Note np.transpose: modes in another order, reversed by default."""
    name, fact = _known(recorder, x)
    given = axes[0] if len(axes) == 1 and (axes[0] is None or np.iterable(axes[0])) else axes
    order = tuple(each.__index__() % max(fact.order, 1) for each in given or ())
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
    given = shape[0] if len(shape) == 1 and np.iterable(shape[0]) else shape
    name, fact = _known(recorder, x)
    sizes = [extent_of(each if isinstance(each, Size) else each.__index__()) for each in given]
    whole = product(fact.shape)
    unknown = [place for place, each in enumerate(sizes) if each.constant == -1]
    if len(unknown) == 1:
        known = [each for each in sizes if each.constant not in (-1, 1)]
        left = list(fact.shape)
        for each in tuple(known):
            if each in left:
                left.remove(each)
                known.remove(each)
        sizes[unknown[0]] = _quotient(recorder, product(left), product(known))
    if len(unknown) > 1 or not recorder.same(product(sizes), whole):
        refuse(
            f"Expected a shape of {recorder.value(whole)} elements, found {tuple(given)}",
            "one size may be -1",
            DimensionError,
        )
    return recorder.add("reshape", (name,), tuple(sizes), fact.dtype)


def _quotient(recorder: Recorder, whole: Extent, rest: Extent) -> Extent:
    if rest.constant == 1:
        return whole
    if rest.constant == 0 or recorder.value(rest) == 0:
        refuse("Expected a shape whose other sizes are not 0, found 0", "name all sizes")
    if whole.constant is not None and rest.constant is not None:
        return const(int(whole.constant) // int(rest.constant))
    return Extent("//", (whole, rest))


def ravel(recorder: Recorder, x: Any, order: str = "C") -> Any:
    """Note np.ravel."""
    return reshape(recorder, x, -1, order=order)


def flatten(recorder: Recorder, x: Any, order: str = "C") -> Any:
    """Note x.flatten(): a copy in one mode."""
    return copied(recorder, ravel(recorder, x, order))


def expand_dims(recorder: Recorder, x: Any, axis: Any) -> Any:
    """Note np.expand_dims: modes of size 1."""
    name, fact = _known(recorder, x)
    given = axis if isinstance(axis, tuple | list) else (axis,)
    order = fact.order + len(given)
    new = axes_of(tuple(given), order)
    rest = iter(fact.shape)
    shape = tuple(ONE if each in new else next(rest) for each in range(order))
    return recorder.add("expand_dims", (name,), shape, fact.dtype, axis=new)


def squeeze(recorder: Recorder, x: Any, axis: Any = None) -> Any:
    """Note np.squeeze: without modes of size 1."""
    name, fact = _known(recorder, x)
    units = tuple(place for place, unit in enumerate(fact.units) if unit)
    off = units if axis is None else axes_of(axis, fact.order)
    if not {*off} <= {*units}:
        refuse(f"Expected modes of size 1 to leave out, found {off}", "reshape it", DimensionError)
    shape = tuple(each for place, each in enumerate(fact.shape) if place not in off)
    return recorder.add("squeeze", (name,), shape, fact.dtype, axis=off)


def broadcast_to(recorder: Recorder, x: Any, shape: Any) -> Any:
    """Note np.broadcast_to."""
    name, fact = _known(recorder, x)
    given = shape if np.iterable(shape) else (shape,)
    wanted = tuple(map(recorder.settled, map(extent_of, given)))
    found = recorder.stretched(fact.shape, wanted)
    if len(found) != len(wanted) or not all(map(recorder.same, found, wanted)):
        refuse(f"Expected a shape that x stretches to, found {tuple(given)}", "reshape it first")
    return recorder.add("broadcast_to", (name,), wanted, fact.dtype)


def concatenate(recorder: Recorder, arrays: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """Note np.concatenate."""
    names = [recorder.name_of(each) for each in arrays]
    facts = [recorder.facts[each] for each in names]
    if axis is None:
        return concatenate(recorder, [ravel(recorder, each) for each in arrays], 0, dtype)
    if len({fact.order for fact in facts}) != 1 or not facts[0].order:
        refuse("Expected arrays of as many modes each, at least one, found others", "reshape them")
    (own,) = axes_of(axis, facts[0].order)
    for fact in facts[1:]:
        for place, (one, other) in enumerate(zip(facts[0].shape, fact.shape, strict=True)):
            if place != own and not recorder.same(one, other):
                refuse(
                    f"Expected equal sizes but along axis {own}, found "
                    f"{recorder.concrete(facts[0].shape)} and {recorder.concrete(fact.shape)}",
                    "slice or pad them first",
                    DimensionError,
                )
    shape = list(facts[0].shape)
    shape[own] = total([fact.shape[own] for fact in facts])
    made = str(np.concatenate([np.atleast_1d(sample(fact)) for fact in facts], own).dtype)
    found = recorder.add("concatenate", names, tuple(shape), made, axis=own)
    return found if dtype is None else astype(recorder, found, dtype)


def astype(recorder: Recorder, x: Any, dtype: Any, **options: Any) -> Any:
    """Note a conversion to another type."""
    name, fact = _known(recorder, x)
    wanted = str(np.dtype(dtype))
    if wanted == fact.dtype and not fact.weak:
        return recorder.traced(name) if options.get("copy") is False else copied(recorder, x)
    return recorder.add("astype", (name,), fact.shape, wanted, dtype=wanted)


def copied(recorder: Recorder, x: Any, *args: Any, **options: Any) -> Any:
    """Note a copy: the same elements, in memory of their own where it is a result."""
    name, fact = _known(recorder, x)
    return recorder.add("copy", (name,), fact.shape, fact.dtype)


def same(recorder: Recorder, x: Any, *args: Any, **options: Any) -> Any:
    """Return the array: other sparse formats have the same elements."""
    return recorder.traced(recorder.name_of(x), True)


def to_dense(recorder: Recorder, x: Any) -> Any:
    """Note a dense array of a sparse one."""
    name, fact = _known(recorder, x)
    return recorder.add("to_dense", (name,), fact.shape, fact.dtype)


# ---------------------------------------------------------------- subscripts


def subscript(recorder: Recorder, x: Any, key: Any) -> Any:
    """Note x[key]: integers, slices, None, …, arrays that are known, and traced integers."""
    name, fact = _known(recorder, x)
    if _has_traced(recorder, key):
        return gather(recorder, x, key)
    keys = _whole_key(recorder, key, fact.order)
    arrays = [each for each in keys if isinstance(each, np.ndarray)]
    shape: list[Extent] = []
    told: list[tuple[Any, ...]] = []
    sizes = iter(fact.shape)
    for each in keys:
        if each is None:
            shape.append(ONE)
            told.append(("new",))
        elif isinstance(each, np.ndarray):
            next(sizes)
            told.append(("array",))
        elif isinstance(each, slice):
            size = next(sizes)
            ends = tuple(map(_end, (each.start, each.stop, each.step)))
            shape.append(_length(recorder, size, ends))
            told.append(("slice", *ends))
        else:
            told.append(("at", _position(recorder, each, next(sizes))))
    if not arrays:
        return recorder.add("slice", (name,), tuple(shape), fact.dtype, key=tuple(told))
    inputs = (name, *(recorder.name_of(each) for each in arrays))
    whole = _shape_with_arrays(recorder, fact, keys, shape)
    return recorder.add("index", inputs, whole, fact.dtype, key=tuple(told))


def _has_traced(recorder: Recorder, key: Any) -> bool:
    """Tell whether a traced array is among subscripts."""
    given = key if isinstance(key, tuple) else (key,)
    return any(isinstance(each, recorder.operations["TracedArray"]) for each in given)


def gather(recorder: Recorder, x: Any, key: Any) -> Any:
    """Note x[positions] of traced integers, with slices of whole modes beside them."""
    name, fact = _known(recorder, x)
    given = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for each in given if each is not Ellipsis)
    dots = next((place for place, each in enumerate(given) if each is Ellipsis), len(given))
    given[dots : dots + 1] = [slice(None)] * max(fact.order - used, 0)
    whole = [isinstance(each, slice) and each == slice(None) for each in given]
    if any(each is None for each in given) or len(given) != fact.order:
        refuse("Expected a subscript for each mode, found others", "x[positions][:, None] has None")
    if any(isinstance(each, slice) and not w for each, w in zip(given, whole, strict=True)):
        refuse("Expected slices of whole modes beside a traced array, found others", "slice before")
    names = [recorder.name_of(each) for each, w in zip(given, whole, strict=True) if not w]
    facts = [recorder.facts[each] for each in names]
    if any(each.dtype[:3] not in ("int", "uin") for each in facts):
        refuse(
            f"Expected positions, found {', '.join(each.dtype for each in facts)}: how many truths "
            "there are is not known while the function is traced",
            "write np.where(mask, x, y), or sum x * mask",
        )
    places = [place for place, w in enumerate(whole) if not w]
    first = places[0] if places == [*range(places[0], places[-1] + 1)] else 0
    rest = [size for size, w in zip(fact.shape, whole, strict=True) if w]
    shape = (*rest[:first], *recorder.stretched(*(each.shape for each in facts)), *rest[first:])
    told = tuple(("slice", None, None, None) if w else ("array",) for w in whole)
    return recorder.add("index", (name, *names), shape, fact.dtype, key=told)


def _whole_key(recorder: Recorder, key: Any, order: int) -> list[Any]:
    """Return a subscript for each mode and each new one, arrays of truths as positions."""
    given = list(key) if isinstance(key, tuple) else [key]
    for place, each in enumerate(given):
        if isinstance(each, list | np.ndarray):
            given[place] = np.asarray(each)
            if given[place].dtype.kind == "b":
                if given[place].ndim != 1:
                    refuse("Expected truths of one mode, found more", "write np.where(mask, x, y)")
                given[place] = np.flatnonzero(given[place])
    used = sum(1 for each in given if each is not None and each is not Ellipsis)
    if used > order:
        refuse(
            f"Expected {order} subscripts at most, found {used}",
            "an array has one for each mode",
            PositionError,
        )
    rest: list[Any] = [slice(None)] * (order - used)
    dots = [place for place, each in enumerate(given) if each is Ellipsis]
    if not dots:
        return given + rest
    return given[: dots[0]] + rest + given[dots[0] + 1 :]


def _end(each: Any) -> Extent | None:
    return None if each is None else extent_of(each if isinstance(each, Size) else each.__index__())


def _length(recorder: Recorder, size: Extent, ends: tuple[Extent | None, ...]) -> Extent:
    if ends == (None, None, None):
        return size
    found = Extent("slice", (size, *ends))
    known = all(each is None or each.constant is not None for each in (size, *ends))
    return const(recorder.value(found)) if known else found


def _position(recorder: Recorder, each: Any, size: Extent) -> Extent:
    place = extent_of(each if isinstance(each, Size) else each.__index__())
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
    shown = np.broadcast_to(np.zeros(()), sizes)
    plain = tuple(
        each.value if isinstance(each, Size) else _fixed(each) if isinstance(each, slice) else each
        for each in keys
    )
    try:
        found = shown[plain].shape
    except IndexError as error:
        refuse(str(error), "positions count from 0", PositionError)
    arrays = [place for place, each in enumerate(plain) if isinstance(each, np.ndarray)]
    wide_arrays: list[Any] = [plain[place] for place in arrays]
    width = np.broadcast(*wide_arrays).ndim
    ints = [p for p, each in enumerate(plain) if isinstance(each, int | np.integer)]
    advanced = sorted(arrays + ints)
    joined = advanced == [*range(advanced[0], advanced[-1] + 1)]
    before = sum(1 for each in plain[: advanced[0]] if each is None or isinstance(each, slice))
    first = before if joined else 0
    wide = tuple(map(const, found[first : first + width]))
    for size in fact.shape:  # positions are inside of sizes of these calls
        if size.constant is None:
            recorder.guard(size, recorder.value(size))
    return (*rest[:first], *wide, *rest[first:])


def _fixed(each: slice) -> slice:
    return slice(
        *(e.value if isinstance(e, Size) else e for e in (each.start, each.stop, each.step))
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
    x, chosen = (recorder.traced(recorder.name_of(operand)) for operand in (x, indices))
    if axis is None:
        return x.ravel()[chosen.ravel()]
    place, order = place_of(axis, x.ndim), x.ndim
    if chosen.ndim != order:
        refuse("Expected positions with as many modes as the array, found others", "reshape them")
    key = [
        chosen
        if n == place
        else np.expand_dims(places(recorder, x.shape[n]), tuple(m for m in range(order) if m != n))
        for n in range(order)
    ]
    return x[tuple(key)]

"""Subscripts by NumPy's indexing with arrays of positions, for `evaluate_dense`: an oracle that
shares nothing with how operands are made but the parsed text.

    x[i+k]            x[i + k] with i of shape (n, 1) and k of shape (1, m)
    y[p[i]] += v[i]   numpy.add.at(y, p[i], v)

How far an index goes is found by trying one size after the other.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import DimensionError, NotationError, OperandError
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import is_weak
from taco_py.language.notation.half_types import computed_dtype
from taco_py.language.notation.nodes import Access, Assignment, Subscript
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.rewrites.index_numbers import index_of, is_size
from taco_py.language.notation.tree import map_accesses

Arrays = Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """An assignment over indices alone, its operands and where they store something; and where its
    result is written to, None where that is the result.

    sources  the operand that each is read from
    extents  how far the indices of the result go
    """

    assignment: Assignment
    arrays: dict[str, Any]
    stored: dict[str, Any]
    destination: tuple[tuple[Array, ...], tuple[int, ...]] | None
    sources: dict[str, str]
    extents: tuple[int, ...]


def gather(
    assignment: Assignment,
    arrays: Arrays,
    stored: Mapping[str, Any],
    fills: bool,
    shape: tuple[int, ...] | None,
    accumulator: Any,
    absent: Mapping[str, Any] = MappingProxyType({}),
    computed: Container[str] = (),
) -> Gathered:
    """Read operands at their subscripts.

    fills  whether fill values are read outside of operands
    shape  of the result, where it is given
    accumulator  what the result is added to, or None
    absent the fill values of operands that are not 0
    computed   what other statements make, which is read as it is

    Raises DimensionError or OperandError where `evaluate` does.
    """
    operands = {name: np.asarray(array) for name, array in arrays.items()}
    if accumulator is not None:
        shape = np.shape(accumulator)
    sizes = dict(_sizes(assignment, operands, fills, shape))
    values, places, sources = dict(arrays), dict(stored), dict[str, str]()
    large = _large(accesses(assignment), operands)
    if accumulator is not None:  # it is read too
        large |= _large((assignment.target,), {assignment.target.tensor: np.asarray(accumulator)})

    def plain(access: Access) -> Access:
        if access.tensor in computed:
            return _check_full_access(access, operands[access.tensor].shape, sizes)
        name = f"{to_text(access)} "  # no name of the text has a blank in it
        sources[name] = access.tensor
        if access.is_number:
            values[name] = _number(access, sizes)
            return Access(name, access.indices, access.span)
        array = operands[access.tensor]
        grids = _grids_of(access, array.shape, sizes, operands, large)
        extents = tuple(sizes[index] for index in access.indices)
        inside = _inside(grids, array.shape, extents)
        if not fills and not inside.all():
            raise DimensionError(f"Expected positions inside of {access.tensor}", access.span)
        values[name] = _at(array, grids, inside, array.dtype.type(absent.get(access.tensor, 0)))
        alone = not extents and access.subscripts  # one element is a number
        if access.tensor in stored and not alone:
            places[name] = _at(np.asarray(stored[access.tensor]), grids, inside, False)
        return Access(name, access.indices, access.span)

    value = map_accesses(assignment.value, plain)
    target = assignment.target
    present = free_indices(value) if target.subscripts else target.indices
    indices = tuple(index for index in target.indices if index in present)
    update = replace(assignment, value=value, target=Access(target.tensor, indices))
    ends = tuple(sizes[index] for index in target.indices)
    if not target.subscripts:
        return Gathered(update, values, places, None, sources, ends)
    grids = [_grid(mode, target.indices, sizes, operands) for mode in target.modes]
    destination = _destination_of(target, grids, ends, fills, shape)
    return Gathered(replace(update, operator=None), values, places, destination, sources, ends)


def _number(access: Access, sizes: Mapping[str, int]) -> Any:
    """Return the values of an index, or how many these are."""
    count = sizes.get(index_of(access))
    if count is None:
        raise DimensionError(f"Expected a size for {to_text(access)}", access.span)
    return np.int64(count) if is_size(access) else np.arange(count, dtype=np.int64)


def _destination_of(
    target: Access,
    grids: list[Array],
    extents: tuple[int, ...],
    fills: bool,
    shape: tuple[int, ...] | None,
) -> tuple[tuple[Array, ...], tuple[int, ...]]:
    """Return the positions that a result is written to, and its shape."""
    if shape is None:
        if any(mode.gathered for mode in target.modes):
            raise DimensionError(f"Expected the shape of {target.tensor}", target.span)
        shape = tuple(int(grid.max()) + 1 if grid.size else 0 for grid in grids)
    inside = _inside(grids, shape, extents)
    if not fills and not inside.all():
        raise DimensionError(f"Expected positions inside of {target.tensor}", target.span)
    wide = tuple(np.broadcast_to(grid, inside.shape)[inside] for grid in grids)
    return (*wide, inside), shape


def _check_full_access(access: Access, shape: tuple[int, ...], sizes: Mapping[str, int]) -> Access:
    """Return an access that reads a statement's whole result. Raises NotationError for others."""
    if access.subscripts or shape != tuple(sizes[index] for index in access.indices):
        raise NotationError(f"Expected all of {access.tensor}", access.span)
    return access


def _grids_of(
    access: Access,
    shape: tuple[int, ...],
    sizes: Mapping[str, int],
    arrays: Mapping[str, Array],
    large: Container[str | None],
) -> list[Array]:
    """Return the positions in each mode.

    large  the indices for all values of which the one element of a mode of size 1 is read
    """
    grids = [_grid(mode, access.indices, sizes, arrays) for mode in access.modes]
    for place, (mode, count) in enumerate(zip(access.modes, shape, strict=True)):
        if count == 1 and _is_alone(mode, access) and mode.index in large:
            grids[place] *= 0
    return grids


def write(
    assignment: Assignment,
    value: Array,
    destination: tuple[tuple[Array, ...], tuple[int, ...]],
    accumulator: Any,
) -> Array:
    """Put a value where the subscripts of the left-hand side say."""
    (*places, inside), shape = destination
    value, present = np.asarray(value), free_indices(assignment.value)
    lacks = [axis for axis, name in enumerate(assignment.target.indices) if name not in present]
    wide = np.broadcast_to(np.expand_dims(value, tuple(lacks)), inside.shape)
    values, where = wide[inside], tuple(places)
    if assignment.operator is not None:
        weak = is_weak(assignment.value)
        return _reduced(assignment.operator, values, where, shape, accumulator, weak)
    start = np.zeros(shape, value.dtype) if accumulator is None else np.array(accumulator)
    if len({*zip(*(place.tolist() for place in places), strict=True)}) < len(values):
        raise OperandError(
            f"Expected each element of {assignment.target.tensor} once on the left-hand side",
            assignment.target.span,
        )
    start[where] = values
    return start


def _reduced(
    operator: Operator,
    values: Array,
    where: tuple[Array, ...],
    shape: tuple[int, ...],
    target: Any,
    weak: bool,
) -> Array:
    """Reduce values with the elements at their places, in the type of both; numbers are weak."""
    dtype = values.dtype if target is None else np.asarray(target).dtype
    if target is not None:
        dtype = np.result_type(dtype, values.flat[0].item() if weak and values.size else values)
    start = np.full(shape, operator.identity_of(dtype)) if target is None else np.array(target)
    result, converted = (array.astype(computed_dtype(dtype)) for array in (start, values))
    if isinstance(operator.evaluate, np.ufunc):
        operator.evaluate.at(result, where, converted)
        return result.astype(dtype)
    for place, element in zip(zip(*where, strict=True), converted, strict=True):
        result[place] = operator.evaluate(result[place], element)
    return result.astype(dtype)


def _sizes(
    assignment: Assignment,
    arrays: Mapping[str, Array],
    fills: bool,
    shape: tuple[int, ...] | None,
) -> Iterator[tuple[str, int]]:
    """Yield the size of each index."""
    sizes: dict[str, int] = {}
    target, uses = assignment.target, accesses(assignment)
    for mode, size in zip(target.modes, shape or (), strict=False):
        if mode.index is not None and _is_alone(mode, target):
            sizes[mode.index] = size
    _take_alone(uses, arrays, sizes)
    while not fills:
        limits: dict[str, list[int]] = {}
        for access in uses:
            for mode, size in zip(access.modes, arrays[access.tensor].shape, strict=True):
                left = [name for name in mode.names if name not in sizes]
                if len(left) == 1 and not mode.gathered:
                    limits.setdefault(left[0], []).append(_largest(mode, left[0], size, sizes))
        if not limits:
            break
        sizes.update((name, min(candidates)) for name, candidates in limits.items())
    missing = [a for a in (*uses, target) if not sizes.keys() >= {*a.indices}]
    if missing:
        raise DimensionError(f"Expected sizes for {missing[0].indices}", missing[0].span)
    yield from sizes.items()


def _take_alone(
    uses: tuple[Access, ...], arrays: Mapping[str, Array], sizes: dict[str, int]
) -> None:
    """Take the sizes of modes that an index has by itself, where none is said."""
    said = set(sizes)
    large = _large(uses, arrays)
    for access in uses:
        if len(access.modes) != arrays[access.tensor].ndim:
            raise OperandError(f"Expected another number of subscripts in {to_text(access)}")
        for mode, size in zip(access.modes, arrays[access.tensor].shape, strict=True):
            if mode.index is None or mode.index in said or not _is_alone(mode, access):
                continue
            if size == 1 and mode.index in large:
                continue
            if sizes.setdefault(mode.index, size) != size:
                raise DimensionError(f"Expected one size for index {mode.index}", access.span)


def _large(uses: tuple[Access, ...], arrays: Mapping[str, Array]) -> frozenset[str | None]:
    """Return the indices that a mode of another size than 1 has by itself."""
    return frozenset(
        mode.index
        for access in uses
        for mode, size in zip(access.modes, arrays[access.tensor].shape, strict=False)
        if _is_alone(mode, access) and size != 1
    )


def _is_alone(mode: Subscript, access: Access) -> bool:
    """Tell whether a subscript is an index, which is in no other one besides something else."""
    index = mode.index
    return index is not None and all(
        other.index == index or index not in other.names for other in access.modes
    )


def _largest(mode: Subscript, index: str, size: int, sizes: Mapping[str, int]) -> int:
    """Return the largest size of an index for which all positions are below `size`, by trying."""
    if mode.constant < 0:
        raise DimensionError(f"Expected positions from 0 on, found {mode.constant}")
    count = 0
    fixed_sizes = {name: max(1, sizes.get(name, 1)) for name, _ in mode.indices}
    while True:
        grid = _grid(mode, mode.names, {**fixed_sizes, index: count + 1}, {})
        if grid.min() < 0 or grid.max() >= size:
            reached = count or not size or 0 in (sizes.get(name) for name in mode.names)
            if not reached and (grid.max() < 0 or grid.min() > size):
                raise DimensionError(f"Expected positions below {size}, found {grid.min()}")
            return count
        count += 1


def _grid(
    mode: Subscript, indices: tuple[str, ...], sizes: Mapping[str, int], arrays: Mapping[str, Array]
) -> Array:
    """Return the position that a subscript is, for all values of the indices."""
    shape = tuple(sizes[index] for index in indices)
    at = dict(zip(indices, np.indices(shape, np.int64), strict=True))
    total = np.full(shape, mode.constant, np.int64)
    for name, factor in mode.indices:
        total += factor * at[name]
    for access, factor in mode.gathered:
        inner = tuple(_grid(subscript, indices, sizes, arrays) for subscript in access.modes)
        array = arrays[access.tensor]
        if array.dtype.kind not in "iu":
            raise DimensionError(f"Expected integers in {access.tensor}", access.span)
        extents = tuple(sizes[index] for index in access.indices)
        full_grids = [_grid(subscript, access.indices, sizes, arrays) for subscript in access.modes]
        if not _inside(full_grids, array.shape, extents).all():
            raise DimensionError(f"Expected positions inside of {access.tensor}", access.span)
        total += factor * array[inner].astype(np.int64)
    return total


def _inside(grids: Any, shape: tuple[int, ...], extents: tuple[int, ...]) -> Array:
    inside = np.ones(extents, bool)
    for grid, size in zip(grids, shape, strict=True):
        inside &= (grid >= 0) & (grid < size)
    return inside


def _at(array: Array, grids: list[Array], inside: Array, otherwise: Any) -> Array:
    """Return the elements at positions, and another value where these are outside."""
    elements = np.full(inside.shape, otherwise, array.dtype)
    elements[inside] = array[tuple(grid[inside] for grid in grids)]
    return elements

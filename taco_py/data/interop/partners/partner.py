"""What is told of a library that tensors are exchanged with; what readers and writers share.

A reader makes stored tensors around the arrays of the library's objects, a writer objects of the
library around the arrays of stored tensors, without copies wherever both lay them out alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.convert import convert
from taco_py.data.storage.pack import canonical, is_sorted, is_unique
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData
from taco_py.language.diagnostics.errors import FormatError, OperandTypeError
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.formats import Format

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)


@dataclass(frozen=True, slots=True)
class Partner:
    """A library that tensors come from and go to.

    name      of the library, as `T.to` has it
    packages  modules that its types are defined in, the first part of their names
    install   what pip installs, "" where it is there anyway
    kinds     what `write` makes, by the library's own names
    read      a stored tensor of the library's object; another object that stands for it; None
              where it is an array that NumPy's protocols read
    write     an object of a stored tensor, of a kind, "" for the one that fits its format; None
              where the library makes its objects of Tensors itself
    """

    name: str
    packages: tuple[str, ...]
    install: str
    kinds: tuple[str, ...]
    read: Callable[[Any], Any]
    write: Callable[[TensorData, str], Any] | None


def pick(kind: str, kinds: Sequence[str], who: str) -> str:
    """Return a kind by its name in any case. Raises FormatError for another one."""
    found = next((each for each in kinds if each.lower() == kind.lower()), None)
    if found is None:
        raise FormatError(
            f"Expected one of {', '.join(kinds)} for {who}, found {kind!r}",
            hint=with_suggestion(f'as in T.to("{who}", "{kinds[0]}")', kind, kinds),
        )
    return found


def require_order(data: TensorData, order: int, what: str, hint: str) -> None:
    """Raise FormatError for a tensor of another order than a kind holds."""
    if data.format.order != order:
        raise FormatError(
            f"Expected a tensor of order {order} for {what}, found order {data.format.order}",
            hint=hint,
        )


def require_zero(data: TensorData, what: str) -> None:
    """Raise FormatError where elements that are not stored have another value than 0."""
    if data.fill and not data.format.is_dense:
        raise FormatError(
            f"Expected a tensor with the fill value 0 for {what}, found {data.fill}",
            hint="tp.tensor(T, fill_value=0) has what T stores, T.to_dense() all elements",
        )


def require_type(dtype: np.dtype[Any], names: Sequence[str], what: str) -> None:
    """Raise OperandTypeError for values of a type that a library does not have."""
    if dtype.name not in names:
        raise OperandTypeError(
            f"Expected values of {', '.join(names)} for {what}, found {dtype}",
            hint="convert them first, with .astype()",
        )


def stored(data: TensorData, format: Format) -> TensorData:
    """Return the tensor in a format: in the same arrays where it is stored so."""
    return convert(data, format)


def in_order_once(data: TensorData) -> TensorData:
    """Return the tensor with its coordinates in order and each once, as looking at them tells."""
    known = replace(data, sorted=is_sorted(data))
    return known if known.sorted and is_unique(known) else canonical(known)


def coordinate_arrays(data: TensorData) -> list[Array]:
    """Return the coordinates of a coordinate list, an array a mode."""
    crds = [level.crd for level in data.levels if level.crd is not None]
    return [crds[level] for level in np.argsort(data.format.mode_order)]


def table(columns: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Return the columns as rows of one array: themselves where they are rows of one already."""
    first = columns[0]
    if all(each.dtype == dtype and each.flags.c_contiguous for each in columns):
        places = [each.__array_interface__["data"][0] for each in columns]
        step = places[1] - places[0] if len(places) > 1 else first.nbytes
        even = all(place - places[0] == step * row for row, place in enumerate(places))
        base = first.base
        shared = base is not None and all(each.base is base for each in columns)
        if len(first) and even and shared and step >= first.nbytes:
            shape, strides = (len(columns), len(first)), (step, first.itemsize)
            return np.lib.stride_tricks.as_strided(first, shape, strides)
    return np.stack([each.astype(dtype, copy=False) for each in columns])


def compressed_parts(data: TensorData) -> tuple[Array, Array, Array]:
    """Positions, coordinates and values of a tensor whose last level is its only sparse one."""
    level = data.levels[-1]
    assert level.pos is not None and level.crd is not None
    count = int(level.pos[-1])
    return level.pos, level.crd[:count], data.values[:count]


def with_blocks(data: TensorData, sizes: tuple[int, ...], values: Array) -> TensorData:
    """Return a sparse tensor with a dense block of these sizes in the place of each value."""
    if not sizes:
        return data
    order = data.format.order
    letters = data.format.levels + Format.parse("d" * len(sizes)).levels
    modes = (*data.format.mode_order, *range(order, order + len(sizes)))
    levels = (*data.levels, *(LevelArrays() for _ in sizes))
    plain = np.ascontiguousarray(values).reshape(-1)
    return TensorData(Format(letters, modes), (*data.shape, *sizes), levels, plain)

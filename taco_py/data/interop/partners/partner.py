"""The description of a library that tensors are exchanged with, and functions that readers share.

A reader wraps the arrays of the library's objects in stored tensors, a writer wraps the arrays of
stored tensors in objects of the library, without copies wherever both have the same layout.
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
    """A library that tensors are exchanged with.

    name      of the library, as `T.to` has it
    packages  modules that its types are defined in, the first part of their names
    install   the package for pip, "" where it is always installed
    kinds     the classes that `write` returns, by the library's names
    read      a stored tensor of the library's object, or an equivalent object; None for an array
              that NumPy's protocols read
    write     an object of a stored tensor, of a kind or of the usual one for ""; None where the
              library converts Tensors itself
    """

    name: str
    packages: tuple[str, ...]
    install: str
    kinds: tuple[str, ...]
    read: Callable[[Any], Any]
    write: Callable[[TensorData, str], Any] | None


def pick(kind: str, kinds: Sequence[str], who: str) -> str:
    """Return a kind by its name in any case. Raises FormatError for other names."""
    match = next((name for name in kinds if name.lower() == kind.lower()), None)
    if match is None:
        raise FormatError(
            f"Expected one of {', '.join(kinds)} for {who}, found {kind!r}",
            hint=with_suggestion(f'as in T.to("{who}", "{kinds[0]}")', kind, kinds),
        )
    return match


def require_order(data: TensorData, order: int, what: str, hint: str) -> None:
    """Raise FormatError for a tensor of another order than the kind's."""
    if data.format.order != order:
        raise FormatError(
            f"Expected a tensor of order {order} for {what}, found order {data.format.order}",
            hint=hint,
        )


def require_zero(data: TensorData, what: str) -> None:
    """Raise FormatError where unstored elements have another value than 0."""
    if data.fill and not data.format.is_dense:
        raise FormatError(
            f"Expected a tensor with the fill value 0 for {what}, found {data.fill}",
            hint="tp.tensor(T, fill_value=0) has what T stores, T.to_dense() all elements",
        )


def require_type(dtype: np.dtype[Any], names: Sequence[str], what: str) -> None:
    """Raise OperandTypeError for values of a type that a library lacks."""
    if dtype.name not in names:
        raise OperandTypeError(
            f"Expected values of {', '.join(names)} for {what}, found {dtype}",
            hint="convert them first, with .astype()",
        )


def stored(data: TensorData, format: Format) -> TensorData:
    """Convert the tensor to a format, sharing arrays where it already has it."""
    return convert(data, format)


def in_order_once(data: TensorData) -> TensorData:
    """Return the tensor with sorted, unique coordinates, after checking their order."""
    checked = replace(data, sorted=is_sorted(data))
    return checked if checked.sorted and is_unique(checked) else canonical(checked)


def coordinate_arrays(data: TensorData) -> list[Array]:
    """Return the coordinates of a coordinate list, an array a mode."""
    crds = [level.crd for level in data.levels if level.crd is not None]
    return [crds[level] for level in np.argsort(data.format.mode_order)]


def table(columns: Sequence[Array], dtype: np.dtype[Any]) -> Array:
    """Stack columns as rows of one array, without a copy where they are rows of one already."""
    first = columns[0]
    if all(column.dtype == dtype and column.flags.c_contiguous for column in columns):
        places = [column.__array_interface__["data"][0] for column in columns]
        step = places[1] - places[0] if len(places) > 1 else first.nbytes
        even = all(place - places[0] == step * row for row, place in enumerate(places))
        base = first.base
        shared = base is not None and all(column.base is base for column in columns)
        if len(first) and even and shared and step >= first.nbytes:
            shape, strides = (len(columns), len(first)), (step, first.itemsize)
            return np.lib.stride_tricks.as_strided(first, shape, strides)
    return np.stack([column.astype(dtype, copy=False) for column in columns])


def compressed_parts(data: TensorData) -> tuple[Array, Array, Array]:
    """Return positions, coordinates and values of a tensor whose last level alone is sparse."""
    level = data.levels[-1]
    assert level.pos is not None and level.crd is not None
    count = int(level.pos[-1])
    return level.pos, level.crd[:count], data.values[:count]


def with_blocks(data: TensorData, sizes: tuple[int, ...], values: Array) -> TensorData:
    """Replace each value of a sparse tensor by a dense block of these sizes."""
    if not sizes:
        return data
    order = data.format.order
    letters = data.format.levels + Format.parse("d" * len(sizes)).levels
    modes = (*data.format.mode_order, *range(order, order + len(sizes)))
    levels = (*data.levels, *(LevelArrays() for _ in sizes))
    plain = np.ascontiguousarray(values).reshape(-1)
    return TensorData(Format(letters, modes), (*data.shape, *sizes), levels, plain)

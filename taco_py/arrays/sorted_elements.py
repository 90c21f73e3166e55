"""Elements in order: sorting along a mode, places in a sorted vector, distinct elements.

The entries of a sparse tensor's lines are sorted: those below the fill value to the beginning, and
the others to the end. Nothing is stored between them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from taco_py.arrays.extremum_places import first_gaps
from taco_py.arrays.lines_along import fill_number, lines_along
from taco_py.arrays.numpy_surface.axes import place_of
from taco_py.arrays.shapes import like, of_dense, reshape
from taco_py.data.storage.coordinates import unravel
from taco_py.data.storage.pack import canonical
from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import DimensionError, FormatError, OperandTypeError
from taco_py.language.fill import as_text


def sort(
    T: Tensor,  # noqa: N803
    axis: int | None = -1,
    descending: bool = False,
) -> Tensor:
    """Sort the elements along a mode, or all without axis; NaN are largest.

    Raises OperandTypeError for complex numbers.
    """
    if axis is None:
        return sort(reshape(T, -1), 0, descending)
    place = place_of(axis, T.ndim)
    _require_order(T)
    if T.format.is_dense:
        ascending = np.sort(T.to_numpy(), place)
        return of_dense(np.array(np.flip(ascending, place)) if descending else ascending)
    data = T.examined()
    lines, fill = lines_along(data, place), fill_number(data)
    order = np.lexsort((lines.values, lines.line))
    values = lines.values[order]
    below = values < fill if fill == fill else values == values
    gap = np.repeat(lines.size - lines.counts, lines.counts)
    new_places = lines.rank + np.where(below, 0, gap)
    columns = list(lines.columns)  # within a line those of other modes are equal
    columns[place] = lines.size - 1 - new_places if descending else new_places
    return like(data, columns, values, T.shape)


def argsort(
    T: Tensor,  # noqa: N803
    axis: int | None = -1,
    descending: bool = False,
) -> Tensor:
    """Find the positions that sort the elements along a mode; equal ones keep their order.

    Raises FormatError for a sparse tensor, as each of its elements would have a position.
    """
    if axis is None:
        return argsort(reshape(T, -1), 0, descending)
    place = place_of(axis, T.ndim)
    _require_order(T)
    if not T.format.is_dense:
        raise FormatError(
            f"Expected a dense tensor to find positions that sort it, found one in the format "
            f"{T.format}: a position for each element would be dense",
            hint="call .to_dense() of it if the result fits into memory; np.sort(T) stays sparse",
        )
    numbers = T.to_numpy()
    if not descending:
        return of_dense(np.argsort(numbers, place, kind="stable"))
    positions = np.flip(np.argsort(np.flip(numbers, place), place, kind="stable"), place)
    return of_dense(T.shape[place] - 1 - positions)


def _require_order(T: Tensor) -> None:  # noqa: N803
    if T.dtype.kind == "c":
        raise OperandTypeError(
            f"Expected real numbers to sort, found {T.dtype}", hint="take abs(T) or T.real"
        )


# ---------------------------------------------------------------- places in a sorted vector


def searchsorted(vector: Any, numbers: Any, side: str = "left", sorter: Any = None) -> Any:
    """Find the places where numbers can be inserted into a sorted vector so that it stays sorted.

    vector   ascending, or ascending when taken at the positions `sorter`; of order 1
    numbers  a Tensor, an array or a number
    side     before ("left") or after ("right") equal ones

    Returns int64 in the shape of `numbers`, sparse where they are.
    """
    if side not in ("left", "right"):
        raise OperandTypeError(f'Expected the side "left" or "right", found {side!r}', hint="left")
    if len(vector.shape) != 1:
        raise DimensionError(
            f"Expected a sorted vector, found a tensor of shape {vector.shape}", hint="T.ravel()"
        )
    where = _finder(vector, side, sorter)
    if not isinstance(numbers, Tensor):
        places = where(np.asarray(numbers))
        return of_dense(places) if places.ndim else places[()]
    if numbers.format.is_dense:
        return of_dense(np.asarray(where(numbers.to_numpy())))
    data = canonical(numbers.examined())
    fill = as_text(np.int64(where(np.asarray(fill_number(data)))))
    return Tensor(replace(data, values=where(data.values), fill=fill))


def _finder(vector: Any, side: str, sorter: Any) -> Any:
    """Return a function of arrays that finds places in a vector."""
    if not isinstance(vector, Tensor) or vector.format.is_dense:
        array = vector.to_numpy() if isinstance(vector, Tensor) else np.asarray(vector)
        order = sorter.to_numpy() if isinstance(sorter, Tensor) else sorter
        return lambda numbers: np.asarray(_search(array, numbers, side, order))
    if sorter is not None:
        raise FormatError(
            "Expected a dense vector beside a sorter, found a sparse one",
            hint="sort it first: np.sort(T) stays sparse",
        )
    data = vector.examined()
    values, fill = lines_along(data, 0).values, fill_number(data)
    absent = vector.shape[0] - len(values)

    def search(numbers: Array) -> Array:
        stored_places = np.asarray(_search(values, numbers, side))
        passed = np.asarray(_search(np.asarray([fill]), numbers, side))
        places: Array = stored_places + absent * passed
        return places

    return search


def _search(array: Array, numbers: Array, side: str, sorter: Any = None) -> Any:
    """Call np.searchsorted in the common dtype of both arrays."""
    common_type = np.result_type(array, numbers)
    return np.searchsorted(
        array.astype(common_type, copy=False), numbers.astype(common_type, copy=False), side, sorter
    )  # type: ignore[call-overload]


# ---------------------------------------------------------------- distinct elements


class Distinct(NamedTuple):
    """The distinct elements of a tensor in ascending order, as the standard names them.

    values           a dense vector
    indices          the first place of each in row-major order
    inverse_indices  the place of each element in `values`, sparse where the tensor is
    counts           the number of times that each occurs
    """

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


def distinct_values(T: Tensor, equal_nan: bool = False) -> Tensor:  # noqa: N803
    """Find the distinct elements in ascending order, including those not stored.

    equal_nan  whether all NaN are one element

    Raises FormatError for NaN that are not stored where each is a distinct element.
    """
    if T.format.is_dense:
        return of_dense(np.unique(T.to_numpy(), equal_nan=equal_nan))
    data = canonical(T.examined())
    more = [fill_number(data)] if _absent(T, len(data.values), equal_nan) else []
    numbers = np.append(data.values, np.asarray(more, data.dtype))
    return of_dense(np.unique(numbers, equal_nan=equal_nan))


def _absent(T: Tensor, stored: int, equal_nan: bool) -> int:  # noqa: N803
    """Return the number of elements that are not stored."""
    absent, fill = T.size - stored, fill_number(T.data)
    if absent and fill != fill and not equal_nan:
        raise FormatError(
            f"Expected numbers where nothing is stored, found {absent} NaN, each an element of its "
            "own",
            hint="np.unique(T) takes all NaN for one",
        )
    return absent


def distinct(T: Tensor, equal_nan: bool = False) -> Distinct:  # noqa: N803
    """Find the distinct elements as `distinct_values` does, their places and their counts.

    Raises DimensionError for 2**63 elements or more, and as `distinct_values`.
    """
    if T.format.is_dense:
        parts = np.unique(T.to_numpy(), True, True, True, equal_nan=equal_nan)
        dense = [of_dense(np.asarray(part)) for part in parts]
        return Distinct(dense[0], dense[1], reshape(dense[2], T.shape), dense[3])
    line = lines_along(reshape(T, -1).examined(), 0)
    absent = _absent(T, len(line.values), equal_nan)
    places, numbers = line.places, line.values
    if absent:  # the first of them, in its place among the others
        gap = int(first_gaps(line)[0]) if len(places) else 0
        place = int(np.searchsorted(places, gap))
        places = np.insert(places, place, gap)
        numbers = np.insert(numbers, place, fill_number(T.data))
    parts = np.unique(numbers, True, True, True, equal_nan=equal_nan)
    values, first, inverse, counts = parts
    inverse = np.asarray(inverse, np.int64).reshape(-1)
    fill = ""
    if absent:
        counts[inverse[place]] += absent - 1
        fill = as_text(inverse[place])
        inverse = np.delete(inverse, place)
    source = replace(T.data, values=inverse[:0], fill=fill)
    inverse_tensor = like(source, unravel(line.places, T.shape), inverse, T.shape)
    return Distinct(of_dense(values), of_dense(places[first]), inverse_tensor, of_dense(counts))


def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    equal_nan: bool = True,
) -> Any:
    """Find the distinct elements in ascending order and other requested results, as np.unique."""
    if not (return_index or return_inverse or return_counts):
        return distinct_values(ar, equal_nan)
    parts = distinct(ar, equal_nan)
    flags = (return_index, return_inverse, return_counts)
    more = [part for part, is_returned in zip(parts[1:], flags, strict=True) if is_returned]
    return (parts.values, *more)

"""Functions of the array API standard that take more than one operation on elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from taco_py.arrays import element_functions, matrix_products, scans, shapes, sorted_elements
from taco_py.arrays import subscripts_of_modes as modes
from taco_py.arrays.element_functions import where as elements_where
from taco_py.arrays.extremum_places import place_of_extremum
from taco_py.arrays.numpy_surface import composed_products, layouts
from taco_py.arrays.reductions import reduced
from taco_py.arrays.reductions import std as std_of
from taco_py.arrays.reductions import var as var_of
from taco_py.arrays.standard.wrapped import tensors
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandTypeError


@tensors
def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """Convert the elements to another type. Raises OperandTypeError from complex to real."""
    if x.dtype.kind == "c" and np.dtype(dtype).kind not in "cb":
        raise OperandTypeError(
            f"Expected a complex type for {x.dtype}, found {np.dtype(dtype)}", hint="xp.real(x)"
        )
    return x if not copy and x.dtype == dtype else x.astype(dtype)


# ---------------------------------------------------------------- elements


@tensors
def where(condition: Any, x1: Any, x2: Any, /) -> Any:
    """Take elements of x1 where a condition holds, of x2 elsewhere."""
    return elements_where(condition, x1, x2)


@tensors
def nextafter(x1: Any, x2: Any, /) -> Any:
    """Find the next number of the type after each element of x1 towards x2."""
    return element_functions.nextafter(x1, x2)


@tensors
def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """Bound elements; the type is that of x."""
    bounded = element_functions.clip(x, min, max)
    return bounded if bounded.dtype == x.dtype else bounded.astype(x.dtype)


@tensors
def conj(x: Any, /) -> Any:
    """Conjugate."""
    return element_functions.conj(x)


@tensors
def real(x: Any, /) -> Any:
    """Take real parts."""
    return element_functions.real(x)


@tensors
def imag(x: Any, /) -> Any:
    """Take imaginary parts."""
    return element_functions.imag(x)


# ---------------------------------------------------------------- reductions and scans


@tensors
def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Return the mean over modes."""
    return reduced("mean", x, axis, keepdims)


@tensors
def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the variance over modes."""
    return var_of(x, axis, keepdims, correction)


@tensors
def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Any:
    """Return the square root of the variance over modes."""
    return std_of(x, axis, keepdims, correction)


@tensors
def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Any:
    """Count the elements that are not 0."""
    return reduced("count", x, axis, keepdims)


@tensors
def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Find the first place of the least element along a mode; without axis, of all."""
    return place_of_extremum("argmin", x, axis, keepdims)


@tensors
def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Any:
    """Find the first place of the largest element along a mode; without axis, of all."""
    return place_of_extremum("argmax", x, axis, keepdims)


@tensors
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Add up along a mode."""
    return scans.standard_scan("sum", x, axis, dtype, include_initial)


@tensors
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    """Multiply along a mode."""
    return scans.standard_scan("prod", x, axis, dtype, include_initial)


@tensors
def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Any:
    """Subtract each element from the next one along a mode, n times."""
    return layouts.diff(x, n, axis, prepend, append)


# ---------------------------------------------------------------- shapes


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """Put tensors one behind another along a mode."""
    return shapes.concatenate(arrays, axis)


def stack(arrays: Any, /, *, axis: int = 0) -> Any:
    """Put tensors beside one another along a new mode."""
    return layouts.stack(arrays, axis)


@tensors
def unstack(x: Any, /, *, axis: int = 0) -> Any:
    """Take a tensor apart along a mode."""
    return layouts.unstack(x, axis=axis)


@tensors
def expand_dims(x: Any, /, axis: int = 0) -> Any:
    """Add a mode of size 1."""
    return shapes.expand_dims(x, axis)


@tensors
def squeeze(x: Any, /, axis: Any) -> Any:
    """Leave out modes of size 1."""
    return shapes.squeeze(x, axis)


@tensors
def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Any:
    """Give the elements another shape, in row-major order."""
    reshaped = shapes.reshape(x, shape)
    return reshaped.copy() if copy else reshaped


@tensors
def permute_dims(x: Any, /, axes: Any) -> Any:
    """Reorder the modes."""
    return shapes.permute(x, axes)


@tensors
def moveaxis(x: Any, source: Any, destination: Any, /) -> Any:
    """Move modes to other places."""
    return layouts.moveaxis(x, source, destination)


@tensors
def matrix_transpose(x: Any, /) -> Any:
    """Exchange the last two modes."""
    return layouts.matrix_transpose(x)


@tensors
def broadcast_to(x: Any, /, shape: Any) -> Any:
    """Stretch modes of size 1 to a shape."""
    return modes.broadcast_to(x, shape)


@tensors
def broadcast_arrays(*arrays: Any) -> Any:
    """Stretch tensors to one shape."""
    return modes.broadcast_arrays(*arrays)


@tensors
def flip(x: Any, /, *, axis: Any = None) -> Any:
    """Reverse the order along modes."""
    return layouts.flip(x, axis)


@tensors
def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Any:
    """Move elements along modes, those beyond the end to the beginning."""
    return layouts.roll(x, shift, axis)


@tensors
def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Any:
    """Repeat each element along a mode."""
    return modes.repeat(x, repeats, axis)


@tensors
def tile(x: Any, repetitions: Any, /) -> Any:
    """Put copies of a tensor beside one another."""
    return layouts.tile(x, repetitions)


# ---------------------------------------------------------------- products


@tensors
def matmul(x1: Any, x2: Any, /) -> Any:
    """Multiply matrices, vectors or stacks of matrices."""
    return matrix_products.matmul(x1, x2)


@tensors
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Sum products over pairs of modes."""
    return matrix_products.tensordot(x1, x2, axes)


@tensors
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Sum products along a mode, conjugating the first."""
    return composed_products.vecdot(x1, x2, axis)


# ---------------------------------------------------------------- places, order, sets


@tensors
def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Any:
    """Take elements at positions along a mode."""
    return layouts.take(x, indices, 0 if axis is None else axis)


@tensors
def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Any:
    """Take at each place the element at the position that `indices` has there."""
    return modes.take_along_axis(x, indices, axis)


@tensors
def nonzero(x: Any, /) -> Any:
    """Find the coordinates of the elements that are not 0."""
    return element_functions.nonzero(x)


@tensors
def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Sort the elements along a mode."""
    return sorted_elements.sort(x, axis, descending)


@tensors
def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """Find the positions that sort the elements along a mode, as a dense tensor."""
    return sorted_elements.argsort(x, axis, descending)


@tensors
def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Any:
    """Find the places where numbers can be inserted into a sorted vector."""
    return sorted_elements.searchsorted(x1, x2, side, sorter)


class Counts(NamedTuple):
    """Distinct elements and their counts."""

    values: Tensor
    counts: Tensor


class Inverse(NamedTuple):
    """Distinct elements, and the place of each element among them."""

    values: Tensor
    inverse_indices: Tensor


@tensors
def unique_values(x: Any, /) -> Any:
    """Find the distinct elements."""
    return sorted_elements.distinct_values(x)


@tensors
def unique_counts(x: Any, /) -> Counts:
    """Find the distinct elements and their counts."""
    parts = sorted_elements.distinct(x)
    return Counts(parts.values, parts.counts)


@tensors
def unique_inverse(x: Any, /) -> Inverse:
    """Find the distinct elements, and the place of each element among them."""
    parts = sorted_elements.distinct(x)
    return Inverse(parts.values, parts.inverse_indices)


@tensors
def unique_all(x: Any, /) -> sorted_elements.Distinct:
    """Find the distinct elements, their places and their counts."""
    return sorted_elements.distinct(x)

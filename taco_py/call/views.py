"""Calls that only permute the modes of an operand or take a diagonal of an array: views, as NumPy's
and SciPy's are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.notation.nodes import Access, Assignment
from taco_py.storage.tensor_data import Array, TensorData
from taco_py.values.operands import describe, taken
from taco_py.values.result_table import permuted
from taco_py.values.results import hand_out, result_kind
from taco_py.values.settings import Settings

Look = Callable[[Array], Array | None]


def look_of(assignment: Assignment, operand: Array, settings: Settings) -> Look | None:
    """How to see operands like this one as the result; None where a result must be computed.

    B[j,i] = A[i,j]   ->   A.transpose(1, 0)
    b[i] = A[i,i]     ->   A.diagonal(), which may be written where A may
    """
    access, target = assignment.value, assignment.target
    if type(operand) is not np.ndarray or not isinstance(access, Access) or not operand.ndim:
        return None
    if settings.format is not None or assignment.operator is not None:
        return None
    if settings.dtype is not None and settings.dtype != operand.dtype:
        return None
    if len(access.indices) != operand.ndim or set(access.indices) != set(target.indices):
        return None
    pairs, left = _diagonals(access.indices)
    axes = None if left == target.indices else tuple(map(left.index, target.indices))
    if not pairs:
        return (lambda array: array.view()) if axes is None else lambda array: array.transpose(axes)
    return lambda array: _along(array, pairs, axes)


def _diagonals(indices: tuple[str, ...]) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """The pairs of modes to take the diagonal of, one after the other, and the indices of what is
    left: a diagonal is its last mode.

    >>> _diagonals(("i", "j", "i"))
    (((0, 2),), ('j', 'i'))
    """
    pairs: list[tuple[int, int]] = []
    left = indices
    while len(set(left)) < len(left):
        index = next(each for each in left if left.count(each) > 1)
        one = left.index(index)
        other = left.index(index, one + 1)
        pairs.append((one, other))
        left = (*(each for at, each in enumerate(left) if at not in (one, other)), index)
    return tuple(pairs), left


def _along(
    array: Array, pairs: tuple[tuple[int, int], ...], axes: tuple[int, ...] | None
) -> Array | None:
    """The diagonals of `array`, their modes in the order `axes`; None where modes on one of them
    differ in size."""
    found = array
    for one, other in pairs:
        shape = found.shape
        if shape[one] != shape[other]:
            return None
        found = found.diagonal(0, one, other)
    if axes is not None:
        found = found.transpose(axes)
    found.setflags(write=array.flags.writeable)
    return found


def shared_look(
    assignment: Assignment, objects: Mapping[str, Any], settings: Settings
) -> Callable[[Any], Any] | None:
    """Give the function that shows a sparse operand with its modes permuted, in its own arrays.

    B[j,i] = A[i,j]    A a csr_array   ->   what A.T is: a csc_array

    None where a result must be computed: where something else is asked for, be it the same format.
    """
    access = assignment.value
    if not isinstance(access, Access) or objects.keys() != {access.tensor}:
        return None
    asked = settings.format, settings.schedule, settings.path
    if any(each is not None for each in asked) or settings.measure or settings.static:
        return None
    given = describe(objects[access.tensor], access.tensor)
    if given.data.format.is_dense or permuted(assignment, given.data.format) is None:
        return None
    if settings.dtype is not None and settings.dtype != given.data.dtype:
        return None
    name, kind = access.tensor, result_kind(assignment, {access.tensor: given}, None)

    def look(operand: Any) -> Any:
        return hand_out(_with_modes(assignment, taken(operand, f"operand {name}")), kind)

    return look


def _with_modes(assignment: Assignment, data: TensorData) -> TensorData:
    """The same arrays as a tensor whose modes have the order of the result's."""
    form, access = permuted(assignment, data.format), assignment.value
    assert form is not None and isinstance(access, Access)
    shape = tuple(data.shape[access.indices.index(i)] for i in assignment.target.indices)
    return replace(data, format=form, shape=shape)

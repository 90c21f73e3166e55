"""Calls that only permute the modes of an operand or take a diagonal of an array: views, as NumPy's
and SciPy's are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from taco_py.arguments.operands import describe
from taco_py.arguments.options import CallOptions
from taco_py.arguments.result_table import permuted
from taco_py.arguments.results import result_kind
from taco_py.data.storage.tensor_data import Array
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.running.replay.helpers import Helper

MODES = "taco_py.data.tensors.shown_modes"


def look_of(assignment: Assignment, operand: Array, options: CallOptions) -> Helper | None:
    """Return how to see operands like this one as the result; None where a result must be computed.

    B[j,i] = A[i,j]   ->   A.transpose(1, 0)
    b[i] = A[i,i]     ->   A.diagonal(), which may be written where A may
    """
    access, target = assignment.value, assignment.target
    if type(operand) is not np.ndarray or not isinstance(access, Access) or not operand.ndim:
        return None
    if options.format is not None or assignment.operator is not None:
        return None
    if options.dtype is not None and options.dtype != operand.dtype:
        return None
    if len(access.indices) != operand.ndim or set(access.indices) != set(target.indices):
        return None
    pairs, left = _diagonals(access.indices)
    axes = None if left == target.indices else tuple(map(left.index, target.indices))
    return Helper(f"{MODES}:show_array", {"pairs": pairs, "axes": axes})


def _diagonals(indices: tuple[str, ...]) -> tuple[tuple[tuple[int, int], ...], tuple[str, ...]]:
    """Return the pairs of modes whose diagonals are taken in turn, and the indices that remain.

    A diagonal becomes the last mode.

    >>> _diagonals(("i", "j", "i"))
    (((0, 2),), ('j', 'i'))
    """
    pairs: list[tuple[int, int]] = []
    left = indices
    while len(set(left)) < len(left):
        index = next(name for name in left if left.count(name) > 1)
        one = left.index(index)
        other = left.index(index, one + 1)
        pairs.append((one, other))
        left = (*(name for at, name in enumerate(left) if at not in (one, other)), index)
    return tuple(pairs), left


def shared_look(
    assignment: Assignment, objects: Mapping[str, Any], options: CallOptions
) -> Helper | None:
    """Give the function that shows a sparse operand with its modes permuted, in its own arrays.

    B[j,i] = A[i,j]    A a csr_array   ->   what A.T is: a csc_array

    None where a result must be computed: where something else is asked for, be it the same format.
    """
    access = assignment.value
    if not isinstance(access, Access) or objects.keys() != {access.tensor}:
        return None
    requests = options.format, options.schedule, options.path
    if any(request is not None for request in requests) or options.chosen_by_data or options.static:
        return None
    operand = describe(objects[access.tensor], access.tensor)
    form = permuted(assignment, operand.data.format)
    if operand.data.format.is_dense or form is None:
        return None
    if options.dtype is not None and options.dtype != operand.data.dtype:
        return None
    kind = result_kind(assignment, {access.tensor: operand}, None).kind
    axes = tuple(map(access.indices.index, assignment.target.indices))
    return Helper(f"{MODES}:show_sparse", {"axes": axes, "form": form, "kind": kind})

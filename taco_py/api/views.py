"""Calls that only permute the modes of an array or take a diagonal of it: views, as NumPy's are."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.api.arguments import Settings
from taco_py.notation.nodes import Access, Assignment
from taco_py.storage.tensor_data import Array


def view_of(assignment: Assignment, operand: Any, settings: Settings) -> Array | None:
    """The operand itself, seen as the result; None where a result must be computed.

    B[j,i] = A[i,j]   ->   A with its strides exchanged
    b[i] = A[i,i]     ->   the elements A.strides[0] + A.strides[1] bytes apart
    """
    access, target = assignment.value, assignment.target
    if type(operand) is not np.ndarray or not isinstance(access, Access) or not operand.ndim:
        return None
    if settings.format is not None or settings.dtype is not None or assignment.operator is not None:
        return None
    if len(access.indices) != operand.ndim or set(access.indices) != set(target.indices):
        return None
    sizes: dict[str, int] = {}
    strides = dict.fromkeys(target.indices, 0)
    for index, size, stride in zip(access.indices, operand.shape, operand.strides, strict=True):
        if sizes.setdefault(index, size) != size:
            return None
        strides[index] += stride
    shape = tuple(sizes[index] for index in target.indices)
    return np.lib.stride_tricks.as_strided(
        operand, shape, tuple(strides.values()), writeable=operand.flags.writeable
    )

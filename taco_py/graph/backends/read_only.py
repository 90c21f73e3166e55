"""What backends get and give: operands that they cannot write to, results that are the caller's.

A runtime that writes into an operand raises there, and the host computes its region; a result that
lies in an operand, in another result, or in what the backend keeps is copied.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.data.tensors.tensor import Tensor

PARTS = ("data", "indices", "indptr", "offsets")
"""Attributes of SciPy's sparse arrays that are arrays."""


def read_only(value: Any) -> Any:
    """Show an operand without the right to write; numbers are what they are."""
    if isinstance(value, np.ndarray):
        return _shown(value)
    if isinstance(value, Tensor):
        return Tensor(_data_shown(value.data))
    if is_scipy_sparse(value):
        return _matrix_shown(value)
    return value


def _shown(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found = array.view()
    found.flags.writeable = False
    return found


def _data_shown(data: TensorData) -> TensorData:
    levels = tuple(
        LevelArrays(*(None if each is None else _shown(each) for each in (level.pos, level.crd)))
        for level in data.levels
    )
    return replace(data, levels=levels, values=_shown(data.values))


def _matrix_shown(matrix: Any) -> Any:
    """Return a matrix of SciPy in the same arrays; one whose elements are in lists or a dict is
    copied."""
    if matrix.format in ("lil", "dok"):
        return matrix.copy()
    found = copy(matrix)
    for part in PARTS:
        if isinstance(getattr(matrix, part, None), np.ndarray):
            setattr(found, part, _shown(getattr(matrix, part)))
    if hasattr(matrix, "coords"):
        found.coords = tuple(map(_shown, matrix.coords))
    return found


def own_results(found: Sequence[Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return results in memory that nobody else has, and that may be written.

    arrays  the operands
    """
    kept = sys.getrefcount(found) > _OF_SEQUENCE
    made: list[Any] = []
    for value in found:
        held = kept or sys.getrefcount(value) > _OF_ELEMENT or _has_foreign_base(value)
        made.append(_own(value, (*arrays, *made), held))
    return tuple(made)


def _own(value: Any, others: Sequence[Any], held: bool) -> Any:
    if isinstance(value, np.generic):
        return value
    dense = (each for each in others if isinstance(each, np.ndarray))
    shares = held or any(np.may_share_memory(value, each) for each in dense)
    return value.copy() if shares or not value.flags.writeable else value


def _has_foreign_base(value: Any) -> bool:
    """Tell whether what an array shows is somebody else's, too, or may be."""
    base = value.base
    while isinstance(base, np.ndarray):
        if sys.getrefcount(base) > _OF_BASE:
            return True
        base = base.base
    return base is not None


def _count_references() -> tuple[int, int, int]:
    """Count how many references there are, as counted above, where nobody else has one."""
    counts: list[int] = []

    def sequence(found: Sequence[Any]) -> None:
        counts.append(sys.getrefcount(found))
        for value in found:
            counts.append(sys.getrefcount(value))
            base = value.base
            while isinstance(base, np.ndarray):
                counts.append(sys.getrefcount(base))
                base = base.base

    probe = [np.zeros(2)[:1]]
    sequence(probe)
    return counts[0], counts[1], counts[2]


_OF_SEQUENCE, _OF_ELEMENT, _OF_BASE = _count_references()

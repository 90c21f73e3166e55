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

from codegen.runtime.memory.memory_pool import Block, Loan
from taco_py.data.interop.scipy_arrays import is_scipy_sparse
from taco_py.data.storage.tensor_data import LevelArrays, TensorData
from taco_py.data.tensors.tensor import Tensor

PARTS = ("data", "indices", "indptr", "offsets")
"""Attributes of SciPy's sparse arrays that are arrays."""


def read_only(value: Any) -> Any:
    """Show an operand without the right to write; numbers are what they are."""
    if isinstance(value, np.ndarray):
        return _read_only_view(value)
    if isinstance(value, Tensor):
        return Tensor(_data_shown(value.data))
    if is_scipy_sparse(value):
        return _matrix_shown(value)
    return value


def _read_only_view(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _data_shown(data: TensorData) -> TensorData:
    levels = tuple(
        LevelArrays(*(None if a is None else _read_only_view(a) for a in (level.pos, level.crd)))
        for level in data.levels
    )
    return replace(data, levels=levels, values=_read_only_view(data.values))


def _matrix_shown(matrix: Any) -> Any:
    """Return a matrix of SciPy in the same arrays; one whose elements are in lists or a dict is
    copied."""
    if matrix.format in ("lil", "dok"):
        return matrix.copy()
    clone = copy(matrix)
    for part in PARTS:
        if isinstance(getattr(matrix, part, None), np.ndarray):
            setattr(clone, part, _read_only_view(getattr(matrix, part)))
    if hasattr(matrix, "coords"):
        clone.coords = tuple(map(_read_only_view, matrix.coords))
    return clone


def detach_results(values: Sequence[Any], arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return results in memory that nobody else has, and that may be written.

    arrays  the operands
    """
    sequence_shared = sys.getrefcount(values) > _OF_SEQUENCE
    results: list[Any] = []
    for value in values:
        shared = sequence_shared or sys.getrefcount(value) > _OF_ELEMENT or _has_foreign_base(value)
        results.append(_detach(value, (*arrays, *results), shared))
    return tuple(results)


def _detach(value: Any, arrays: Sequence[Any], shared: bool) -> Any:
    if isinstance(value, np.generic):
        return value
    dense = (array for array in arrays if isinstance(array, np.ndarray))
    shares = shared or any(np.may_share_memory(value, array) for array in dense)
    return value.copy() if shares or not value.flags.writeable else value


def _has_foreign_base(value: Any) -> bool:
    """Tell whether the memory of an array is somebody else's, too, or may be."""
    base = value.base
    while isinstance(base, np.ndarray | Block | Loan):
        if sys.getrefcount(base) > _OF_BASE:
            return True
        base = base.base if isinstance(base, np.ndarray) else None  # memory of results, kept
    return base is not None


def _count_references() -> tuple[int, int, int]:
    """Count how many references there are, as counted above, where nobody else has one."""
    counts: list[int] = []

    def sequence(values: Sequence[Any]) -> None:
        counts.append(sys.getrefcount(values))
        for value in values:
            counts.append(sys.getrefcount(value))
            base = value.base
            while isinstance(base, np.ndarray):
                counts.append(sys.getrefcount(base))
                base = base.base

    probe = [np.zeros(2)[:1]]
    sequence(probe)
    return counts[0], counts[1], counts[2]


_OF_SEQUENCE, _OF_ELEMENT, _OF_BASE = _count_references()

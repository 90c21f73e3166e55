"""Stored tensors with their coordinates in the order that a kernel requires."""

from __future__ import annotations

from dataclasses import replace

from taco_py.data.interop.scipy_arrays import coordinate_order
from taco_py.data.storage.pack import canonical, is_sorted, is_unique
from taco_py.data.storage.tensor_data import TensorData, on_host
from taco_py.data.storage.tensor_data import ordered as ordered_format
from taco_py.language.formats import CSC, CSR


def in_order(data: TensorData, ordered: bool, unique: bool) -> TensorData:
    """Return `data`, or a sorted copy without duplicates where that is required and not the case.

    The flags of the returned tensor record the order of its coordinates.
    """
    data = with_order(data)
    return data if satisfies(data, ordered, unique) else canonical(data)


def with_order(data: TensorData) -> TensorData:
    """Determine the order of a compressed matrix's coordinates in one pass, where it is unknown."""
    unknown = data.sorted is None or (data.sorted and data.unique is None)
    if not unknown or ordered_format(data.format) not in (CSR, CSC):
        return data
    level = on_host(data).levels[-1]
    assert level.pos is not None and level.crd is not None
    is_ordered, is_distinct = coordinate_order(level.pos, level.crd)
    distinct = data.unique if is_distinct is None else is_distinct
    return replace(data, sorted=is_ordered, unique=distinct)


def satisfies(data: TensorData, ordered: bool, unique: bool) -> bool:
    """Tell whether the coordinates are in the required order, reading them where it is unknown."""
    is_ordered = data.sorted if data.sorted is not None else not ordered or is_sorted(on_host(data))
    is_distinct = data.unique if data.unique is not None else not unique or is_unique(on_host(data))
    return (is_ordered or not ordered) and (is_distinct or not unique)

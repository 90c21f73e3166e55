"""Entries that were relabelled, stored as operands like the one that they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.interop.scipy_arrays import is_scipy_sparse, to_scipy
from taco_py.data.storage.coordinates import ascends, fuse
from taco_py.data.storage.pack import pack_coo
from taco_py.data.storage.sizes import index_type
from taco_py.data.storage.tensor_data import Array, LevelArrays, TensorData, ordered
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.fill import as_number
from taco_py.language.formats import COO, CSC, CSF, CSR, Format
from taco_py.language.legal.stored import is_full


def stored_like(
    source: Any, data: TensorData, columns: Sequence[Array], values: Array, shape: tuple[int, ...]
) -> Any:
    """Return an operand of the kind of `source` with these entries, in any order.

    data  the arrays of `source`

    A matrix is CSR, or CSC or COO where `source` is; SciPy's tensors of other orders are coordinate
    lists. Of no modes it is a number. What is not stored has the fill value of `data`.
    """
    if not shape and not len(values):
        return as_number(data.fill, values.dtype)
    if not shape:
        add = np.logical_or if values.dtype == bool else np.add
        return np.asarray(add.reduce(values, dtype=values.dtype))[()]
    if not is_scipy_sparse(source):
        form = _format_like(data.format, len(shape))
        return Tensor(pack_coo(columns, values, shape, form, fill=data.fill))
    kind = source.format if source.format in ("csc", "coo") else "csr"
    if len(shape) != 2 or kind == "coo":
        dtype = index_type(shape, len(values), None)
        entries = _sorted_coordinates(columns, values, shape, dtype)
        return to_scipy(entries, f"coo_{_family(source, shape)}")
    data = compressed(columns, values, shape, CSC if kind == "csc" else CSR)
    return compressed_like(source, data)


def compressed_like(source: Any, data: TensorData) -> Any:
    """Return CSR or CSC as an object of the kind of `source`."""
    if not is_scipy_sparse(source):
        return Tensor(data)
    form = "csc" if ordered(data.format) == CSC else "csr"
    return to_scipy(data, f"{form}_{_family(source, data.shape)}")


def _family(source: Any, shape: tuple[int, ...]) -> str:
    matrix = type(source).__name__.endswith("matrix") and len(shape) == 2
    return "matrix" if matrix else "array"


def compressed(
    columns: Sequence[Array], values: Array, shape: tuple[int, ...], format: Format
) -> TensorData:
    """Return CSR or CSC of entries in any order; those of one row stay in their order."""
    outer, inner = (columns[mode] for mode in format.mode_order)
    dtype = index_type(shape, len(values), None)
    if len(outer) and (outer[1:] < outer[:-1]).any():
        order = np.argsort(outer, kind="stable")
        outer, inner, values = outer[order], inner[order], values[order]
    pos = np.zeros(shape[format.mode_order[0]] + 1, dtype)
    np.cumsum(np.bincount(outer, minlength=len(pos) - 1), out=pos[1:])
    levels = (LevelArrays(), LevelArrays(pos, np.ascontiguousarray(inner, dtype)))
    return TensorData(format, shape, levels, np.ascontiguousarray(values))


def _sorted_coordinates(
    columns: Sequence[Array], values: Array, shape: tuple[int, ...], dtype: Any
) -> TensorData:
    """Return a coordinate list, in order.

    Entries of a window come as one ascending run for each place of it, which a merge sort merges in
    a third of the time that other sorts take.
    """
    keys = fuse(columns, shape)
    if not ascends(keys, strictly=False).all():
        order = np.argsort(keys[0], kind="stable") if len(keys) == 1 else np.lexsort(keys[::-1])
        columns, values = [column[order] for column in columns], values[order]
    crds = [np.ascontiguousarray(column, dtype) for column in columns]
    pos = np.array([0, len(values)], dtype)
    levels = (LevelArrays(pos, crds[0]), *(LevelArrays(crd=crd) for crd in crds[1:]))
    return TensorData(COO(len(crds)), shape, levels, np.ascontiguousarray(values))


def _format_like(format: Format, order: int) -> Format:
    """Return the same format for as many modes without a dense level below a sparse one.

    In other cases return compressed fibres.
    """
    full = [level.full for level in format.levels]
    if order == format.order and full == sorted(full, reverse=True) and not is_full(format):
        return ordered(format)
    return CSF(order)

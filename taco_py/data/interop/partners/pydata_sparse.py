"""Arrays of pydata/sparse: COO and matrices in GCXS in place, others through COO."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.interop.partners.partner import (
    Partner,
    compressed_parts,
    coordinate_arrays,
    in_order_once,
    pick,
    require_type,
    stored,
    table,
)
from taco_py.data.storage.borrow import from_compressed, from_coordinates, require_dtype
from taco_py.data.storage.tensor_data import Array, TensorData, ordered
from taco_py.language.diagnostics.extras import library
from taco_py.language.fill import as_number, fill_of
from taco_py.language.formats import COO, CSC, CSR, Format

KINDS = ("COO", "GCXS", "DOK")
TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def read(obj: Any) -> TensorData | None:
    """Return a sparse array, sharing its arrays; None for other objects.

    Raises OperandTypeError for values that kernels do not read.
    """
    if not hasattr(obj, "fill_value") or not hasattr(obj, "nnz"):
        return None
    require_dtype(obj.dtype, "values")
    fill = fill_of(obj.fill_value, obj.dtype)
    if type(obj).__name__ == "GCXS" and obj.ndim == 2:
        format = CSR if tuple(obj.compressed_axes) == (0,) else CSC
        shape = tuple(map(int, obj.shape))
        return replace(from_compressed(obj.indptr, obj.indices, obj.data, shape, format), fill=fill)
    coordinates = obj if hasattr(obj, "coords") else obj.tocoo() if hasattr(obj, "tocoo") else None
    if coordinates is None:
        coordinates = obj.to_coo()
    shape = tuple(map(int, coordinates.shape))
    if not shape:
        return from_numpy(coordinates.todense())
    return replace(from_coordinates(tuple(coordinates.coords), coordinates.data, shape), fill=fill)


def write(data: TensorData, kind: str) -> Any:
    """Return an array of pydata/sparse with sorted coordinates and summed duplicates."""
    sparse = library("sparse", "sparse")
    matrix = ordered(data.format) in (CSR, CSC)
    target = pick(kind or ("GCXS" if matrix else "COO"), KINDS, "sparse")
    require_type(data.dtype, TYPES, "pydata/sparse")
    if target == "GCXS" and data.format.order == 2:
        return write_matrix(sparse, data)
    array = write_coordinates(sparse, data)
    return array if target == "COO" else array.asformat(target.lower())


def write_matrix(sparse: Any, data: TensorData) -> Any:
    """Return GCXS around the arrays of CSR or CSC."""
    columns = ordered(data.format) == CSC
    plain = in_order_once(stored(data, CSC if columns else CSR))
    pos, crd, values = compressed_parts(plain)
    fill, axes = as_number(plain.fill, plain.dtype), (1,) if columns else (0,)
    return sparse.GCXS((values, crd, pos), shape=plain.shape, compressed_axes=axes, fill_value=fill)


def write_coordinates(sparse: Any, data: TensorData) -> Any:
    """Return COO with its coordinates in one table."""
    fill, order = as_number(data.fill, data.dtype), data.format.order
    if not order:
        return sparse.COO.from_numpy(np.asarray(data.values), fill_value=fill)
    form: Format = COO(order)
    coordinates = in_order_once(data if ordered(data.format) == form else stored(data, form))
    columns: list[Array] = coordinate_arrays(coordinates)
    coords = table(columns, columns[0].dtype)
    options = {
        "shape": coordinates.shape,
        "fill_value": fill,
        "has_duplicates": False,
        "sorted": True,
    }
    return sparse.COO(coords, coordinates.values, **options)


PARTNER = Partner("sparse", ("sparse",), "sparse", KINDS, read, write)

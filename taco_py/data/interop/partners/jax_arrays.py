"""Sparse arrays of JAX: BCSR in place; BCOO with its values in place, and its coordinates copied.

JAX stores the coordinates of an entry together, this package those of a mode. Missing entries of
JAX have coordinates past the end of a mode; they are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.interop.partners.partner import (
    Partner,
    compressed_parts,
    coordinate_arrays,
    pick,
    require_order,
    require_zero,
    stored,
    with_blocks,
)
from taco_py.data.storage.borrow import from_compressed, from_coordinates
from taco_py.data.storage.tensor_data import Array, TensorData, ordered
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.diagnostics.extras import library
from taco_py.language.formats import COO, CSR, Format

KINDS = ("BCSR", "BCOO", "Array")


def read(obj: Any) -> TensorData | None:
    """Return a sparse array of JAX; None for a dense one.

    Raises OperandTypeError for another sparse class.
    """
    name = type(obj).__name__
    if not type(obj).__module__.startswith("jax.experimental.sparse"):
        return None
    if name == "BCSR" and not obj.n_batch and not obj.n_dense:
        pos, crd, values = (np.asarray(array) for array in (obj.indptr, obj.indices, obj.data))
        return from_compressed(pos, crd, values, tuple(obj.shape), CSR)
    if name == "BCSR":
        return read_coordinates(obj.to_bcoo())
    if name == "BCOO":
        return read_coordinates(obj)
    raise OperandTypeError(
        f"Expected a BCOO or BCSR array of JAX, found {name}", hint="BCOO.fromdense makes one"
    )


def read_coordinates(obj: Any) -> TensorData:
    """Return a BCOO array: dense levels for its dense modes, batches expanded."""
    plain = obj.update_layout(n_batch=0) if obj.n_batch else obj
    shape, count = tuple(plain.shape), plain.n_sparse
    indices, values = np.asarray(plain.indices), np.asarray(plain.data)
    values = np.broadcast_to(values, (len(indices), *values.shape[1:]))
    inside = (indices < np.array(shape[:count], indices.dtype)).all(axis=1)
    if not inside.all():
        indices, values = indices[inside], values[inside]
    columns = tuple(np.ascontiguousarray(indices[:, mode]) for mode in range(count))
    if values.ndim == 1:
        return from_coordinates(columns, values, shape)
    ones = np.zeros(len(values), values.dtype)
    return with_blocks(from_coordinates(columns, ones, shape[:count]), shape[count:], values)


def write(data: TensorData, kind: str) -> Any:
    """Return an array of JAX. Raises OperandTypeError where JAX would round values to 32 bits."""
    library("jax", "jax")
    sparse = library("jax.experimental.sparse", "jax")
    target = pick(kind or usual(data), KINDS, "jax")
    order = data.format.order
    if target == "Array":
        return array_of(stored(data, Format.parse("d" * order)).values)
    require_zero(data, f"JAX's {target}")
    if target == "BCSR":
        require_order(data, 2, "JAX's BCSR", "BCOO holds any order")
        pos, crd, values = compressed_parts(stored(data, CSR))
        flags = {"indices_sorted": bool(data.sorted), "unique_indices": bool(data.unique)}
        parts = (array_of(array, index=True) for array in (crd, pos))
        return sparse.BCSR((array_of(values), *parts), shape=data.shape, **flags)
    if not order:
        return array_of(data.values)
    coordinates = data if data.format.is_coo else stored(data, COO(order))
    indices = array_of(np.stack(coordinate_arrays(coordinates), axis=1), index=True)
    flags = {"indices_sorted": bool(coordinates.sorted), "unique_indices": bool(coordinates.unique)}
    return sparse.BCOO((array_of(coordinates.values), indices), shape=coordinates.shape, **flags)


def usual(data: TensorData) -> str:
    """Return the class of JAX that stores a tensor unchanged, or a coordinate list."""
    if data.format.is_dense:
        return "Array"
    return "BCSR" if ordered(data.format) == CSR else "BCOO"


def array_of(array: Array, index: bool = False) -> Any:
    """Return an array of JAX; coordinates in 32 bits where JAX has no 64-bit integers."""
    jax = library("jax", "jax")
    if index and array.dtype == np.int64 and not jax.config.jax_enable_x64:
        if array.size and int(array.max()) > np.iinfo(np.int32).max:
            raise needs_64(array.dtype)
        array = array.astype(np.int32)
    if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
        raise needs_64(array.dtype)
    return jax.numpy.asarray(array)


def needs_64(dtype: np.dtype[Any]) -> OperandTypeError:
    """Return the error for numbers that JAX rounds unless 64-bit types are enabled."""
    return OperandTypeError(
        f"Expected values that JAX holds, found {dtype}, which it takes for 32 bits",
        hint='call jax.config.update("jax_enable_x64", True) first, or T.astype("float32")',
    )


PARTNER = Partner("jax", ("jax", "jaxlib"), "jax", KINDS, read, write)

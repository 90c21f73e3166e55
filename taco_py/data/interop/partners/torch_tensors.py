"""Tensors of torch: dense ones, and its layouts for sparse ones.

    strided       dense, in place                sparse_csr  CSR, in place
    sparse_coo    coordinates, in place          sparse_csc  CSC, in place
    sparse_bsr, sparse_bsc   converted to CSR    hybrid tensors: dense levels below, in place

Batches of matrices are refused: torch has one structure a batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.interop.partners.partner import (
    Partner,
    compressed_parts,
    coordinate_arrays,
    pick,
    require_order,
    require_zero,
    stored,
    table,
    with_blocks,
)
from taco_py.data.interop.scipy_arrays import from_scipy
from taco_py.data.storage.borrow import bfloat16, from_compressed, from_coordinates
from taco_py.data.storage.tensor_data import Array, TensorData, ordered
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.diagnostics.extras import library
from taco_py.language.formats import COO, CSC, CSR, Format
from taco_py.language.notation.half_types import is_half

KINDS = ("sparse_csr", "sparse_csc", "sparse_coo", "strided")
COMPRESSED = {"sparse_csr": CSR, "sparse_csc": CSC}
TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "bfloat16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip


def read(obj: Any) -> TensorData | None:
    """Return a tensor of torch, sharing its arrays; None for other objects.

    Raises OperandTypeError for a tensor with gradients, on a device or in batches.
    """
    layout = str(getattr(obj, "layout", "")).removeprefix("torch.")
    if not layout:
        return None
    require_plain(obj)
    match layout:
        case "strided":
            return from_numpy(array_of(obj))
        case "sparse_coo":
            return read_coordinates(obj)
        case "sparse_csr" | "sparse_csc":
            rows = layout == "sparse_csr"
            pos, crd = (
                (obj.crow_indices(), obj.col_indices())
                if rows
                else (obj.ccol_indices(), obj.row_indices())
            )
            return read_compressed(obj, array_of(pos), array_of(crd), CSR if rows else CSC)
        case "sparse_bsr" | "sparse_bsc":
            return read_blocks(obj, layout == "sparse_bsr")
        case _:
            raise OperandTypeError(
                f"Expected a tensor of torch that is dense or sparse, found the layout {layout}",
                hint="call .to_dense()",
            )


def require_plain(obj: Any) -> None:
    """Raise OperandTypeError for a tensor with gradients, or in the memory of a device."""
    if obj.requires_grad:
        raise OperandTypeError(
            "Expected a tensor of torch without gradients, found one that requires them",
            hint="pass x.detach(); nothing is recorded of what is computed here",
        )
    if obj.device.type != "cpu":
        raise OperandTypeError(
            f"Expected a tensor of torch on the host, found it on {obj.device}",
            hint="call .cpu(), which copies it",
        )


def array_of(tensor: Any) -> Array:
    """View the memory of a dense tensor of torch as an array."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if str(plain.dtype) == "torch.bfloat16":  # which NumPy lacks
        torch = library("torch", "torch")
        values: Array = plain.view(torch.int16).numpy().view(bfloat16("values of torch"))
        return values
    array: Array = plain.numpy()
    return array


def read_coordinates(obj: Any) -> TensorData:
    """Return a coordinate list, including duplicates; dense levels for its dense modes."""
    sparse, indices, values = obj.sparse_dim(), array_of(obj._indices()), array_of(obj._values())
    shape = tuple(obj.shape)
    if not sparse:
        return from_numpy(array_of(obj.to_dense()))
    first = values.reshape(len(values), -1)[:, :1].reshape(-1) if values.ndim > 1 else values
    if values.ndim > 1 and not values[:1].size:  # blocks without elements
        first = np.zeros(len(values), values.dtype)
    data = from_coordinates(tuple(indices), first, shape[:sparse])
    return with_blocks(data, shape[sparse:], values)


def read_compressed(obj: Any, pos: Array, crd: Array, format: Format) -> TensorData:
    """Return CSR or CSC; dense levels for the dense modes of its values."""
    if pos.ndim != 1:
        raise OperandTypeError(
            f"Expected one matrix of torch, found a batch of them of shape {tuple(obj.shape)}",
            hint="pass x.to_dense(), or one matrix of the batch at a time",
        )
    values = array_of(obj.values())
    if values.ndim == 1:
        return from_compressed(pos, crd, values, tuple(obj.shape), format)
    shape = tuple(obj.shape)
    ones = np.zeros(len(values), values.dtype)
    return with_blocks(from_compressed(pos, crd, ones, shape[:2], format), shape[2:], values)


def read_blocks(obj: Any, rows: bool) -> TensorData:
    """Return a matrix of blocks as CSR, by scipy."""
    import scipy.sparse as sp

    if not rows:
        return _turned(read_blocks(obj.transpose(0, 1), True))
    values = array_of(obj.values())
    if values.ndim != 3 or is_half(values.dtype):
        raise OperandTypeError(
            f"Expected one matrix of blocks of torch in 32 bits or more, found one of shape "
            f"{tuple(obj.shape)} of {values.dtype}",
            hint="pass x.to_sparse_coo()",
        )
    parts: Any = (values, array_of(obj.col_indices()), array_of(obj.crow_indices()))
    return from_scipy(sp.bsr_array(parts, shape=tuple(obj.shape)))


def _turned(data: TensorData) -> TensorData:
    """Return the transposed matrix in the same arrays."""
    from dataclasses import replace

    return replace(data, format=CSC, shape=data.shape[::-1])


def write(data: TensorData, kind: str) -> Any:
    """Return a tensor of torch around the same arrays, of the layout `kind`.

    Raises FormatError for a layout that cannot hold the tensor.
    """
    torch = library("torch", "torch")
    layout = pick(kind or usual(data), KINDS, "torch")
    if layout == "strided":
        return tensor_of(torch, stored(data, Format.parse("d" * data.format.order)).values)
    require_zero(data, f"torch's {layout}")
    if layout == "sparse_coo":
        return write_coordinates(torch, data)
    require_order(data, 2, f"torch's {layout}", "sparse_coo holds any order")
    pos, crd, values = compressed_parts(stored(data, COMPRESSED[layout]))
    make = torch.sparse_csr_tensor if layout == "sparse_csr" else torch.sparse_csc_tensor
    parts = [tensor_of(torch, array) for array in (pos, crd, values)]
    return make(*parts, size=data.shape, check_invariants=False)


def usual(data: TensorData) -> str:
    """Return the layout that stores a tensor unchanged, or a coordinate list."""
    if data.format.is_dense:
        return "strided"
    kinds = {form: kind for kind, form in COMPRESSED.items()}
    return kinds.get(ordered(data.format), "sparse_coo")


def write_coordinates(torch: Any, data: TensorData) -> Any:
    """Return a coordinate list; torch stores its coordinates in one table of int64."""
    if not data.format.order:
        return tensor_of(torch, data.values).reshape(())
    coordinates = data if data.format.is_coo else stored(data, COO(data.format.order))
    indices = tensor_of(torch, table(coordinate_arrays(coordinates), np.dtype(np.int64)))
    values = tensor_of(torch, coordinates.values[: indices.shape[1]])
    tensor = torch.sparse_coo_tensor(
        indices, values, size=coordinates.shape, check_invariants=False
    )
    return tensor._coalesced_(True) if coordinates.sorted and coordinates.unique else tensor


def tensor_of(torch: Any, array: Array) -> Any:
    """Return a dense tensor of torch in an array's memory; a copy of a read-only one."""
    plain = array if array.flags.writeable and min(array.strides, default=0) >= 0 else array.copy()
    if plain.dtype.name == "bfloat16":
        return torch.from_numpy(plain.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(plain)


PARTNER = Partner("torch", ("torch",), "torch", KINDS, read, write)

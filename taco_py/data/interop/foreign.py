"""Arrays of other libraries: by the table of partners, else by the protocols that libraries offer.
They are read in place where their layout allows it.

__binsparse__                 sparse arrays, with __binsparse_descriptor__
coords, data, fill_value      coordinate lists (pydata/sparse) of any order, or with a fill value
tocsr(), tocoo()              sparse arrays (pydata/sparse, …): scipy's arrays
__array_interface__           memory of the library
__dlpack__                    tensors in the memory of the processor (torch, JAX, …)
__array__                     objects that NumPy converts (pandas, xarray, torch, …)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.data.interop.partners.partners import partner_of
from taco_py.data.storage.borrow import from_coordinates, require_dtype
from taco_py.data.storage.containers.binsparse import is_described
from taco_py.data.storage.containers.binsparse import read as read_described
from taco_py.data.storage.tensor_data import TensorData
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.fill import fill_of

SPARSE = ("to_scipy_sparse", "tocsr", "tocoo")
"""Methods that return a scipy.sparse array."""


def foreign_data(obj: Any) -> Any:
    """Return the stored tensor of an object of another library, or an equivalent object.

    Raises OperandTypeError, which names the object's module, where it offers none.
    """
    partner = partner_of(obj)
    converted = None if partner is None else partner.read(obj)
    if converted is not None:
        return converted
    if is_described(obj):
        return read_described(obj)
    coordinates = coordinate_list(obj)
    return readable(obj) if coordinates is None else coordinates


def readable(obj: Any) -> Any:
    """Return the scipy.sparse or NumPy array of an object of another library.

    Raises OperandTypeError, which names the object's module, where it offers none.
    """
    if hasattr(obj, "to_host"):
        raise OperandTypeError(
            f"Expected a tensor on the host, found {obj!r}", hint="call .to_host(), which copies it"
        )
    for method in SPARSE:
        if hasattr(obj, method):
            result = _call_protocol(obj, method, getattr(obj, method))
            if type(result).__module__.startswith("scipy.sparse"):
                return result
    if hasattr(obj, "__array_interface__"):
        return _call_protocol(obj, "__array_interface__", lambda: np.asarray(obj))
    if hasattr(obj, "__dlpack__"):
        try:
            return np.from_dlpack(obj)
        except Exception as error:
            if not hasattr(obj, "__array__"):
                raise _refusal(obj, "__dlpack__", error) from error
    if hasattr(obj, "__array__"):
        return _call_protocol(obj, "__array__", lambda: np.asarray(obj))
    raise OperandTypeError(
        f"Expected a NumPy array, a scipy.sparse array, a Tensor or a number, found {kind_of(obj)}",
        hint="convert it with np.asarray",
    )


def coordinate_list(obj: Any) -> TensorData | None:
    """Read a coordinate list that is no scipy.sparse matrix: of another order, or with a fill
    value.

    It is read from `coords`, of shape (order, nnz), `data`, `shape` and `fill_value` of the object,
    or of the result of its method tocoo(); None for other objects. Raises OperandTypeError,
    StructureError.
    """
    if not hasattr(obj, "fill_value") or not (hasattr(obj, "coords") or hasattr(obj, "tocoo")):
        return None
    listing = obj if hasattr(obj, "coords") else _call_protocol(obj, "tocoo", obj.tocoo)
    coords, values, shape, fill_value = _call_protocol(
        obj,
        "coords",
        lambda: (listing.coords, listing.data, tuple(listing.shape), listing.fill_value),
    )
    if not isinstance(values, np.ndarray) or not shape:
        return None
    require_dtype(values.dtype, "values")
    fill = fill_of(fill_value, values.dtype)
    if len(shape) == 2 and not fill:
        return None
    return replace(from_coordinates(tuple(coords), values, shape), fill=fill)


def kind_of(obj: Any) -> str:
    """Return the type of an object with its package, as torch.Tensor; of a built-in type its name.

    >>> kind_of("text")
    'str'
    """
    cls = type(obj)
    package = cls.__module__.partition(".")[0]
    return cls.__qualname__ if package == "builtins" else f"{package}.{cls.__qualname__}"


def _call_protocol(obj: Any, protocol: str, ask: Callable[[], Any]) -> Any:
    """Call a protocol. Raises OperandTypeError for any exception."""
    try:
        return ask()
    except Exception as error:  # of another library, which may raise anything
        raise _refusal(obj, protocol, error) from error


def _refusal(obj: Any, protocol: str, error: Exception) -> OperandTypeError:
    return OperandTypeError(
        f"Expected an array from {protocol} of {kind_of(obj)}, found an error: {error}",
        hint="pass the array itself, in the memory of the processor and without gradients",
    )

"""Arrays of other libraries: of those in the table of partners, and by the protocols that all
others offer. They are read in place where their layout allows it.

__binsparse__                 sparse arrays, with __binsparse_descriptor__
coords, data, fill_value      coordinate lists (pydata/sparse) of any order, or with a fill value
tocsr(), tocoo()              sparse arrays (pydata/sparse, …): scipy's arrays
__array_interface__           memory of the library's own
__dlpack__                    tensors in the memory of the processor (torch, JAX, …)
__array__                     what NumPy makes an array of (pandas, xarray, torch, …)
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
"""Methods that give a scipy.sparse array."""


def foreign_data(obj: Any) -> Any:
    """Return the stored tensor of an object of another library, or another object that stands for
    it.

    Raises OperandTypeError, which names the object's module, where it offers none.
    """
    partner = partner_of(obj)
    found = None if partner is None else partner.read(obj)
    if found is not None:
        return found
    if is_described(obj):
        return read_described(obj)
    listed = coordinate_list(obj)
    return readable(obj) if listed is None else listed


def readable(obj: Any) -> Any:
    """Find the array of an object of another library: scipy.sparse's or NumPy's.

    Raises OperandTypeError, which names the object's module, where it offers none.
    """
    if hasattr(obj, "to_host"):
        raise OperandTypeError(
            f"Expected a tensor on the host, found {obj!r}", hint="call .to_host(), which copies it"
        )
    for method in SPARSE:
        if hasattr(obj, method):
            found = _asked(obj, method, getattr(obj, method))
            if type(found).__module__.startswith("scipy.sparse"):
                return found
    if hasattr(obj, "__array_interface__"):
        return _asked(obj, "__array_interface__", lambda: np.asarray(obj))
    if hasattr(obj, "__dlpack__"):
        try:
            return np.from_dlpack(obj)
        except Exception as error:
            if not hasattr(obj, "__array__"):
                raise _refusal(obj, "__dlpack__", error) from error
    if hasattr(obj, "__array__"):
        return _asked(obj, "__array__", lambda: np.asarray(obj))
    raise OperandTypeError(
        f"Expected a NumPy array, a scipy.sparse array, a Tensor or a number, found {kind_of(obj)}",
        hint="convert it with np.asarray",
    )


def coordinate_list(obj: Any) -> TensorData | None:
    """Read a coordinate list that scipy.sparse cannot hold as a matrix: of another order than 2, or
    whose fill value is not 0.

    It is found in `coords`, of shape (order, nnz), `data`, `shape` and `fill_value` of the object,
    or of what its method tocoo() gives; None for all else. Raises OperandTypeError, StructureError.
    """
    if not hasattr(obj, "fill_value") or not (hasattr(obj, "coords") or hasattr(obj, "tocoo")):
        return None
    found = obj if hasattr(obj, "coords") else _asked(obj, "tocoo", obj.tocoo)
    coords, values, shape, fill_value = _asked(
        obj, "coords", lambda: (found.coords, found.data, tuple(found.shape), found.fill_value)
    )
    if not isinstance(values, np.ndarray) or not shape:
        return None
    require_dtype(values.dtype, "values")
    fill = fill_of(fill_value, values.dtype)
    if len(shape) == 2 and not fill:
        return None
    return replace(from_coordinates(tuple(coords), values, shape), fill=fill)


def kind_of(obj: Any) -> str:
    """Return the type of an object with its module, as in torch.Tensor; of a built-in one its name.

    >>> kind_of("text")
    'str'
    """
    cls = type(obj)
    package = cls.__module__.partition(".")[0]
    return cls.__qualname__ if package == "builtins" else f"{package}.{cls.__qualname__}"


def _asked(obj: Any, protocol: str, ask: Callable[[], Any]) -> Any:
    """What a protocol gives. Raises OperandTypeError for whatever it raises."""
    try:
        return ask()
    except Exception as error:  # of another library, which may raise anything
        raise _refusal(obj, protocol, error) from error


def _refusal(obj: Any, protocol: str, error: Exception) -> OperandTypeError:
    return OperandTypeError(
        f"Expected an array from {protocol} of {kind_of(obj)}, found an error: {error}",
        hint="pass the array itself, in the memory of the processor and without gradients",
    )

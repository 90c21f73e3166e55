"""Conversion of a result to the object that the user expects."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.storage.tensor_data import TensorData, fetched
from taco_py.language.notation.half_types import is_half


def handed_out(data: TensorData, kind: str) -> Any:
    """Return the result as an array, a Tensor or scipy's `kind`; a 0-d array as a NumPy scalar.

    A sparse result of 16 bits is a Tensor, for SciPy's arrays have no elements of 16 bits.
    """
    data = fetched(data)
    if kind == "ndarray":
        values = data.values
        return values[()] if isinstance(values, np.ndarray) and not values.ndim else values
    if kind == "tensor" or is_half(data.values.dtype):
        from taco_py.data.tensors.tensor import Tensor

        return Tensor(data)
    from taco_py.data.interop.scipy_arrays import to_scipy

    return to_scipy(data, kind)

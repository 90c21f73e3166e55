"""Conversion of a result to the object that the user expects."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.storage.tensor_data import TensorData, fetched


def handed_out(data: TensorData, kind: str) -> Any:
    """Return the result as an array, a Tensor or scipy's `kind`; a 0-d array as a NumPy scalar."""
    data = fetched(data)
    if kind == "ndarray":
        values = data.values
        return values[()] if isinstance(values, np.ndarray) and not values.ndim else values
    if kind == "tensor":
        from taco_py.data.tensors.tensor import Tensor

        return Tensor(data)
    from taco_py.data.interop.scipy_arrays import to_scipy

    return to_scipy(data, kind)

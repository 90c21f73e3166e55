"""The 16-bit types float16 and `ml_dtypes.bfloat16`: stored so, and computed in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

DType = np.dtype[Any]


def is_half(dtype: DType) -> bool:
    """Tell whether it is one of the 16-bit types float16 and `ml_dtypes.bfloat16`."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def computed_dtype(dtype: DType) -> DType:
    """Return the dtype that numbers of `dtype` are computed in: float32 for those of 16 bits."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


def number_kind(dtype: DType) -> str:
    """Return NumPy's letter for the kind of number; its own for bfloat16, "V", says nothing."""
    return "f" if is_half(dtype) else dtype.kind

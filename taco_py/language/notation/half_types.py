"""The 16-bit types float16 and `ml_dtypes.bfloat16`: stored in 16 bits, computed in float32."""

from __future__ import annotations

from typing import Any

import numpy as np

DType = np.dtype[Any]


def is_half(dtype: DType) -> bool:
    """Tell whether a dtype is float16 or `ml_dtypes.bfloat16`."""
    return dtype.itemsize == 2 and dtype.kind in "fV"


def computed_dtype(dtype: DType) -> DType:
    """Return the dtype of computations with numbers of `dtype`: float32 for 16-bit types."""
    return np.dtype(np.float32) if is_half(dtype) else dtype


def number_kind(dtype: DType) -> str:
    """Return NumPy's letter for the kind of number; "f" also for bfloat16, whose letter is "V"."""
    return "f" if is_half(dtype) else dtype.kind


def half_named(name: str) -> DType:
    """Return the 16-bit type of a name."""
    if name == "float16":
        return np.dtype(np.float16)
    from ml_dtypes import bfloat16

    dtype: DType = np.dtype(bfloat16)
    return dtype

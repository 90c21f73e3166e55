"""Conversion of arrays to another type; 16-bit types by a compiled kernel where that pays off."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from codegen.runtime.half_kernels import halves_source
from codegen.toolchain.errors import NoCompilerError
from taco_py.data.kernels import KERNELS
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.language.fill import converted

SHORT = 4096
"""The number of elements up to which NumPy takes less than 40 µs."""
THREAD_ELEMENTS = 1 << 18
"""The least number of elements for each further thread."""
FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)


def in_type(array: Array, dtype: Any) -> Array:
    """Convert an array to a type, rounding to nearest; itself where it has the type."""
    target = np.dtype(dtype)
    source_type = array.dtype
    if source_type == target:
        return array
    if array.size <= SHORT or (source_type, target) not in ((FLOAT32, FLOAT16), (FLOAT16, FLOAT32)):
        with np.errstate(
            over="ignore"
        ):  # beyond the largest half is infinity, as in other arithmetic
            return array.astype(target)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return in_type(array.T, target).T
    try:
        kernel = KERNELS.get_or_build("convert float16 and float32", halves_source).kernel
    except NoCompilerError:
        return array.astype(target)
    source = np.ascontiguousarray(array)
    result: Array = KERNELS.pool.empty(source.shape, target)
    threads = max(1, min(KERNELS.cores, source.size // THREAD_ELEMENTS))
    kernel.functions[f"to_{target.name}"](source, result, source.size, threads)
    return result


def values_in_type(data: TensorData, dtype: Any) -> TensorData:
    """Convert a tensor's values and its fill value; the pattern is shared."""
    values = in_type(data.values, dtype)
    return replace(data, values=values, fill=converted(data.fill, data.dtype, values.dtype))

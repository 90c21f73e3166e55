"""Arrays in another type of elements; those of 16 bits by a compiled kernel where that pays."""

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
"""Elements up to which NumPy takes less than 40 µs."""
THREAD_ELEMENTS = 1 << 18
"""The least elements for another thread."""
FLOAT16, FLOAT32 = np.dtype(np.float16), np.dtype(np.float32)


def in_type(array: Array, dtype: Any) -> Array:
    """Convert the elements of an array, itself where they are of the type; rounded to nearest."""
    wanted = np.dtype(dtype)
    own = array.dtype
    if own == wanted:
        return array
    if array.size <= SHORT or (own, wanted) not in ((FLOAT32, FLOAT16), (FLOAT16, FLOAT32)):
        with np.errstate(
            over="ignore"
        ):  # past the largest half is infinity, as in other arithmetic
            return array.astype(wanted)
    if array.flags.f_contiguous and not array.flags.c_contiguous:
        return in_type(array.T, wanted).T
    try:
        kernel = KERNELS.get_or_build("convert float16 and float32", halves_source).kernel
    except NoCompilerError:
        return array.astype(wanted)
    source = np.ascontiguousarray(array)
    made: Array = KERNELS.pool.empty(source.shape, wanted)
    threads = max(1, min(KERNELS.cores, source.size // THREAD_ELEMENTS))
    kernel.functions[f"to_{wanted.name}"](source, made, source.size, threads)
    return made


def values_in_type(data: TensorData, dtype: Any) -> TensorData:
    """Convert a tensor's values and its fill value, its pattern kept."""
    values = in_type(data.values, dtype)
    return replace(data, values=values, fill=converted(data.fill, data.dtype, values.dtype))

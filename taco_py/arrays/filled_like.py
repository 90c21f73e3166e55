"""Tensors of one number, of the shape and type of another: NumPy's zeros_like, full_like …

They store nothing: the number is their fill value. Libraries such as dask make empty ones to find
out the class of a computation's results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from taco_py.data.tensors.tensor import Tensor


def full_like(
    a: Any, fill_value: Any, dtype: Any = None, order: Any = "K", subok: bool = True,
    shape: Any = None, *, device: Any = None,
) -> Tensor:  # fmt: skip
    """Make a Tensor of one number; `order`, `subok` and `device` are ignored."""
    element_type = np.dtype(a.dtype if dtype is None else dtype)
    new_shape = a.shape if shape is None else shape
    sizes = tuple(new_shape) if isinstance(new_shape, tuple | list) else (int(new_shape),)
    number = np.asarray(fill_value).astype(element_type)
    if not sizes:
        return Tensor.from_numpy(number)
    none = tuple(np.zeros(0, np.int64) for _ in sizes)
    return Tensor.from_coo(none, np.zeros(0, element_type), sizes, fill_value=number.item())


def _of(number: int) -> Callable[..., Tensor]:
    def like(
        a: Any, dtype: Any = None, order: Any = "K", subok: bool = True, shape: Any = None,
        *, device: Any = None,
    ) -> Tensor:  # fmt: skip
        return full_like(a, number, dtype, order, subok, shape)

    return like


LIKE: Mapping[str, Callable[..., Tensor]] = MappingProxyType(
    {"zeros_like": _of(0), "empty_like": _of(0), "ones_like": _of(1), "full_like": full_like}
)

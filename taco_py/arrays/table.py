"""The table of what Tensors do as arrays: a function for each name (`values/behaviour.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.numpy_functions import ufunc

OPERATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "elementwise": elementwise,
    "ufunc": ufunc,
})  # fmt: skip

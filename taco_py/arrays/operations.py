"""The table of what Tensors do as arrays: a function for each name (`values/behaviour.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from taco_py.arrays.element_functions import (
    clip,
    conj,
    imag,
    matrix_transpose,
    nonzero,
    real,
    rounded,
)
from taco_py.arrays.elements_at import subscript
from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.matrix_products import dot, matmul
from taco_py.arrays.namespace import namespace
from taco_py.arrays.numpy_functions import array_function, ufunc
from taco_py.arrays.reductions import place_of_extremum, reduced, std, var
from taco_py.arrays.shapes import permute, reshape, squeeze
from taco_py.values.remapped_tensor import in_format

OPERATIONS: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "array_function": array_function, "clip": clip, "conj": conj, "dot": dot,
    "elementwise": elementwise, "imag": imag, "in_remapped_format": in_format, "matmul": matmul,
    "matrix_transpose": matrix_transpose, "namespace": namespace, "nonzero": nonzero,
    "permute": permute, "place_of_extremum": place_of_extremum, "real": real, "reduced": reduced,
    "reshape": reshape, "round": rounded, "squeeze": squeeze, "std": std, "subscript": subscript,
    "ufunc": ufunc, "var": var,
})  # fmt: skip
"""What `BEHAVIOUR.find` finds."""

"""Types and values of all of NumPy's functions that Tensors have, of every type of elements.

The functions are those of the project's tables: a new one is swept with them. What differs from
NumPy on purpose stands in `DIFFERENT`, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.arrays.filled_like import LIKE
from taco_py.arrays.numpy_functions import FUNCTIONS
from taco_py.arrays.spelling import INFIX, PREFIX, arguments
from taco_py.notation.functions.function_table import ALIASES, COMPOSED
from taco_py.notation.functions.function_table import FUNCTIONS as OPERATORS
from tests.arrays.operands import elements

DTYPES = (
    "bool", "int8", "uint8", "int32", "uint64", "float16", "float32", "float64", "complex64",
    "complex128",
)  # fmt: skip
UFUNCS = sorted(
    name
    for name in {*INFIX, *PREFIX, *ALIASES, *OPERATORS, *COMPOSED}
    if isinstance(getattr(np, name, None), np.ufunc)
)
CALLS: dict[str, Callable[..., Any]] = {
    "clip": lambda x: np.clip(x, x.dtype.type(0), x.dtype.type(1)),
    "where": lambda x: np.where(x, x, x.dtype.type(1)),
    "dot": lambda x: np.dot(x, x.T),
    "tensordot": lambda x: np.tensordot(x, x, ([0, 1], [0, 1])),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "norm": lambda x: np.linalg.norm(x),
    "concatenate": lambda x: np.concatenate([x, x]),
    "concat": lambda x: np.concat([x, x], 1),
    "stack": lambda x: np.stack([x, x]),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[:1])[1],
    "broadcast_to": lambda x: np.broadcast_to(x, (2, *x.shape)),
    "reshape": lambda x: np.reshape(x, (3, -1)),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "swapaxes": lambda x: np.swapaxes(x, 0, 1),
    "expand_dims": lambda x: np.expand_dims(x, 1),
    "tile": lambda x: np.tile(x, 2),
    "roll": lambda x: np.roll(x, 1),
    "repeat": lambda x: np.repeat(x, 2),
    "take": lambda x: np.take(x, [1, 0], 0),
    "take_along_axis": lambda x: np.take_along_axis(x, np.array([[1, 0]]), 1),
    "searchsorted": lambda x: np.searchsorted(np.array([0, 1, 2], x.dtype), x),
    "array_equal": lambda x: np.array_equal(x, x),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=0, include_initial=True),
    "cumulative_prod": lambda x: np.cumulative_prod(x, axis=0),
    "unstack": lambda x: np.unstack(x)[0],
    "nonzero": lambda x: np.stack(np.nonzero(x)),
    "save": lambda x: None,
}
"""How functions are called that take more than an array."""

TWO_BYTES = "NumPy computes functions of one byte in 16 bits, kernels in 32"
UNORDERED = "complex numbers are compared in no text"
DIFFERENT: dict[tuple[str, str], str] = {}


def operand(dtype: str) -> Any:
    """Zeros, ones and other numbers that every function takes; negative ones where there are."""
    x = np.array([[0, 1, 2, 0], [3, 0, 1, 0], [0, 0, 0, 5]])
    x = np.where(x == 3, -2, x) if dtype[0] in "ifc" else x
    return (x * (1 + 0.5j) if dtype[0] == "c" else x).astype(dtype)


def compared(call: Callable[[Any], Any], x: Any, form: str) -> str:
    """Say how a function of a Tensor differs from NumPy's of an array; "" where it does not."""
    with np.errstate(all="ignore"):
        try:
            wanted = np.asarray(call(x))
        except (TypeError, ValueError) as error:
            wanted = error
        try:
            found = call(tp.tensor(x, format=form))
        except tp.TacoError as error:
            return "" if isinstance(wanted, Exception) else f"refused: {error}"
    if isinstance(wanted, Exception):
        return f"NumPy refuses: {wanted}"
    array = np.asarray(elements(found))
    if array.dtype != wanted.dtype:
        return f"type {array.dtype}, NumPy's {wanted.dtype}"
    near = 4e-3 if array.dtype == np.float16 else 2e-6
    same = np.allclose(array, wanted, rtol=near, atol=near, equal_nan=True)
    return "" if array.shape == wanted.shape and same else f"{array}, NumPy's {wanted}"

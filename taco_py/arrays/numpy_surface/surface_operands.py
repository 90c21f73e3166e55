"""Operands of composed functions: arrays of one kind, whatever stands beside the first one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from taco_py.data.tensors.tensor import Tensor, as_data


def operands(*objects: Any, arguments: Sequence[Any] = ()) -> list[Any]:
    """Return objects as operands, read by a traced array among them if there is one.

    A traced array has `__taco_operand__`, which notes constants; beside Tensors, arrays and numbers
    stay as they are.

    arguments  other ones of the call, which may be traced arrays too
    """
    traced = (obj for obj in (*objects, *arguments) if is_traced(obj))
    read = next((obj.__taco_operand__ for obj in traced), _read)
    return [read(obj) for obj in objects]


def is_traced(obj: Any) -> bool:
    """Tell whether an object stands for an array while a function is traced."""
    return hasattr(type(obj), "__taco_operand__")


def _read(obj: Any) -> Any:
    if isinstance(obj, list | tuple):
        return np.asarray(obj)
    if isinstance(obj, Tensor | np.ndarray | np.generic | bool | int | float | complex):
        return obj
    return Tensor(as_data(obj))

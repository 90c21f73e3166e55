"""`from_dlpack`: dense tensors of other libraries by the DLPack protocol."""

from __future__ import annotations

from typing import Any

import numpy as np

from taco_py.data.interop.foreign import kind_of
from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandTypeError


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Make a dense Tensor around the memory of an object that has `__dlpack__`.

    >>> x = np.ones((2, 3))
    >>> T = tp.from_dlpack(x)
    >>> T.shape, np.shares_memory(T.to_numpy(), x)
    ((2, 3), True)

    x       an array of NumPy, torch, JAX … in the memory of the processor
    device  "cpu" or None, the only place that a Tensor is at
    copy    True for memory of its own, False for an error where x cannot be shared; None, the
            default, shares it where it can

    Raises OperandTypeError for what has no such memory.
    """
    if device not in (None, "cpu"):
        raise OperandTypeError(
            f"Expected the device 'cpu' or None, found {device!r}",
            hint="tp.device(x) takes what is in the memory of a GPU",
        )
    if not hasattr(x, "__dlpack__"):
        raise OperandTypeError(
            f"Expected an object with __dlpack__, found {kind_of(x)}",
            hint="tp.tensor(x) takes other objects too",
        )
    try:
        array = np.from_dlpack(x, copy=copy)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise OperandTypeError(
            f"Expected memory of {kind_of(x)} from __dlpack__, found an error: {error}",
            hint="pass the array itself, in the memory of the processor and without gradients",
        ) from error
    return Tensor(from_numpy(array))

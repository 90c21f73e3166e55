"""NumPy's functions of Tensors: those of elements through `__array_ufunc__`.

    np.sin(T), np.add(x, T), x + T   →   elementwise("sin", T), elementwise("add", x, T)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from taco_py.arrays.elementwise import elementwise
from taco_py.arrays.spelling import arguments, is_spelled
from taco_py.diagnostics.errors import OperandTypeError


def ufunc(function: np.ufunc, method: str, inputs: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Compute one of NumPy's functions of elements of Tensors and arrays.

    Raises OperandTypeError where index notation has no such function, or for another option than
    dtype=.
    """
    name = function.__name__
    left = {key: each for key, each in options.items() if each is not None and key != "dtype"}
    if method != "__call__" or left:
        _refuse(f"np.{name}{'' if method == '__call__' else '.' + method}", left)
    if not is_spelled(name) or arguments(name) != len(inputs):
        _refuse(f"np.{name}", left)
    return elementwise(name, *inputs, dtype=options.get("dtype"))


def _refuse(what: str, options: Mapping[str, Any]) -> NoReturn:
    """Raise OperandTypeError for what Tensors do not have."""
    given = f" with {'=, '.join(options)}=" if options else ""
    raise OperandTypeError(
        f"Expected an operation that Tensors have, found {what}{given}",
        hint="apply it to .to_numpy(), or to the stored values alone: c, v = T.to_coo(); "
        "tp.Tensor.from_coo(c, f(v), T.shape, axis=1)",
    )

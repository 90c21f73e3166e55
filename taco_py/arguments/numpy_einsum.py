"""einsum of dense operands whose type no kernel computes in: it is left to NumPy's own.

einsum("i,i->", [Fraction(1, 2)], [2])    elements of type object    →   numpy.einsum
einsum("ij,j->i", A, x)                   A sparse, of longdouble    →   an error, as before
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.option_checks import check_casting
from taco_py.data.storage.borrow import is_compiled
from taco_py.language.diagnostics.errors import OperandError, OperandTypeError
from taco_py.language.notation.einsum import parse_einsum, split_operands

OF_KERNELS = ("format", "schedule", "static")
"""The options that ask for a kernel."""
DENSE = (np.ndarray, np.generic, list, tuple, int, float, complex)


@dataclass(frozen=True, slots=True)
class NumpyCall:
    """An einsum that NumPy computes.

    arguments  its positional arguments
    reason     which type asks for it, and whose
    """

    arguments: tuple[Any, ...]
    reason: str

    def run(self, keywords: Mapping[str, Any]) -> Any:
        """Return the result of `numpy.einsum`; exceptions in the elements' arithmetic pass through.

        keywords  the arguments of the call by parameter

        Raises OperandError for another `order`, OperandTypeError where NumPy refuses the types.
        """
        order, optimize = keywords["order"], keywords["optimize"]
        if not isinstance(order, str) or order.upper() not in ("C", "F", "A", "K"):
            raise OperandError(
                f"Expected order to be one of C, F, A, K, found {order!r}", hint='leave it at "K"'
            )
        options: dict[str, Any] = {"dtype": keywords["dtype"], "order": order}
        options["casting"] = check_casting(keywords["casting"])
        options["optimize"] = False if optimize is None else optimize
        return np.einsum(*self.arguments, out=keywords["out"], **options)

    @property
    def explanation(self) -> str:
        """Return the text of explain()."""
        return f"runs      numpy.einsum, 0 kernels: {self.reason}"


def left_to_numpy(operands: Sequence[Any], keywords: Mapping[str, Any]) -> NumpyCall | None:
    """Find out whether NumPy computes an einsum: dense, of objects or of long doubles.

    keywords  the arguments of the call by parameter

    Raises NotationError for subscripts that are none, OperandTypeError where such options are used.
    """
    if not operands:
        return None
    subscripts, tensors = split_operands(operands)
    types = [(f"operand {place} is", _dtype(tensor)) for place, tensor in enumerate(tensors)]
    if not all(isinstance(tensor, DENSE) for tensor in tensors):
        return None
    candidates = [("dtype= asks for", _as_dtype(keywords["dtype"])), *types]
    present = [(what, dtype) for what, dtype in candidates if dtype is not None]
    reason = next(((what, dtype) for what, dtype in present if _is_numpys(dtype)), None)
    if reason is None:
        return None
    parse_einsum(subscripts, [np.asarray(tensor).ndim for tensor in tensors])
    what, dtype = reason
    used = [name for name in OF_KERNELS if keywords[name]]
    if used:
        raise OperandTypeError(
            f"Expected types that kernels compute in beside {used[0]}=, found that {what} {dtype}",
            hint=f"leave {used[0]}= out, and NumPy computes it; or convert to float64",
        )
    return NumpyCall(tuple(operands), f"{what} {dtype}, which no kernel computes in")


def _is_numpys(dtype: np.dtype[Any]) -> bool:
    """Tell whether NumPy's einsum takes a type that kernels do not: objects, long doubles."""
    return (dtype.kind == "O" or dtype.char in "gG") and not is_compiled(dtype)


def _dtype(operand: Any) -> np.dtype[Any] | None:
    """Return the type of an array or of a list; None of what says it by itself, or of none."""
    if isinstance(operand, np.ma.MaskedArray):
        return None
    if isinstance(operand, np.ndarray | np.generic):
        return operand.dtype
    if isinstance(operand, list | tuple):
        try:
            return np.asarray(operand).dtype
        except (TypeError, ValueError):
            return None  # rows of unequal length, say, which are refused in words later
    return None


def _as_dtype(dtype: Any) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError, SyntaxError):
        return None  # which `as_dtype` refuses
    return result

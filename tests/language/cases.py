"""What the grid tries: texts, formats, types, data, and NumPy's own functions to compare with.

`NUMPY` names NumPy's function by hand for each name that a text may call: the oracle evaluates by
the compiler's table of operators, so a wrong entry there shows here alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
)  # fmt: skip
FORMATS = ("dense", "CSR", "CSC", "COO", "ss", "sss")
"""Formats of operands: `ss` is DCSR, `sss` is CSF of three modes."""
DATA = ("numbers", "special", "empty", "no rows", "no columns")


def _erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[np.float64])(x).astype(np.asarray(x).dtype)


NUMPY: dict[str, Callable[..., Any]] = {
    "abs": np.abs, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "round": np.round,
    "trunc": np.trunc, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
    "conj": np.conjugate, "real": np.real, "imag": np.imag, "angle": np.angle, "sqrt": np.sqrt,
    "cbrt": np.cbrt, "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p,
    "log2": np.log2, "log10": np.log10, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "exp2": np.exp2, "erf": _erf, "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "hypot": np.hypot, "atan2": np.arctan2, "copysign": np.copysign, "fmin": np.fmin,
    "fmax": np.fmax, "min": np.minimum, "max": np.maximum, "logical_and": np.logical_and,
    "logical_or": np.logical_or, "logical_xor": np.logical_xor, "logical_not": np.logical_not,
    "logaddexp": np.logaddexp, "signbit": np.signbit, "where": np.where, "pow": np.power,
    "relu": lambda x: np.maximum(x, 0),
    "square": lambda x: x * x, "reciprocal": np.reciprocal,
    "clip": lambda x, least, most: np.minimum(np.maximum(x, least), most),
}  # fmt: skip
"""NumPy's function for each function of texts; `stored` is none of values."""

FLOATING = frozenset(
    [
        "angle",
        "sqrt",
        "cbrt",
        "exp",
        "expm1",
        "log",
        "log1p",
        "log2",
        "log10",
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "exp2",
        "erf",
        "sigmoid",
        "hypot",
        "logaddexp",
        "atan2",
        "copysign",
    ]
)
"""Functions that NumPy computes in float16 for integers of a byte, and texts in float32."""

INFIX: dict[str, Callable[..., Any]] = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.true_divide,
    "//": np.floor_divide, "%": np.remainder, "**": np.power, "<": np.less, "<=": np.less_equal,
    ">": np.greater, ">=": np.greater_equal, "==": np.equal, "!=": np.not_equal,
    "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift,
    ">>": np.right_shift, "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip

PREFIX: dict[str, Callable[..., Any]] = {
    "-": np.negative, "~": np.invert, "not ": np.logical_not, "+": lambda x: x,
}  # fmt: skip

REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max, "any": np.any, "all": np.all,
    "count": np.count_nonzero,
}  # fmt: skip

UPDATES: dict[str, tuple[np.ufunc, Callable[..., Any]]] = {
    "+=": (np.add, np.sum), "*=": (np.multiply, np.prod), "min=": (np.minimum, np.min),
    "max=": (np.maximum, np.max), "|=": (np.bitwise_or, np.bitwise_or.reduce),
    "&=": (np.bitwise_and, np.bitwise_and.reduce), "^=": (np.bitwise_xor, np.bitwise_xor.reduce),
}  # fmt: skip

ARITY = {
    "hypot": 2, "logaddexp": 2, "atan2": 2, "copysign": 2, "fmin": 2, "fmax": 2, "min": 2, "max": 2,
    "logical_and": 2, "logical_or": 2, "logical_xor": 2, "pow": 2, "where": 3, "clip": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Text:
    """A text, and how NumPy computes it.

    about    what it tries: the name of a function, `a + b`, …
    order    modes of the operands
    names    the operands, all of one order; `y` is what an update begins from
    numpy    from the operands as dense arrays to the result, None where NumPy has none
    exponent the operand whose integers may not be negative, "" for none
    pointwise  whether each element of the result is made of one of each operand
    """

    about: str
    text: str
    order: int
    names: tuple[str, ...]
    numpy: Callable[..., Any] | None
    exponent: str = ""
    pointwise: bool = True


def texts(order: int) -> Iterator[Text]:
    """Every function, operator, reduction and update, over operands of 2 or 3 modes."""
    at = "[i,j]" if order == 2 else "[i,j,k]"
    yield from _functions(order, at)
    yield from _operators(order, at)
    yield from _reductions(order, at)
    yield from _updates(order, at)


def _functions(order: int, at: str) -> Iterator[Text]:
    for name, function in NUMPY.items():
        names = ("A", "B", "C")[: ARITY.get(name, 1)]
        call = f"{name}({', '.join(f'{each}{at}' for each in names)})"
        exponent = "B" if name == "pow" else ""
        yield Text(name, f"R{at} = {call}", order, names, function, exponent)
    yield Text("stored", f"R{at} = stored(A{at})", order, ("A",), None)


def _operators(order: int, at: str) -> Iterator[Text]:
    for symbol, function in INFIX.items():
        exponent = "B" if symbol == "**" else ""
        text = f"R{at} = A{at} {symbol} B{at}"
        yield Text(f"a {symbol} b", text, order, ("A", "B"), function, exponent)
    for symbol, function in PREFIX.items():
        yield Text(f"{symbol}a", f"R{at} = {symbol}A{at}", order, ("A",), function)


def _reductions(order: int, at: str) -> Iterator[Text]:
    left, index, axis = ("[i]", "j", 1) if order == 2 else ("[i,j]", "k", 2)
    for name, function in REDUCE.items():
        for text, axes in (
            (f"R{left} = {name}({index}, A{at})", axis),
            (f"R[j] = {name}(A{at})", 0 if order == 2 else (0, 2)),
            (f"R = {name}(A{at})", None),
        ):
            yield Text(name, text, order, ("A",), _along(function, axes), pointwise=False)


def _updates(order: int, at: str) -> Iterator[Text]:
    for symbol, (update, function) in UPDATES.items():
        every = tuple(range(1, order))
        text = f"y[i] {symbol} A{at}"
        numpy = _updated(update, _along(function, every))
        yield Text(symbol, text, order, ("y", "A"), numpy, pointwise=False)


def _along(function: Callable[..., Any], axes: Any) -> Callable[..., Any]:
    def reduced(array: Array) -> Any:
        if isinstance(function, np.ufunc) or getattr(function, "__name__", "") == "reduce":
            return function(array, axis=axes)
        return function(array, axis=axes)

    return reduced


def _updated(update: np.ufunc, function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y, array: update(y, function(array)).astype(y.dtype)

"""The value of the elements that a tensor does not store, as text in a normal form.

    np.float64(0)     ->  ""        np.float64("-inf")  ->  "-inf"     np.int8(3)  ->  "3"
    np.float64(-0.0)  ->  "-0.0"    any NaN             ->  "nan"      np.True_    ->  "True"

The text is read in the dtype of the values, which is stored separately. As numbers two NaN would
differ, and -0.0 would equal 0.0, though 1 / -0.0 is not 1 / 0.0.
"""

from __future__ import annotations

from math import isfinite, trunc
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from taco_py.language.diagnostics.errors import NumberOverflowError, OperandTypeError

Fill = str
Array = NDArray[Any]
DType = np.dtype[Any]

WIDER = ("int64", "uint64", "float64", "complex128")
"""The dtypes that are suggested to a user whose fill value needs another one."""


def fill_of(value: Any, dtype: DType) -> Fill:
    """Return the text of a number in `dtype`, rounded to a float's digits.

    >>> fill_of(-np.inf, np.dtype(np.float32)), fill_of(0, np.dtype(np.int8))
    ('-inf', '')

    Raises OperandTypeError for anything but a number, NumberOverflowError for a number that `dtype`
    cannot hold.
    """
    number = _number(value)
    converted_number = _as_dtype(number, dtype)
    if converted_number is not None:
        return as_text(converted_number)
    wider = next((name for name in WIDER if _fits(number, name, dtype)), "")
    raise NumberOverflowError(
        f"Expected a fill value that {dtype} holds, found {number!r:.40}",
        hint=f"convert the values to {wider} first, with .astype({wider!r})"
        if wider
        else "no dtype of tensors holds it",
    )


def _fits(number: complex, name: str, dtype: DType) -> bool:
    """Tell whether a wider dtype holds the number and, up to rounding, values of `dtype`."""
    wider = np.dtype(name)
    return np.can_cast(dtype, wider, "same_kind") and _as_dtype(number, wider) is not None


def as_text(number: np.generic) -> Fill:
    """Return the text of a NumPy number."""
    plain = number.item()
    text = repr(plain)
    return "" if text in ("0", "0.0", "0j", "False") else text


def as_number(fill: Fill, dtype: DType) -> Any:
    """Return the number of a text in this dtype."""
    match dtype.kind:
        case "b":
            return np.bool_(fill == "True")
        case "i" | "u":
            return dtype.type(int(fill or 0))
        case "c":
            return dtype.type(complex(fill or 0))
        case _:
            return dtype.type(float(fill or 0))


def converted(fill: Fill, source: DType, dtype: DType) -> Fill:
    """Convert the text of a number to another dtype, as NumPy converts values.

    Raises NumberOverflowError where an integer type cannot hold the number, as infinity.
    """
    if not fill or source == dtype:
        return fill
    number = as_number(fill, source)
    if dtype.kind in "iu" and _kind(source) in "fc":
        limits, real = np.iinfo(dtype), float(number.real)
        if not isfinite(real) or not limits.min <= trunc(real) <= limits.max:
            raise NumberOverflowError(
                f"Expected a fill value that can be converted to {dtype}, found {number.item()!r}",
                hint="choose another one first: tp.tensor(T, fill_value=…)",
            )
    with np.errstate(all="ignore"), catch_warnings():
        simplefilter("ignore", np.exceptions.ComplexWarning)
        return as_text(number.astype(dtype))


def differs(values: Array, fill: Fill) -> NDArray[np.bool_]:
    """Tell which values differ from the fill value; all NaN are equal, and for a fill value of 0 so
    is -0.0."""
    if values.dtype.kind == "c" and fill:
        number = as_number(fill, values.dtype)
        return _differ(values.real, number.real) | _differ(values.imag, number.imag)
    return _differ(values, as_number(fill, values.dtype), signed=bool(fill))


def _differ(values: Array, number: Any, signed: bool = True) -> NDArray[np.bool_]:
    if number != number:
        return np.asarray(values == values)
    different = np.asarray(values != number)
    if number == 0 and signed and _kind(values.dtype) == "f":
        different |= np.signbit(values) != np.signbit(number)
    return different


def _kind(dtype: DType) -> str:
    """Return NumPy's letter for the kind of number; "f" also for bfloat16, whose letter is "V"."""
    return "f" if dtype.kind == "V" and dtype.itemsize == 2 else dtype.kind


def _number(value: Any) -> Any:
    """Return a Python number. Raises OperandTypeError for anything else."""
    array = np.asarray(value)
    if isinstance(value, int) or (array.ndim == 0 and _kind(array.dtype) in "biufc"):
        return value if isinstance(value, int) else array.item()
    raise OperandTypeError(
        f"Expected a number as fill_value, found {value!r}"
        if array.ndim == 0
        else f"Expected one number as fill_value, found an array of shape {array.shape}",
        hint="as in fill_value=-np.inf",
    )


def _as_dtype(number: complex, dtype: DType) -> np.generic | None:
    """Convert a Python number to a dtype, None where the dtype cannot hold it."""
    if isinstance(number, complex) and dtype.kind != "c":
        if number.imag != 0:
            return None
        number = number.real
    try:
        with np.errstate(all="ignore"):
            converted_number: Any = (
                dtype.type(number) if dtype.kind in "iu" else np.array(number).astype(dtype)
            )
    except (OverflowError, ValueError):
        return None
    if dtype.kind in "biu":
        return converted_number[()] if converted_number.item() == number else None
    parts = (converted_number.real, number.real), (converted_number.imag, number.imag)
    return converted_number[()] if all(np.isfinite(a) == isfinite(b) for a, b in parts) else None

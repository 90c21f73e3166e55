"""Arithmetic of element types: in which order, and in which type, numbers may be computed.

The planner looks nowhere else at the kind of a dtype (NumPy's letters: b bool, i and u integers, f
real, c complex). Each function is about arithmetic, which `tests/legal` compares with NumPy. The
tables are complete: `those(…)` are all types, and `pairs(…)` all pairs of a type and one that holds
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Type = np.dtype[Any] | str
"""A dtype, or NumPy's name of one."""


def _kind(type: Type) -> str:
    return np.dtype(type).kind


# ---------------------------------------------------------------- one type


def computes_exactly(type: Type) -> bool:
    """Tell whether sums and products are the same, bit by bit, in any order.

    Those of integers are, modulo 2^n, and those of booleans.

    >>> those(computes_exactly)
    'bool int8 int16 int32 int64 uint8 uint16 uint32 uint64'
    """
    return _kind(type) in "bui"


def rounds(type: Type) -> bool:
    """Tell whether sums are rounded, so that differences lose digits: (a + b) - b ≠ a.

    >>> those(rounds)
    'float32 float64 complex64 complex128'
    """
    return _kind(type) in "fc"


def has_special_values(type: Type) -> bool:
    """Tell whether a type has infinities and NaN, whose products with 0 are not 0.

    >>> those(has_special_values)
    'float32 float64 complex64 complex128'
    """
    return _kind(type) in "fc"


def divides(type: Type) -> bool:
    """Tell whether the quotient of two numbers has their type; that of integers is real.

    >>> those(divides)
    'float32 float64 complex64 complex128'
    """
    return _kind(type) in "fc"


def negates(type: Type) -> bool:
    """Tell whether numbers have a negative, with (-a) * b = -(a * b); booleans have none.

    >>> those(negates)
    'int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128'
    """
    return _kind(type) != "b"


def bounds_literals(type: Type) -> bool:
    """Tell whether an integer literal may be too large for a multiplication in the type.

    A boolean is no bound: beside an integer literal it is an int64.

    >>> those(bounds_literals)
    'int8 int16 int32 int64 uint8 uint16 uint32 uint64'
    """
    return _kind(type) in "ui"


def is_real(type: Type) -> bool:
    """Tell whether numbers are real floating-point numbers.

    >>> those(is_real)
    'float32 float64'
    """
    return _kind(type) == "f"


def is_complex(type: Type) -> bool:
    """Tell whether numbers have an imaginary part, so that a product takes four real products.

    >>> those(is_complex)
    'complex64 complex128'
    """
    return _kind(type) == "c"


def has_matrix_kernels(type: Type) -> bool:
    """Tell whether register tiles or a library's routine multiply matrices of the type.

    >>> those(has_matrix_kernels)
    'float32 float64 complex64 complex128'
    """
    return _kind(type) in "fc"


def has_tiles_on_gpu(type: Type) -> bool:
    """Tell whether threads of a GPU multiply matrices of the type in tiles.

    >>> those(has_tiles_on_gpu)
    'int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128'
    """
    return _kind(type) in "iufc"


# ---------------------------------------------------------------- a type and a wider one


def sum_wraps_alone(narrow: Type, wide: Type) -> bool:
    """Tell whether a sum in a narrow type wraps or saturates where the wide sum does not.

    uint8: 200 + 100 → 44, in int64 300        bool: True + True → True, in int64 2

    >>> pairs(sum_wraps_alone)
    bool: int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128
    int8: int16 int32 int64 float32 float64 complex64 complex128
    int16: int32 int64 float32 float64 complex64 complex128
    int32: int64 float64 complex128
    int64: float64 complex128
    uint8: int16 int32 int64 uint16 uint32 uint64 float32 float64 complex64 complex128
    uint16: int32 int64 uint32 uint64 float32 float64 complex64 complex128
    uint32: int64 uint64 float64 complex128
    uint64: float64 complex128
    """
    return narrow != wide and _kind(narrow) in "bui"


def product_wraps_alone(narrow: Type, wide: Type) -> bool:
    """Tell whether a product in a narrow type wraps where the wide product does not.

    uint8: 20 * 20 → 144, in int64 400; of booleans, it is the same in any type

    >>> pairs(product_wraps_alone)
    int8: int16 int32 int64 float32 float64 complex64 complex128
    int16: int32 int64 float32 float64 complex64 complex128
    int32: int64 float64 complex128
    int64: float64 complex128
    uint8: int16 int32 int64 uint16 uint32 uint64 float32 float64 complex64 complex128
    uint16: int32 int64 uint32 uint64 float32 float64 complex64 complex128
    uint32: int64 uint64 float64 complex128
    uint64: float64 complex128
    """
    return narrow != wide and _kind(narrow) in "ui"


def wraps_early(type: Type) -> bool:
    """Tell whether sums of a few typical numbers exceed the range of a type.

    >>> those(wraps_early)
    'int8 int16 int32 uint8 uint16 uint32'
    """
    return _kind(type) in "ui" and np.dtype(type).itemsize < 8


def sum_may_widen(narrow: Type, wide: Type) -> bool:
    """Tell whether a sum may be computed in a wider real type, differing by rounding alone.

    A sum of 64-bit integers does so up to 2^53, which narrower integers wrap long before.

    >>> pairs(lambda narrow, wide: is_real(wide) and sum_may_widen(narrow, wide))
    int64: float64
    uint64: float64
    float32: float32 float64
    float64: float64
    """
    long = np.dtype(narrow).itemsize == np.dtype(wide).itemsize == 8
    return is_real(narrow) or (long and _kind(narrow) in "iu")


def converts_on_reading(stored: Type, read: Type) -> bool:
    """Tell whether a kernel converts elements of one type to another as it reads them.

    Numbers are converted to real types alone, and complex numbers are not converted.

    >>> pairs(converts_on_reading)
    bool: float32 float64
    int8: float32 float64
    int16: float32 float64
    int32: float64
    int64: float64
    uint8: float32 float64
    uint16: float32 float64
    uint32: float64
    uint64: float64
    float32: float32 float64
    float64: float64
    """
    return is_real(read) and not is_complex(stored)

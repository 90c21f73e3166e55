"""Scalar types: the names NumPy and C give them, and the arithmetic facts the passes need."""

from __future__ import annotations

from typing import ClassVar

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One machine scalar: NumPy's `name` for it, its spelling in C99, its storage size in bits."""

    is_atom: ClassVar[bool] = True  # trees end here (codegen.tree)

    name: str
    c: str
    kind: str  # "bool", "int", "uint", "float", "complex" or "half"
    bits: int

    @property
    def itemsize(self) -> int:
        """Return the storage size in bytes."""
        return self.bits // 8

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    def __str__(self) -> str:
        return self.name


BOOL = ScalarType("bool", "bool", "bool", 8)
INT8 = ScalarType("int8", "int8_t", "int", 8)
INT16 = ScalarType("int16", "int16_t", "int", 16)
INT32 = ScalarType("int32", "int32_t", "int", 32)
INT64 = ScalarType("int64", "int64_t", "int", 64)
UINT8 = ScalarType("uint8", "uint8_t", "uint", 8)
UINT16 = ScalarType("uint16", "uint16_t", "uint", 16)
UINT32 = ScalarType("uint32", "uint32_t", "uint", 32)
UINT64 = ScalarType("uint64", "uint64_t", "uint", 64)
FLOAT32 = ScalarType("float32", "float", "float", 32)
FLOAT64 = ScalarType("float64", "double", "float", 64)
COMPLEX64 = ScalarType("complex64", "float complex", "complex", 64)
COMPLEX128 = ScalarType("complex128", "double complex", "complex", 128)

SCALARS: dict[str, ScalarType] = {
    t.name: t
    for t in (
        BOOL, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64,
        FLOAT32, FLOAT64, COMPLEX64, COMPLEX128,
    )
}  # fmt: skip


FLOAT16 = ScalarType("float16", "taco_float16", "half", 16)
BFLOAT16 = ScalarType("bfloat16", "taco_bfloat16", "half", 16)
STORED: dict[str, ScalarType] = {t.name: t for t in (FLOAT16, BFLOAT16)}
"""Types that arrays have and nothing is computed in: values are cast when they are read or written.

Both are 16 bits of an IEEE number: `float16` a half, `bfloat16` the upper half of a float32.
"""


def scalar(name: str) -> ScalarType:
    """Return the scalar type NumPy calls `name`; KeyError for one that C99 has no counterpart
    of."""
    return SCALARS[name] if name in SCALARS else STORED[name]


@dataclass(frozen=True, slots=True)
class VectorType(ScalarType):
    """A machine register of `lanes` values of one `element` type; arithmetic goes lane by lane.

    It is a ScalarType so that a variable may have it: to the passes a register is one value.
    """

    element: ScalarType
    lanes: int


def vector(element: ScalarType, lanes: int) -> VectorType:
    """Return the type of `lanes` values of `element` side by side.

    >>> vector(FLOAT64, 4).c
    'taco_float64x4'
    """
    name = f"{element.name}x{lanes}"
    return VectorType(name, f"taco_{name}", "vector", element.bits * lanes, element, lanes)

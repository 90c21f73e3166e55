"""Types of elements in the array API standard, and information about this implementation."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.data.tensors.tensor import Tensor
from taco_py.language.diagnostics.errors import OperandError

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
})  # fmt: skip
"""The standard's kinds of types, without those that combine several."""

SEVERAL: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a floating-point type, as Python's numbers; of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype(obj: Any) -> np.dtype[Any]:
    return obj.dtype if isinstance(obj, Tensor) else np.dtype(obj)


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating-point type, or of a Tensor's."""
    limits = np.finfo(_dtype(type))
    return FloatInfo(
        limits.bits,
        float(limits.eps),
        float(limits.max),
        float(limits.min),
        float(limits.smallest_normal),
        np.dtype(limits.dtype),
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer type, or of a Tensor's."""
    limits = np.iinfo(_dtype(type))
    return IntegerInfo(limits.bits, int(limits.max), int(limits.min), np.dtype(limits.dtype))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tell whether a type equals another, or is of a kind, or of one of several."""
    return bool(np.isdtype(np.dtype(dtype), kind))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Tell whether a type, or a Tensor's, can be promoted to another one."""
    return bool(np.can_cast(_dtype(from_), to))


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the type that Tensors, types and numbers are promoted to."""
    return np.result_type(
        *(
            operand.dtype if isinstance(operand, Tensor) else operand
            for operand in arrays_and_dtypes
        )
    )


class NamespaceInfo:
    """Capabilities of this namespace, and its types and devices."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return the optional behaviour that this namespace has."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device on which arrays are made."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return the devices of this namespace; `tp.device` moves tensors to others."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the types that arrays have by default."""
        return {
            "real floating": np.dtype(np.float64), "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64), "indexing": np.dtype(np.int64),
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the types by their names, of a kind or of several."""
        kinds = KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        names = [
            n
            for group in kinds
            for part in SEVERAL.get(group, (group,))
            for n in _types_of_kind(part)
        ]
        return {name: np.dtype(name) for name in names}


def _types_of_kind(kind: str) -> tuple[str, ...]:
    if kind not in KINDS:
        raise OperandError(
            f"Expected a kind of types, found {kind!r}", hint=", ".join((*KINDS, *SEVERAL))
        )
    return KINDS[kind]


def namespace_info() -> NamespaceInfo:
    """Return information about this namespace."""
    return NamespaceInfo()

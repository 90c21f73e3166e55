"""Types of elements in the array API standard, and what this implementation says of itself."""

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
"""The kinds of types that the standard has, without those that are several of them."""

SEVERAL: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "integral": ("signed integer", "unsigned integer"),
    "numeric": ("signed integer", "unsigned integer", "real floating", "complex floating"),
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a type in floating point, as numbers of Python; of the parts of a complex one."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """Limits of a type of whole numbers."""

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def _dtype(obj: Any) -> np.dtype[Any]:
    return obj.dtype if isinstance(obj, Tensor) else np.dtype(obj)


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a type in floating point, or of a Tensor's."""
    found = np.finfo(_dtype(type))
    return FloatInfo(
        found.bits,
        float(found.eps),
        float(found.max),
        float(found.min),
        float(found.smallest_normal),
        np.dtype(found.dtype),
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of a type of whole numbers, or of a Tensor's."""
    found = np.iinfo(_dtype(type))
    return IntegerInfo(found.bits, int(found.max), int(found.min), np.dtype(found.dtype))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Tell whether a type is another one, or of a kind, or of one of several."""
    return bool(np.isdtype(np.dtype(dtype), kind))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Tell whether a type, or a Tensor's, is promoted to another one."""
    return bool(np.can_cast(_dtype(from_), to))


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the type that Tensors, types and numbers are promoted to."""
    return np.result_type(
        *(each.dtype if isinstance(each, Tensor) else each for each in arrays_and_dtypes)
    )


class NamespaceInfo:
    """What this namespace can do, and its types and devices."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """Return what of the standard's optional behaviour there is."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Return the device that arrays are made on."""
        return "cpu"

    def devices(self) -> list[str]:
        """Return the devices of this namespace; `tp.device` moves tensors to others."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """Return the types that arrays have where none is given."""
        return {
            "real floating": np.dtype(np.float64), "complex floating": np.dtype(np.complex128),
            "integral": np.dtype(np.int64), "indexing": np.dtype(np.int64),
        }  # fmt: skip

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """Return the types by their names, of a kind or of several."""
        asked = KINDS if kind is None else kind if isinstance(kind, tuple) else (kind,)
        names = [n for each in asked for part in SEVERAL.get(each, (each,)) for n in _named(part)]
        return {name: np.dtype(name) for name in names}


def _named(kind: str) -> tuple[str, ...]:
    if kind not in KINDS:
        raise OperandError(
            f"Expected a kind of types, found {kind!r}", hint=", ".join((*KINDS, *SEVERAL))
        )
    return KINDS[kind]


def namespace_info() -> NamespaceInfo:
    """Return what this namespace says of itself."""
    return NamespaceInfo()

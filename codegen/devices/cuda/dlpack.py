"""Capsules of DLPack, which hand arrays from one library to another.

    capsule "dltensor"            a DLManagedTensor            (before version 1.0)
    capsule "dltensor_versioned"  a DLManagedTensorVersioned   (from it on, with flags)

Whoever takes the tensor renames the capsule "used_…" and calls the deleter when it is done with the
memory. The structures are those of dlpack.h 1.0.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from codegen.devices.device import DeviceError
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_array import CudaArray

_INT, _UINT, _FLOAT, _BFLOAT, _COMPLEX, _BOOL = 0, 1, 2, 4, 5, 6
_CODES = {"i": _INT, "u": _UINT, "f": _FLOAT, "c": _COMPLEX, "b": _BOOL}
_KINDS = {code: kind for kind, code in _CODES.items()}
_READ_ONLY = 1


class _Device(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("owner", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("owner", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


_STRUCTURES: tuple[tuple[bytes, type[Any]], ...] = (
    (b"dltensor_versioned", _Versioned),
    (b"dltensor", _Managed),
)
_USED = {b"dltensor_versioned": b"used_dltensor_versioned", b"dltensor": b"used_dltensor"}
"""The names outlive each capsule, as they have to."""

_API = ctypes.pythonapi
_NEW = ctypes.PYFUNCTYPE(
    ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
)(("PyCapsule_New", _API))  # fmt: skip
_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _API)
)
_IS_VALID = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _API)
)
_SET_NAME = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _API)
)
# A capsule that is being destroyed has no references: it must not become a Python object.
_BARE_IS_VALID = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _API)
)
_BARE_POINTER = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _API)
)
_KEEP = ctypes.PYFUNCTYPE(None, ctypes.py_object)(("Py_IncRef", _API))
_LET_GO = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(("Py_DecRef", _API))


class _Export:
    """What a tensor that was handed out needs as long as somebody has it."""

    def __init__(self, array: CudaArray) -> None:
        self.array = array
        count = len(array.shape)
        self.shape = (ctypes.c_int64 * max(count, 1))(*array.shape)
        steps = (stride // array.dtype.itemsize for stride in array.strides)
        self.strides = (ctypes.c_int64 * max(count, 1))(*steps)
        self.managed: Any = None


def _delete_versioned(address: int) -> None:
    _LET_GO(_Versioned.from_address(address).owner)


def _delete_managed(address: int) -> None:
    _LET_GO(_Managed.from_address(address).owner)


_DELETERS = {_Versioned: _Deleter(_delete_versioned), _Managed: _Deleter(_delete_managed)}


def _end_capsule(capsule: int) -> None:
    """Delete the tensor of a capsule that nobody has consumed."""
    for name, structure in _STRUCTURES:
        if _BARE_IS_VALID(capsule, name):
            _LET_GO(structure.from_address(_BARE_POINTER(capsule, name)).owner)


_END = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_end_capsule)
for _callback in (*_DELETERS.values(), _END, _delete_versioned, _delete_managed, _end_capsule):
    _KEEP(_callback)  # other libraries may call them after this module has been taken down


def make_capsule(
    array: CudaArray, address: int, device: tuple[int, int], versioned: bool
) -> object:
    """Return a capsule of the elements at `address`. Raises BufferError for what DLPack cannot
    say."""
    itemsize = array.dtype.itemsize
    if any(stride % itemsize for stride in array.strides):
        raise BufferError("Expected strides of whole elements")
    name, structure = _STRUCTURES[0 if versioned else 1]
    export = _Export(array)
    managed = structure()
    export.managed = managed
    if versioned:
        managed.major, managed.minor = 1, 0
        managed.flags = _READ_ONLY if array.buffer.read_only else 0
    managed.tensor = _Tensor(
        address,
        _Device(*device),
        len(array.shape),
        _type_of(array.dtype),
        export.shape,
        export.strides,
        0,
    )
    managed.owner = id(export)
    managed.deleter = ctypes.cast(_DELETERS[structure], ctypes.c_void_p).value
    _KEEP(export)
    return _NEW(ctypes.addressof(managed), name, ctypes.cast(_END, ctypes.c_void_p).value)


@dataclass(frozen=True, slots=True, eq=False)
class ForeignTensor:
    """A tensor that was taken out of a capsule; strides are in bytes, None for C order."""

    address: int
    device: tuple[int, int]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    strides: tuple[int, ...] | None
    read_only: bool
    owner: object


class _Owner:
    """Keeps a tensor of somebody else; its deleter is called when nothing refers to this."""

    def __init__(self, managed: Any) -> None:
        self._managed = managed

    def __del__(self) -> None:
        if self._managed.deleter:
            _Deleter(self._managed.deleter)(ctypes.addressof(self._managed))


def take_capsule(capsule: object) -> ForeignTensor:
    """Return the tensor of a capsule, which is used up. Raises DeviceError for one that was, or
    types that NumPy does not have."""
    for name, structure in _STRUCTURES:
        if _IS_VALID(capsule, name):
            managed = structure.from_address(_POINTER(capsule, name))
            _SET_NAME(capsule, _USED[name])
            return _foreign(managed, isinstance(managed, _Versioned))
    raise DeviceError(f"Expected a capsule of DLPack that nobody has taken, found {capsule!r}")


def _foreign(managed: Any, versioned: bool) -> ForeignTensor:
    owner = _Owner(managed)
    if versioned and managed.major != 1:
        raise DeviceError(
            f"Expected DLPack of version 1, found version {managed.major}.{managed.minor}"
        )
    tensor = managed.tensor
    dtype = _dtype_of(tensor.dtype)
    count = tensor.ndim
    strides = None
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(count))
    return ForeignTensor(
        (tensor.data or 0) + tensor.byte_offset,
        (tensor.device.kind, tensor.device.number),
        tuple(tensor.shape[i] for i in range(count)),
        dtype,
        strides,
        bool(versioned and managed.flags & _READ_ONLY),
        owner,
    )


def _type_of(dtype: np.dtype[Any]) -> _Type:
    if dtype.name == "bfloat16":
        return _Type(_BFLOAT, 16, 1)
    code = _CODES.get(dtype.kind)
    if code is None or not dtype.isnative:
        raise BufferError(f"Expected numbers that DLPack has, found {dtype}")
    return _Type(code, 8 * dtype.itemsize, 1)


def _dtype_of(kind: Any) -> np.dtype[Any]:
    if kind.lanes == 1:
        if kind.code == _BFLOAT and kind.bits == 16:
            return _bfloat16()
        if kind.code in _KINDS and kind.bits % 8 == 0:
            try:
                return np.dtype(f"{_KINDS[kind.code]}{kind.bits // 8}")
            except TypeError:
                pass
    raise DeviceError(
        f"Expected elements of a type that NumPy has, found DLPack's type {kind.code} of "
        f"{kind.bits} bits in {kind.lanes} lanes",
        hint="convert it to float32",
    )


def _bfloat16() -> np.dtype[Any]:
    try:
        from ml_dtypes import bfloat16
    except ImportError as error:
        raise DeviceError(
            "Expected the type bfloat16, found no ml_dtypes", hint="pip install 'tacopy[bfloat16]'"
        ) from error
    dtype: np.dtype[Any] = np.dtype(bfloat16)
    return dtype

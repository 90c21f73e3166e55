"""Tensors in the memory of a device, and results that stay there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from taco_py.data.interop.in_order import with_order
from taco_py.data.storage.pack import is_sorted, is_unique
from taco_py.data.storage.tensor_data import TensorData, arrays_of, mapped, on_host, stores_all
from taco_py.data.tensors.hand_out import handed_out
from taco_py.data.tensors.stored_facts import StoredFacts
from taco_py.language.diagnostics.errors import DeviceError, OperandTypeError

if TYPE_CHECKING:
    from codegen.devices.device_array import DeviceArray


class DeviceTensor(StoredFacts):
    """Hold an immutable tensor in the memory of a GPU, as `tp.device` and calls over it make it.

    >>> dA = tp.device(sp.csr_array([[1.0, 0.0], [2.0, 3.0]]), target="cuda-emulated")
    >>> dy = tp.einsum("ij,j->i", dA, np.array([1.0, 1.0]))
    >>> dy
    DeviceTensor(shape=(2,), format='d', nnz=2, dtype=float64, target='cuda-emulated')
    >>> dy.to_host()
    array([1., 5.])

    Calls over it compute on its device, and what they return stays there. A dense one is taken in
    place by CuPy, torch, numba and JAX (`__cuda_array_interface__`, `__dlpack__`).
    """

    __slots__ = ("_data", "_kind", "_signature", "_target")
    __array_ufunc__ = None

    def __init__(self, data: TensorData, kind: str, target: str) -> None:
        """Hold the arrays of a tensor on a device.

        data    arrays of the device
        kind    of the object on the host: "ndarray", "tensor", or SciPy's "csr_array" and others
        target  the device's name
        """
        self._data = data
        self._kind = kind
        self._target = target
        self._signature: tuple[object, ...] | None = None

    @property
    def nbytes(self) -> int:
        """Return the bytes of its arrays on the device."""
        return sum(array.nbytes for array in arrays_of(self._data))

    @property
    def nnz(self) -> int:
        """Return the number of values on the device, which are not looked at.

        Zeros and what fills the format up are among them.
        """
        return self._data.nnz

    @property
    def target(self) -> str:
        """Return the name of the device, as `target=` has it."""
        return self._target

    @property
    def kind(self) -> str:
        """Return the kind on the host: "ndarray", "tensor" or one of SciPy's names."""
        return self._kind

    @property
    def data(self) -> TensorData:
        """Return the arrays. Raises DeviceError where their memory was given back."""
        self.require_memory()
        return self._data

    def over(self, data: TensorData) -> DeviceTensor:
        """Return a tensor of the same kind on the same device, of other arrays of it."""
        return DeviceTensor(data, self._kind, self._target)

    def to_host(self) -> Any:
        """Copy to the host, to an object of the kind that it has there.

        Raises DeviceError for one that was freed, or where a kernel failed that computes it.
        """
        from taco_py.compiler.devices import refusals

        with refusals():
            return handed_out(self.data, self._kind)

    def free(self) -> None:
        """Give the memory back now; it is given back too when nothing refers to the tensor.

        Using it afterwards is an error. Memory that another library owns stays.
        """
        from taco_py.compiler.devices import refusals

        with refusals():
            for array in self._arrays():
                if not array.buffer.is_free:
                    array.buffer.free()

    def require_memory(self) -> None:
        """Raise DeviceError where the memory was given back."""
        if any(array.buffer.is_free for array in self._arrays()):
            raise DeviceError(
                f"Expected a tensor in the memory of {self._target}, found one that was freed: "
                f"{self!r}",
                hint="free tensors when nothing needs them any more",
            )

    def _arrays(self) -> list[Any]:
        """Return the arrays on the device that the tensor consists of."""
        return [*arrays_of(self._data)]

    def examined(self) -> TensorData:
        """Return the arrays with the order of their coordinates, which is looked up once."""
        self._data = examined(self.data)
        return self._data

    def signature(self) -> tuple[object, ...]:
        """Return all that calls over it depend on, but for its elements."""
        if self._signature is None:
            data = self._data
            self._signature = (
                DeviceTensor,
                self._target,
                self._kind,
                data.shape,
                str(data.format),
                tuple(level.ordered for level in data.format.levels),
                stores_all(data).fill,
                data.sorted,
                data.unique,
                *((a.dtype, a.shape, a.strides) for a in arrays_of(data)),
            )
        return self._signature

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Return the memory of a dense one, for other libraries."""
        interface: dict[str, Any] = self._lent("__cuda_array_interface__")
        return interface

    @property
    def __dlpack__(self) -> Any:
        """Return a capsule of a dense one's memory, for other libraries."""
        return self._lent("__dlpack__")

    @property
    def __dlpack_device__(self) -> Any:
        """Return the device that the memory of a dense tensor is on."""
        return self._lent("__dlpack_device__")

    def _lent(self, protocol: str) -> Any:
        """Return an attribute of a dense tensor's array. Raises AttributeError if it has none."""
        value = getattr(self.data.values, protocol, None)
        if value is None or not self.format.is_dense:
            raise AttributeError(
                f"Expected a dense tensor on a GPU for {protocol}, found {self!r}; a sparse one is "
                "several arrays"
            )
        return value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        """Refuse to copy to the host implicitly."""
        raise OperandTypeError(
            f"Expected an array on the host, found {self!r}",
            hint="call .to_host(), which copies it",
        )

    def __float__(self) -> NoReturn:
        """Refuse to convert to a number, for only `to_host` copies to the host."""
        raise OperandTypeError(
            f"Expected a number on the host, found {self!r}",
            hint="call .to_host(), which copies it: float(s.to_host())",
        )

    __int__ = __bool__ = __complex__ = __index__ = __float__

    def __reduce__(self) -> NoReturn:
        """Refuse to pickle or copy a tensor of a device."""
        raise OperandTypeError(
            f"Expected a tensor on the host to copy or to pickle, found {self!r}",
            hint="call .to_host(), which copies it",
        )

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a tensor without modes")
        return self.shape[0]

    def __repr__(self) -> str:
        return (
            f"DeviceTensor(shape={self.shape}, format={str(self.format)!r}, nnz={self.nnz}, "
            f"dtype={self.dtype}, target={self._target!r})"
        )


def examined(data: TensorData) -> TensorData:
    """Return the tensor with the order and uniqueness of its coordinates, computed if unknown."""
    if data.sorted is not None and data.unique is not None:
        return data
    ordered = with_order(on_host(data))
    is_ordered = is_sorted(ordered) if ordered.sorted is None else ordered.sorted
    is_distinct = is_unique(ordered) if ordered.unique is None else ordered.unique
    return replace(data, sorted=is_ordered, unique=is_distinct)


def uploaded(data: TensorData, target: str) -> TensorData:
    """Return the tensor in the memory of a device, in arrays of its own. Raises DeviceError.

    Of arrays that the host reads between kernels a copy stays there.
    """
    from taco_py.compiler.residence import Residence

    residence = Residence(target)

    def on_device(array: Any) -> DeviceArray:
        if isinstance(array, np.ndarray):
            return residence.copied(array)
        shared: DeviceArray = residence.array(array)
        shared.constant = shared.constant or shared.buffer.is_own  # for nothing changes it any more
        return shared

    tensor = mapped(data, on_device)
    for device_level, level in zip(tensor.levels, data.levels, strict=True):
        if isinstance(level.pos, np.ndarray):
            device_level.pos.mirror = level.pos.copy()  # type: ignore[union-attr]
    return tensor


def place_of(objects: Iterable[Any]) -> str:
    """Return the device that operands of a call are on, "" where all are on the host."""
    return next(iter(targets_of(objects)), "")


def targets_of(objects: Iterable[Any]) -> tuple[str, ...]:
    """Return the devices that operands are on, each once."""
    targets = (obj.target for obj in objects if isinstance(obj, DeviceTensor))
    return tuple(dict.fromkeys(targets))

"""Operands on a device where others are derived from them: their arrays are read on the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taco_py.arguments.device_tensor import DeviceTensor
from taco_py.data.interop.scipy_arrays import CLASSES
from taco_py.data.storage.tensor_data import TensorData, on_host


class OnHost(Mapping[str, TensorData]):
    """The arrays of operands, each brought to the host when it is first asked for."""

    def __init__(self, tensors: Mapping[str, TensorData]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> TensorData:
        return on_host(self._tensors[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def kind_on_host(obj: Any) -> Any:
    """Return an object of the kind that an operand is on the host: itself where it is there."""
    if not isinstance(obj, DeviceTensor) or obj.kind in ("ndarray", "tensor"):
        return obj
    return CLASSES[obj.kind](obj.shape, dtype=obj.dtype)

"""Elements in the memory of a device, where an array of the host would stand.

a = buffer.array((3, 4), "float64")
a.shape, a.strides, a.transpose((1, 0))[:2]     # as NumPy's, and on the device still
numpy.asarray(a)                                # a copy of the elements on the host
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from codegen.devices.device import Array, Buffer, DeviceError, Pointer
from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Flags:
    """How elements lie in memory, by the names that NumPy has for it."""

    c_contiguous: bool
    f_contiguous: bool


class DeviceArray:
    """Elements of `dtype` in `buffer`, the first one `offset` bytes behind its beginning.

    strides   in bytes; those of C order where they are left out
    constant  whether nobody changes the elements, so that copies of them may be kept
    mirror    the same elements on the host, None where they have to be copied to be read
    """

    __slots__ = (
        "__weakref__",
        "_elements",
        "buffer",
        "constant",
        "dtype",
        "mirror",
        "offset",
        "shape",
        "strides",
    )

    def __init__(
        self,
        buffer: Buffer,
        shape: Sequence[int],
        dtype: np.dtype[Any],
        strides: Sequence[int] | None = None,
        offset: int = 0,
        constant: bool = False,
        mirror: Array | None = None,
    ) -> None:
        self.buffer = buffer
        self.shape = tuple(shape)
        self.dtype = dtype
        self.strides = c_strides(shape, dtype.itemsize) if strides is None else tuple(strides)
        self.offset = offset
        self.constant = constant
        self.mirror = mirror
        self._elements: dict[int, Any] = {}
        low, high = extent(self.shape, self.strides, dtype.itemsize)
        if offset + low < 0 or offset + high > buffer.size:
            raise DeviceError(
                f"Expected elements in the {buffer.size} bytes of {buffer.name}, found bytes "
                f"{offset + low} to {offset + high}",
                hint="see the shape, the strides and the type of the elements",
            )

    @property
    def pointer(self) -> Pointer:
        """Return the first element, as an argument of kernels."""
        return self.buffer.at(self.offset)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    @property
    def flags(self) -> Flags:
        shape, strides, size = self.shape, self.strides, self.dtype.itemsize
        return Flags(_follows(shape, strides, size), _follows(shape[::-1], strides[::-1], size))

    @property
    def is_contiguous(self) -> bool:
        """Tell whether the elements lie one after the other in C order."""
        return _follows(self.shape, self.strides, self.dtype.itemsize)

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False and self.mirror is None:
            raise ValueError("Expected a copy to be allowed: the elements are on a device")
        elements = self.to_host() if copy else self.host()
        return elements if dtype is None else elements.astype(dtype, copy=False)

    def host(self) -> Array:
        """Return the elements on the host; those of a constant array are copied once, and
        read-only."""
        if self.mirror is not None:
            return self.mirror
        elements = self.to_host()
        if self.constant:
            elements.flags.writeable = False
            self.mirror = elements
        return elements

    def to_host(self) -> Array:
        """Return the elements, copied, in the order in which they lie."""
        low, high = extent(self.shape, self.strides, self.dtype.itemsize)
        data = np.empty(high - low, np.uint8)
        if data.size:
            self.buffer.device.download(self.buffer, data, self.offset + low)
        elements: Array = np.ndarray(
            self.shape, self.dtype, data, -low if self.size else 0, self.strides
        )
        gaps = data.nbytes != elements.nbytes
        return np.array(elements, order="C") if gaps else elements

    def element(self, index: int) -> Any:
        """Return the element `index` places behind the first one in memory, as a Python number."""
        if self.mirror is not None and self.is_contiguous:
            return self.mirror.reshape(-1)[index].item()
        if index in self._elements:
            return self._elements[index]
        value = np.empty(1, self.dtype)
        self.buffer.device.download(self.buffer, value, self.offset + index * self.itemsize)
        element = value[0].item()
        if self.constant:
            self._elements[index] = element
        return element

    # ------------------------------------------------------------ as NumPy's arrays

    def __getitem__(self, key: Any) -> Any:
        """Return the first elements as a view, as in a[:n]; all else is read on the host."""
        if isinstance(key, slice) and key.step in (None, 1) and not key.start and self.ndim:
            count = len(range(*key.indices(self.shape[0])))
            return self._view((count, *self.shape[1:]), self.strides)
        return self.host()[key]

    def transpose(self, axes: Sequence[int] | None = None) -> DeviceArray:
        order = range(self.ndim)[::-1] if axes is None else axes
        return self._view([self.shape[a] for a in order], [self.strides[a] for a in order])

    def reshape(self, *shape: Any) -> Any:
        """Return a view of contiguous elements; others are copied to the host."""
        (requested,) = shape if len(shape) == 1 else (shape,)
        if not self.is_contiguous:
            return self.host().reshape(requested)
        sizes = [requested] if isinstance(requested, int) else list(requested)
        if -1 in sizes:
            product_ = prod(size for size in sizes if size != -1)
            sizes[sizes.index(-1)] = self.size // max(product_, 1)
        if prod(sizes) != self.size:
            raise ValueError(f"Expected a shape of {self.size} elements, found {tuple(sizes)}")
        return self._view(sizes, None)

    def squeeze(self, axis: Sequence[int]) -> DeviceArray:
        remaining = [mode for mode in range(self.ndim) if mode not in axis]
        return self._view([self.shape[m] for m in remaining], [self.strides[m] for m in remaining])

    def astype(self, dtype: Any, order: str = "K", copy: bool = True) -> Any:
        """Return the array in another type, converted on the host if the type differs."""
        if np.dtype(dtype) == self.dtype and not copy:
            return self
        return self.host().astype(dtype, order=order)  # type: ignore[call-overload]

    def _view(self, shape: Sequence[int], strides: Sequence[int] | None) -> DeviceArray:
        return self.buffer.array(shape, self.dtype, strides, self.offset, self.constant)

    def __repr__(self) -> str:
        return f"<array of {self.shape} {self.dtype} in {self.buffer!r}>"


def c_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return bytes between neighbours along each axis, in C order."""
    strides: list[int] = []
    for count in reversed(shape):
        strides.append(itemsize)
        itemsize *= max(count, 1)
    return tuple(reversed(strides))


def extent(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """Return the bytes that elements take, counted from the first one: (-8, 16)."""
    if 0 in shape:
        return (0, 0)
    ends = [(count - 1) * stride for count, stride in zip(shape, strides, strict=True)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + itemsize


def _follows(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Tell whether each element lies behind the one before in C order."""
    usual = c_strides(shape, itemsize)
    return 0 in shape or all(
        count == 1 or stride == want
        for count, stride, want in zip(shape, strides, usual, strict=True)
    )

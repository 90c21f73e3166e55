"""The arrays of one run of a plan on the device that its kernels run on.

there = Residence("cuda")
there.array(A.data)                          copied once, however many kernels read it
there.new_array((n,), (0,), "float64", True)    a result, which stays for the next kernel
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from taco_py.compiler import devices
from taco_py.compiler.devices import refusals
from taco_py.data.storage.tensor_data import Array
from taco_py.language.diagnostics.errors import DeviceError

if TYPE_CHECKING:
    from codegen.devices.device_array import DeviceArray


class Residence:
    """Memory of the device `target`. Raises DeviceError where there is no such device."""

    def __init__(self, target: str) -> None:
        from codegen.devices.host_side import Host

        self._host = Host(devices.device_of(target), None)
        self._there: dict[int, tuple[Array, DeviceArray]] = {}

    def array(self, array: Any, name: str = "") -> DeviceArray:
        """Return an array on the device: itself if it is there, else a copy of the host's array."""
        if not isinstance(array, np.ndarray):
            return self._check_device(array, name)
        if id(array) not in self._there:
            with refusals():
                self._there[id(array)] = array, self._host.array(array, name)
        return self._there[id(array)][1]

    def copied(self, array: Array) -> DeviceArray:
        """Return a device copy of a host array, contiguous and never to be changed."""
        lies = array.flags.c_contiguous or array.flags.f_contiguous
        with refusals():
            copy = self._host.array(array if lies else np.array(array, order="K"))
        copy.mirror = None
        return copy

    def _check_device(self, array: DeviceArray, name: str) -> DeviceArray:
        if array.buffer.device is not self._host.device:
            raise DeviceError(
                f"Expected {name} on the device that kernels run on, found it on another one",
                hint="bring it to the host, and from there to the other: "
                "tp.device(A.to_host(), target=…)",
            )
        return array

    def new_array(
        self, shape: tuple[int, ...], order: Sequence[int], dtype: str, covered: bool
    ) -> Any:
        """Return zeros, or any values where the kernel overwrites all, laid out in the order of
        levels."""
        size = int(np.prod([float(n) for n in shape])) if shape else 1
        with refusals():
            vector = self._host.allocate(size, dtype, not covered)
        stored = vector.reshape([shape[mode] for mode in order])
        turned = tuple(order) != tuple(range(len(order)))
        return stored.transpose(np.argsort(order)) if turned else stored

"""Devices by their names, each opened once.

devices = Devices(cache)
devices.open("cuda")                     # the first GPU, as "cuda:0"; "cuda:1" is the second
devices.open("cuda-emulated")            # the same kernels on the CPU, checked
devices.why_not("cuda")                  # "" where kernels run there, else what is missing
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from codegen.devices.device import Device, DeviceError
from codegen.devices.emulated import EmulatedDevice
from codegen.runtime.kernel_cache import KernelCache
from codegen.toolchain.errors import ToolchainError

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_device import CudaDevice

EMULATED = "cuda-emulated"
_CUDA = re.compile(r"cuda(?::(\d+))?")


class Devices:
    """The devices of a process; those of one name are one device, whose buffers all can use."""

    def __init__(self, cache: KernelCache) -> None:
        self._cache = cache
        self._open: dict[str, Device] = {}
        self._lock = threading.Lock()

    def open(self, name: str) -> Device:
        """Return the device `name`. Raises DeviceError for another name, or where `why_not` says
        why."""
        if name == EMULATED:
            return self._open_cached(name, lambda: EmulatedDevice(self._cache))
        device = self.cuda(name)
        device.open()
        return device

    def cuda(self, name: str = "cuda") -> CudaDevice:
        """Return the GPU `name`, which need not be there: nothing is opened before it is needed."""
        from codegen.devices.cuda.cuda_device import CudaDevice

        match = _CUDA.fullmatch(name)
        if match is None:
            raise DeviceError(
                f'Expected "cuda", "cuda:1" and so on, or "{EMULATED}", found {name!r}',
                hint='"cuda" is the first GPU',
            )
        number = int(match[1] or 0)
        device = self._open_cached(f"cuda:{number}", lambda: CudaDevice(self._cache, number))
        assert isinstance(device, CudaDevice)
        return device

    def why_not(self, name: str = "cuda") -> str:
        """Explain why kernels cannot run on `name`, with the remedy; "" where they can."""
        try:
            self.open(name)
            if name == EMULATED:
                self._cache.compiler  # noqa: B018  found, or an error
            else:
                self.cuda(name).require_compiler()
        except (DeviceError, ToolchainError) as error:
            return f"{error.message}; {error.hint}" if error.hint else error.message
        return ""

    def clear_memory(self) -> None:
        """Give back the memory that devices keep for new buffers."""
        for device in list(self._open.values()):
            device.clear_memory()

    def _open_cached(self, name: str, make: Callable[[], Device]) -> Device:
        with self._lock:
            if name not in self._open:
                self._open[name] = make()
            return self._open[name]

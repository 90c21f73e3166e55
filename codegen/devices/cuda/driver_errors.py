"""What the CUDA driver refuses, with its name of the error and the remedy.

    700   →   DriverError: "Expected the driver to upload x, found CUDA_ERROR_ILLEGAL_ADDRESS (an
              illegal memory access was encountered)", hint: "run the same call on the device …"

After a sticky error the driver answers every call of the process with it: the context is lost.
"""

from __future__ import annotations

from codegen.devices.device import DeviceError

OUT_OF_MEMORY = 2

_EMULATED = (
    'run the same call on the device "cuda-emulated", which names the access, its line and thread'
)
_NEWER_DRIVER = "update the driver of NVIDIA, or compile with an older toolkit"
_BLOCKS = "use smaller blocks, or less shared memory"
REMEDIES: dict[int, str] = {
    OUT_OF_MEMORY: "free buffers that nothing needs any more, or use smaller operands",
    3: "open the device anew: the driver is not initialised",
    4: "call before the process ends: the driver has shut down",
    34: "the library is a stub of the toolkit for linking: set TACO_PY_CUDA_DRIVER to the driver's",
    36: _NEWER_DRIVER,
    46: "another process has the device for itself, or it is being reset: see nvidia-smi",
    100: "see whether nvidia-smi lists a device, and what CUDA_VISIBLE_DEVICES says",
    101: "see CUDA_VISIBLE_DEVICES, which says the devices that a process has",
    200: "update the driver of NVIDIA where its CUDA is older than the compiler's, or clear the "
    "kernel cache",
    201: "use the device in the process that opened it",
    209: "compile for the architecture of this device",
    214: "the memory of the device has a fault: see nvidia-smi -q, reset the device",
    218: "compile for the architecture of this device",
    220: "a link between devices has a fault: see nvidia-smi nvlink --status",
    221: "compile for the architecture of this device: the driver has no compiler of its own",
    222: _NEWER_DRIVER,
    223: "compile for the architecture of this device, or unset CUDA_DISABLE_PTX_JIT",
    500: "see module.kernels for the names",
    700: _EMULATED,
    701: _BLOCKS,
    702: "use fewer or shorter launches: the system ends what keeps the display waiting",
    709: "open the device anew: something else in the process has reset it",
    710: "see what the kernel printed: an assertion in it failed",
    714: _EMULATED,
    715: "clear the kernel cache, and compile for the architecture of this device",
    716: _EMULATED,
    717: _EMULATED,
    718: _EMULATED,
    719: _EMULATED,
    720: _BLOCKS,
    802: "wait until the system has started the devices: see nvidia-smi and its fabric manager",
    803: "reboot: the driver in the kernel and its library are of two versions",
    804: "use the library of the driver that is installed, not one for compatibility",
}
"""What to do, by the number of the error."""

STICKY = frozenset({214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721})
"""Errors after which nothing more runs in this process on the device."""


class DriverError(DeviceError):
    """`code` and `name` say which error of the driver it was, `operation` what was done."""

    def __init__(self, operation: str, code: int, name: str, text: str) -> None:
        self.operation = operation
        self.code = code
        self.name = name
        super().__init__(
            f"Expected the driver to {operation}, found {name} ({text})", REMEDIES.get(code)
        )

    @property
    def is_sticky(self) -> bool:
        return self.code in STICKY


class DeviceLostError(DeviceError):
    """An earlier error, which the message tells, has left the device without use."""


class DeviceMemoryError(DeviceError):
    """`wanted` bytes are more than are `free` of the `total` of the device."""

    def __init__(
        self, name: str, requested: int, free: int, total: int, in_buffers: int = 0
    ) -> None:
        self.wanted = requested
        self.free = free
        self.total = total
        super().__init__(
            f"Expected {requested} bytes of the device's memory for {name}, found {free} free of "
            f"{total}; {in_buffers} are in buffers of this process",
            REMEDIES[OUT_OF_MEMORY],
        )

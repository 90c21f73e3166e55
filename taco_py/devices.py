"""The devices that kernels run on, each opened when it is first needed.

target="cuda"            a GPU of this machine
target="cuda-emulated"   the same kernels on the CPU, which checks each access to memory
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from taco_py.diagnostics.errors import DeviceError
from taco_py.kernels import KERNELS

if TYPE_CHECKING:
    from codegen.devices.device import Device, Module
    from codegen.runtime.signature import Signature


@cache
def device_of(target: str) -> Device:
    """The device that `target` names. Raises DeviceError where there is none."""
    if target == "cuda-emulated":
        from codegen.devices.emulated import EmulatedDevice

        return EmulatedDevice(KERNELS)
    raise DeviceError(
        "Expected a GPU, found no driver of one",
        hint='target="cuda-emulated" runs the same kernels on the CPU',
    )


@cache
def loaded(target: str, text: str) -> tuple[Device, Module | None]:
    """The kernels of a text on a device. Raises DeviceError."""
    device = device_of(target)
    return device, device.load(text) if text.strip() else None


def functions_of(
    kernels: tuple[Device, Module | None], host: str, signatures: Sequence[Signature]
) -> dict[str, Callable[..., Any]]:
    """The functions of a host that launch kernels, by their names."""
    from codegen.devices.host_function import host_functions

    return host_functions(*kernels, host, signatures)

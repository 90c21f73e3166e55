"""The devices that kernels run on, each opened when it is first needed.

target="cuda"            a GPU of this machine
target="cuda-emulated"   the same kernels on the CPU, which checks each access to memory
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from taco_py.diagnostics.errors import DeviceError
from taco_py.diagnostics.report import internal_error
from taco_py.kernels import KERNELS

if TYPE_CHECKING:
    from codegen.devices.device import Device, Module
    from codegen.devices.open_device import Devices
    from codegen.runtime.signature import Signature


T = TypeVar("T")


def remembered(key: Hashable, make: Callable[[], T]) -> T:
    """What was made under a key before, or is made now; kernels' cache forgets it with others."""
    found: T | None = KERNELS.memo.get(key)
    if found is None:
        found = make()
        KERNELS.memo.put(key, found)
    return found


@cache
def devices() -> Devices:
    """The devices of this process, each opened when it is first needed."""
    from codegen.devices.open_device import Devices

    return Devices(KERNELS)


def device_of(target: str) -> Device:
    """The device that `target` names. Raises DeviceError where there is none."""
    from codegen.devices.device import DeviceError as Refused

    try:
        return devices().open(target)
    except Refused as error:
        raise DeviceError(error.message, hint=error.hint) from error


def loaded(target: str, text: str) -> tuple[Device, Module | None]:
    """The kernels of a text on a device, which has none of an empty one. Raises DeviceError."""
    device = device_of(target)
    if not text:
        return device, None
    return device, remembered(("module", target, text), lambda: device.load(text))


def function_of(target: str, text: str, host: str, signature: Signature) -> Callable[..., Any]:
    """The function of a host's text that launches the kernels of `text`.

    The device is opened by the first call, which raises DeviceError where there is none.
    """

    def call(*arguments: Any) -> Any:
        from codegen.devices.device import DeviceError as Failed
        from codegen.devices.reports import EmulationError

        key = ("function", target, text, host)
        try:
            return remembered(key, opened)(*arguments)
        except EmulationError as error:
            raise internal_error("run", text, error) from error
        except Failed as error:
            raise DeviceError(error.message, hint=error.hint) from error

    def opened() -> Callable[..., Any]:
        from codegen.devices.host_function import host_function

        device, module = loaded(target, text)
        return host_function(device, module, host, signature)

    return call

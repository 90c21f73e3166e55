"""The devices that kernels run on, each opened when it is first needed.

target="cuda"            a GPU of this machine
target="cuda-emulated"   the same kernels on the CPU, which checks each access to memory
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from taco_py.compiler.concrete.nodes import Race
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError, DeviceError, ScheduleError, TacoError
from taco_py.language.diagnostics.report import internal_error

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_device import CudaDevice
    from codegen.devices.device import Device, Module
    from codegen.devices.host_function import HostFunction
    from codegen.devices.open_device import Devices
    from codegen.devices.reports import EmulationError
    from codegen.runtime.signature import Signature
    from codegen.toolchain.cuda.ptxas_report import KernelReport


T = TypeVar("T")


def remembered(key: Hashable, make: Callable[[], T]) -> T:
    """Return the cached value of a key, or make and cache it; clearing the kernel cache
    clears it."""
    value: T | None = KERNELS.memo.get(key)
    if value is None:
        value = make()
        KERNELS.memo.put(key, value)
    return value


@cache
def devices() -> Devices:
    """Return the devices of this process, each opened when it is first needed."""
    from codegen.devices.open_device import Devices

    return Devices(KERNELS)


def gpu(target: str) -> CudaDevice:
    """Return the GPU that `target` names. Raises DeviceError where there is none."""
    with refusals():
        device = devices().cuda(target)
        device.open()
        return device


def device_of(target: str) -> Device:
    """Return the device that `target` names. Raises DeviceError where there is none."""
    with refusals():
        return devices().open(target)


@contextmanager
def refusals() -> Iterator[None]:
    """Raise errors of devices as errors of this package; emulation reports pass unchanged."""
    from codegen.devices.device import DeviceError as Refused
    from codegen.devices.reports import EmulationError

    try:
        yield
    except EmulationError:
        raise
    except Refused as error:
        raise DeviceError(error.message, hint=error.hint) from error


def loaded(target: str, text: str) -> tuple[Device, Module | None]:
    """Return the device and the module of a text's kernels; no module for an empty text.

    Raises DeviceError.
    """
    device = device_of(target)
    if not text:
        return device, None
    return device, remembered(("module", target, text), lambda: device.load(text))


def architecture_of(target: str) -> str:
    """Return the architecture of the GPU that `target` names, "" where there is none: "sm_90"."""
    if devices().why_not(target):
        return ""
    facts = getattr(device_of(target), "facts", None)
    return "" if facts is None else str(facts.architecture)


def compiled_reports(text: str, architecture: str) -> dict[str, KernelReport]:
    """Return the resources that each kernel of a text takes, as the CUDA compiler reports them.

    Raises CompilerError where there is no compiler, or it fails.
    """
    from codegen.devices.cuda.binaries import compile_report
    from codegen.toolchain.errors import ToolchainError

    def reports() -> dict[str, KernelReport]:
        return compile_report(KERNELS, text, architecture)

    try:
        return remembered(("reports", text, architecture), reports)
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error


class DeviceCall:
    """The function of a host's text that launches the kernels of `text`.

    The device is opened by the first call, which raises DeviceError where there is none.

    promised  commands of the schedule that promise the absence of races
    """

    def __init__(
        self,
        target: str,
        text: str,
        host: str,
        signature: Signature,
        promised: tuple[str, ...] = (),
    ) -> None:
        self._key = (target, text, host)
        self._signature = signature
        self._promised = promised

    @property
    def function(self) -> HostFunction:
        """Return the function on its device. Raises DeviceError."""
        return remembered(("function", *self._key), self._opened)

    def _opened(self) -> HostFunction:
        from codegen.devices.host_function import HostFunction

        target, text, host = self._key
        device, module = loaded(target, text)
        return HostFunction(device, module, host, self._signature)

    def __call__(self, *arguments: Any) -> Any:
        from codegen.devices.reports import EmulationError

        try:
            with refusals():
                return self.function(*arguments)
        except EmulationError as error:
            raise self._wrong(error) from error

    def _wrong(self, error: EmulationError) -> TacoError:
        """Return the error for a report of the emulated device: the schedule's fault, or an
        internal one."""
        from codegen.devices.reports import RACES

        target, text, _ = self._key
        races = [report for report in error.reports if report.fault in RACES]
        if not (races and self._promised):
            return internal_error("run", f"{self._signature.name} on {target}", error, text)
        commands = ", ".join(self._promised)
        atomic = commands.replace(Race.IGNORE.value, Race.ATOMICS.value)
        return ScheduleError(
            f"Expected no two iterations to write the same element, as {commands} promises, "
            f"found {races[0]}",
            hint=f"{atomic}, or share a loop over an index of the result",
        )

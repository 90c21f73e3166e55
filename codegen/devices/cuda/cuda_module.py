"""Kernels that a CUDA device has loaded, and their launches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from codegen.devices.cuda.binaries import CudaBinary
from codegen.devices.cuda.cuda_streams import CudaStream
from codegen.devices.cuda.driver_errors import DriverError
from codegen.devices.cuda.loaded_kernel import KernelFacts, LoadedKernel
from codegen.devices.cuda.parameter_types import KernelParameters, kernel_parameters
from codegen.devices.cuda_text import KernelHead, kernel_heads
from codegen.devices.device import (
    Argument,
    DeviceError,
    LaunchError,
    Module,
    Shape,
    Size,
    check_shape,
)
from codegen.records import dataclass

if TYPE_CHECKING:
    from codegen.devices.cuda.cuda_device import CudaDevice

_MAX_DYNAMIC_SHARED = 8
_JIT_ERROR_LOG, _JIT_ERROR_LOG_SIZE = 5, 6
_LOG_BYTES = 8192
_MOST_SHAPES = 1024


@dataclass(frozen=True, slots=True, eq=False)
class CudaLaunch:
    """A launch that has been begun on `stream`."""

    kernel: str
    shape: Shape
    stream: CudaStream

    def wait(self) -> None:
        """Wait until it has ended. Raises LaunchError for what went wrong in it."""
        self.stream.synchronize()


class CudaModule(Module):
    """Kernels of one text."""

    def __init__(self, device: CudaDevice, text: str, binary: CudaBinary) -> None:
        self._device = device
        self.binary = binary
        self._heads: dict[str, KernelHead] = {head.name: head for head in kernel_heads(text)}
        if not self._heads:
            raise DeviceError(
                "Expected a kernel, found none in the text",
                hint='write extern "C" __global__ void name(...) { ... }',
            )
        parameters = {n: kernel_parameters(head, text) for n, head in self._heads.items()}
        self._handle = _load(device, binary)
        self._shapes: dict[tuple[str, Size, Size, int], tuple[LoadedKernel, Shape]] = {}
        self._kernels = {
            name: self._find(name, kernel_parameters_)
            for name, kernel_parameters_ in parameters.items()
        }

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(self._heads)

    def facts(self, kernel: str) -> KernelFacts:
        """Return the driver's facts about `kernel`."""
        return self._kernel(kernel, kernel).facts

    def blocks_per_multiprocessor(self, kernel: str, block: Size, shared_bytes: int = 0) -> int:
        """Count the blocks of a launch that a multiprocessor runs at once."""
        device = self._device
        shape = check_shape(kernel, 1, block, shared_bytes, device.limits)
        loaded = self._kernel(kernel, shape.text(kernel))
        self._check(kernel, shape, loaded)
        box = device.driver.ffi.new("int *")
        device.run(
            f"ask how many blocks of {kernel} run at once",
            "cuOccupancyMaxActiveBlocksPerMultiprocessor",
            box,
            loaded.handle,
            shape.threads,
            shape.shared_bytes,
        )
        return int(box[0])

    def occupancy(self, kernel: str, block: Size, shared_bytes: int = 0) -> float:
        """Return the fraction of a device's threads that run at once in launches of this shape."""
        blocks = self.blocks_per_multiprocessor(kernel, block, shared_bytes)
        shape = check_shape(kernel, 1, block, shared_bytes, self._device.limits)
        return blocks * shape.threads / self._device.facts.threads

    def launch(
        self,
        kernel: str,
        grid: Size,
        block: Size,
        shared_bytes: int = 0,
        arguments: Sequence[Argument] = (),
        stream: object = None,
    ) -> CudaLaunch:
        """Start `kernel` on `stream` after the pending uses of its arguments.

        stream  the device's where it is None; a CudaStream, or a stream of torch, CuPy or numba
        """
        device = self._device
        key = (kernel, grid, block, shared_bytes)
        loaded, shape = self._shapes.get(key) or self._prepare(*key)
        values, buffers = loaded.bind(shape, arguments, device)
        try:
            with device.operation(stream, buffers) as on:
                loaded.write(values)
                launch = CudaLaunch(kernel, shape, on)
                self._start(loaded, shape, on)
                device.note_launch(launch)
        except DriverError as error:
            raise LaunchError(kernel, shape.text(kernel), error.message, error.hint) from error
        if device.blocking:
            launch.wait()
        return launch

    def _prepare(
        self, kernel: str, grid: Size, block: Size, shared_bytes: int
    ) -> tuple[LoadedKernel, Shape]:
        """Check the shape of a launch, and cache it."""
        shape = check_shape(kernel, grid, block, shared_bytes, self._device.limits)
        loaded = self._kernel(kernel, shape.text(kernel))
        self._check(kernel, shape, loaded)
        if len(self._shapes) >= _MOST_SHAPES:
            self._shapes.clear()
        self._shapes[kernel, grid, block, shared_bytes] = (loaded, shape)
        return loaded, shape

    def _start(self, loaded: LoadedKernel, shape: Shape, on: CudaStream) -> None:
        sizes = (*shape.grid, *shape.block, shape.shared_bytes)
        null = self._device.driver.ffi.NULL
        arguments = (loaded.handle, *sizes, on.handle, loaded.pointers, null)
        self._device.run("start the kernel", "cuLaunchKernel", *arguments)

    def _kernel(self, kernel: str, launch: str) -> LoadedKernel:
        loaded = self._kernels.get(kernel)
        if loaded is None:
            names = ", ".join(self._kernels)
            raise LaunchError(kernel, launch, f"Expected one of {names}, found {kernel}")
        return loaded

    def _check(self, kernel: str, shape: Shape, loaded: LoadedKernel) -> None:
        """Raise LaunchError where the kernel's registers or shared memory exceed the limits."""
        facts, limits = loaded.facts, self._device.limits
        launch = shape.text(kernel)
        if shape.threads > facts.threads:
            raise LaunchError(
                kernel,
                launch,
                f"Expected at most {facts.threads} threads a block, as each needs "
                f"{facts.registers} registers, found {shape.threads}",
                hint="use smaller blocks, or say __launch_bounds__ in the text",
            )
        total = facts.shared_bytes + shape.shared_bytes
        if total > limits.shared_memory:
            raise LaunchError(
                kernel,
                launch,
                f"Expected at most {limits.shared_memory} bytes of shared memory, found {total}: "
                f"{facts.shared_bytes} of variables and {shape.shared_bytes} of dynamic memory",
                hint="use smaller tiles",
            )
        if total > limits.static_shared_memory and shape.shared_bytes > loaded.dynamic_bytes:
            operation = f"allow {kernel} {shape.shared_bytes} bytes of dynamic shared memory"
            arguments = (loaded.handle, _MAX_DYNAMIC_SHARED, shape.shared_bytes)
            self._device.run(operation, "cuFuncSetAttribute", *arguments)
            loaded.dynamic_bytes = shape.shared_bytes

    def _find(self, name: str, parameters: KernelParameters) -> LoadedKernel:
        device = self._device
        box = device.driver.ffi.new("CUfunction *")
        operation = f"find the kernel {name}"
        device.run(operation, "cuModuleGetFunction", box, self._handle, name.encode())
        number = device.driver.ffi.new("int *")

        def ask(attribute: int) -> int:
            device.run(f"ask for {name}", "cuFuncGetAttribute", number, attribute, box[0])
            return int(number[0])

        self._compare(name, box[0], parameters)
        facts = KernelFacts(ask(0), ask(4), ask(1), ask(3))
        return LoadedKernel(device.driver.ffi, name, box[0], parameters, facts)

    def _compare(self, name: str, handle: Any, parameters: KernelParameters) -> None:
        """Raise DeviceError where the driver, if it is of 12.4 or later, has other parameters."""
        device = self._device
        if not hasattr(device.driver.lib, "cuFuncGetParamInfo"):
            return
        sizes = device.driver.ffi.new("size_t[2]")
        for place, kind in enumerate(parameters.types):
            code = device.call("cuFuncGetParamInfo", handle, place, sizes, sizes + 1)
            if not code and sizes[1] != kind.size:
                raise DeviceError(
                    f"Expected {kind.size} bytes for the parameter {kind.name} of {name}, as its "
                    f"type says, found {sizes[1]} in what was compiled",
                    hint="name the type as in <stdint.h>, and no macro for it",
                )

    def __del__(self) -> None:
        if hasattr(self, "_handle"):
            self._device.leave("cuModuleUnload", self._handle)


def _load(device: CudaDevice, binary: CudaBinary) -> Any:
    """Load the binary. Raises DriverError, with what the driver's compiler says of PTX."""
    ffi = device.driver.ffi
    image = ffi.new("char[]", binary.image + b"\0")
    log = ffi.new("char[]", _LOG_BYTES)
    options = ffi.new("CUjit_option[]", [_JIT_ERROR_LOG, _JIT_ERROR_LOG_SIZE])
    values = ffi.new("void *[]", [log, ffi.cast("void *", _LOG_BYTES)])
    box = ffi.new("CUmodule *")
    newest = ".".join(map(str, device.facts.driver))
    operation = (
        f"load kernels for {binary.architecture}, compiled by {binary.compiler}, on a driver for "
        f"CUDA {newest}"
    )
    try:
        device.run(operation, "cuModuleLoadDataEx", box, image, 2, options, values)
    except DriverError as error:
        said = ffi.string(log).decode(errors="replace").strip()
        if said:
            raise DeviceError(f"{error.message}: {said}", error.hint) from error
        raise
    return box[0]

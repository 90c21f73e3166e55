"""What a device says of itself: its name, architecture, limits and units."""

from __future__ import annotations

from codegen.devices.cuda.driver_library import Driver
from codegen.devices.device import Limits
from codegen.records import dataclass

ATTRIBUTES: dict[str, int] = {
    "MAX_THREADS_PER_BLOCK": 1,
    "MAX_BLOCK_DIM_X": 2,
    "MAX_BLOCK_DIM_Y": 3,
    "MAX_BLOCK_DIM_Z": 4,
    "MAX_GRID_DIM_X": 5,
    "MAX_GRID_DIM_Y": 6,
    "MAX_GRID_DIM_Z": 7,
    "MAX_SHARED_MEMORY_PER_BLOCK": 8,
    "WARP_SIZE": 10,
    "MAX_REGISTERS_PER_BLOCK": 12,
    "MULTIPROCESSOR_COUNT": 16,
    "MEMORY_CLOCK_RATE": 36,
    "GLOBAL_MEMORY_BUS_WIDTH": 37,
    "L2_CACHE_SIZE": 38,
    "MAX_THREADS_PER_MULTIPROCESSOR": 39,
    "COMPUTE_CAPABILITY_MAJOR": 75,
    "COMPUTE_CAPABILITY_MINOR": 76,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 81,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 97,
}
"""Numbers of CU_DEVICE_ATTRIBUTE_… by their names."""


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A device as the driver tells of it.

    capability      (9, 0); `architecture` is "sm_90"
    multiprocessors each of which has `threads` and `shared_memory` bytes at most
    l2_bytes        of the cache that all share
    bandwidth       of memory in bytes a second, by its clock and width; 0 where it is not told
    driver          the newest CUDA that the driver runs: (12, 4)
    """

    name: str
    capability: tuple[int, int]
    limits: Limits
    multiprocessors: int
    threads: int
    shared_memory: int
    registers: int
    l2_bytes: int
    bandwidth: float
    driver: tuple[int, int]

    @property
    def architecture(self) -> str:
        return f"sm_{self.capability[0]}{self.capability[1]}"


def device_facts(driver: Driver, handle: int) -> DeviceFacts:
    """Ask the driver. Raises DriverError."""
    ffi = driver.ffi
    box, text = ffi.new("int *"), ffi.new("char[]", 256)

    def ask(name: str) -> int:
        driver.run(f"ask for {name}", "cuDeviceGetAttribute", box, ATTRIBUTES[name], handle)
        return int(box[0])

    driver.run("ask for the device's name", "cuDeviceGetName", text, 256, handle)

    def rate(name: str) -> int:
        code = driver.lib.cuDeviceGetAttribute(box, ATTRIBUTES[name], handle)
        return 0 if code else int(box[0])

    static = ask("MAX_SHARED_MEMORY_PER_BLOCK")
    limits = Limits(
        ask("MAX_THREADS_PER_BLOCK"),
        (ask("MAX_BLOCK_DIM_X"), ask("MAX_BLOCK_DIM_Y"), ask("MAX_BLOCK_DIM_Z")),
        (ask("MAX_GRID_DIM_X"), ask("MAX_GRID_DIM_Y"), ask("MAX_GRID_DIM_Z")),
        static,
        ask("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN") or static,
        ask("WARP_SIZE"),
    )
    return DeviceFacts(
        ffi.string(text).decode(errors="replace"),
        (ask("COMPUTE_CAPABILITY_MAJOR"), ask("COMPUTE_CAPABILITY_MINOR")),
        limits,
        ask("MULTIPROCESSOR_COUNT"),
        ask("MAX_THREADS_PER_MULTIPROCESSOR"),
        ask("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
        ask("MAX_REGISTERS_PER_BLOCK"),
        ask("L2_CACHE_SIZE"),
        2e3 * rate("MEMORY_CLOCK_RATE") * rate("GLOBAL_MEMORY_BUS_WIDTH") / 8,
        driver.version,
    )

"""Kernels whose accesses to memory pass through simulated caches.

with traced_kernels(cache, SimulatedCaches((SimulatedCache(32768), SimulatedCache(262144)))) as t:
    function = cache.get_or_build(key, make).kernel.functions["evaluate"]
    function(x, y, n)
    t.empty_caches()
t.traffic.dram_read, t.traffic.dram_written

The text of each kernel is compiled once more, as ThreadSanitizer wants it (`-fsanitize=thread`):
the compiler then calls `__tsan_read4(address)` and the like before each access, but the object is
linked to `traced_accesses.c`, which has these functions, and not to the sanitizer's library. One
thread runs it. Counted is what kernels ask for: no prefetches, no page that the system fills with
zeros, nothing that Python copies between kernels. The stack counts as registers do.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from codegen.records import dataclass
from codegen.runtime.call import KernelCall
from codegen.runtime.entry import entry_text
from codegen.runtime.kernel_cache import KernelCache, LoadedKernel
from codegen.runtime.runtime_library import definitions
from codegen.runtime.signature import Signature
from codegen.runtime.traced.simulated_caches import (
    MOST_CACHES,
    CacheTraffic,
    MemoryTraffic,
    SimulatedCaches,
)
from codegen.toolchain.compile_unit import Unit, complete
from codegen.toolchain.errors import ToolchainError
from codegen.toolchain.processor import digest

FOLDER = Path(__file__).parent
_OBJECT_FLAGS = ("-O2", "-fno-strict-aliasing", f"-I{FOLDER}")
# No loop may become a call of the C library, whose accesses are not seen.
_FLAGS = (
    "-fsanitize=thread",
    "-fno-tree-loop-distribute-patterns",
    "-nodefaultlibs",
    f"-I{FOLDER}",
)
_LIBRARIES = ("pthread", "c", "m", "gcc")
_CACHE = np.dtype([(name, np.uint64) for name in ("sets", "ways", "filled", "written", "lines")])
_HIERARCHY = np.dtype(
    [(name, np.uint64) for name in ("count", "line_bytes", "loaded", "stored", "streamed")]
    + [("caches", _CACHE, (MOST_CACHES,))]
)
"""`struct cache` and `struct hierarchy` of `cache_hierarchy.h`."""


@dataclass(frozen=True, slots=True)
class TracedRun:
    """What one call of a kernel's function moved; changed lines that are left in caches are not
    written yet.

    source  the text of the kernel
    """

    function: str
    source: str
    traffic: MemoryTraffic


class KernelTracer:
    """Simulated caches, and the runs of kernels that accessed memory through them, in order."""

    def __init__(self, cache: KernelCache, caches: SimulatedCaches) -> None:
        compiler = cache.compiler
        if compiler.kind != "gcc" or not sys.platform.startswith("linux"):
            raise ToolchainError(
                "Expected gcc on Linux to compile kernels whose accesses are followed, found "
                f"{compiler.kind} on {sys.platform}",
                hint="set the environment variable CC to a gcc of version 11 or newer",
            )
        self.runs: list[TracedRun] = []
        self._cache = cache
        self._state = _State(caches)
        self._libraries: list[Any] = []
        self._running = threading.Lock()

    @property
    def cache_bytes(self) -> tuple[int, ...]:
        """Return the bytes of each cache, the nearest first."""
        return tuple(cache.bytes for cache in self._state.caches.caches)

    @property
    def traffic(self) -> MemoryTraffic:
        """Return the bytes that were moved so far, or since `forget`."""
        return self._state.traffic()

    def empty_caches(self) -> None:
        """Clear all caches; changed lines are written to memory."""
        if self._libraries:
            self._libraries[0].taco_trace_empty(self._state.pointer)

    def forget(self) -> None:
        """Set all counts to 0, and empty all caches."""
        self.empty_caches()
        self._state.forget()
        self.runs.clear()

    def close(self) -> None:
        """Follow no more accesses of kernels that were traced."""
        for library in self._libraries:
            library.taco_trace_into(None)

    def kernel(self, kernel: LoadedKernel) -> LoadedKernel:
        """Return `kernel` with functions whose accesses are followed, in one thread.

        Raises CompileError, and ToolchainError where it cannot be loaded.
        """
        path = self._cache.load_unit(*self._unit(kernel)).library
        try:
            functions = self._cache.functions_of(path, kernel.signatures)
            library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolchainError(f"Expected to load {path}, found: {error}") from error
        self._libraries.append(library)
        traced = {
            signature.name: self._followed(library, signature, kernel, functions[signature.name])
            for signature in kernel.signatures
        }
        return replace(kernel, functions=traced, library=path)

    def routine(self, name: str, routine: KernelCall) -> KernelCall:
        """Return a function that refuses to run a library's routine: accesses are not seen."""

        def refuse(*arguments: Any) -> Any:
            raise ToolchainError(
                f"Expected kernels whose accesses are followed, found the {name}",
                hint="libraries=False computes by generated code alone",
            )

        return refuse

    def _unit(self, kernel: LoadedKernel) -> tuple[str, Callable[[], Unit]]:
        """Return the key and the unit of a kernel whose accesses are called out."""
        compiler = self._cache.compiler  # with the flags that are probed by now
        entry = entry_text("kernel.c", kernel.signatures).removeprefix(definitions(None))
        entry = f'#include "traced_kernel.h"\n{entry}'
        serial = (flag for flag in compiler.flags_for(kernel.source) if flag != "-fopenmp")
        flags = (*serial, "-fopenmp-simd", *_FLAGS, *complete(), *self._cache.flags)
        key = digest("traced kernel", kernel.source, entry, *flags)

        def unit() -> Unit:
            text = '#include "traced_accesses.c"\n'
            core = Unit((("part.c", text),), _OBJECT_FLAGS, output="part.o")
            core_object = self._cache.load_unit(digest("traced accesses"), lambda: core).library
            files = (("entry.c", entry), ("kernel.c", kernel.source))
            return Unit(files, flags, (core_object,), _LIBRARIES)

        return key, unit

    def _followed(
        self, library: Any, signature: Signature, kernel: LoadedKernel, call: KernelCall
    ) -> KernelCall:
        """Return a function of a kernel that notes the bytes of each call."""
        counts = [n for n, p in enumerate(signature.parameters) if p.counts_threads]

        def run(*arguments: Any) -> Any:
            values = list(arguments)
            for number in counts:
                values[number] = 1
            with self._running:
                before = self._state.traffic()
                if library.taco_trace_into(self._state.pointer):
                    raise ToolchainError("Expected the system to tell a thread's stack")
                try:
                    return call(*values)
                finally:
                    library.taco_trace_into(None)
                    traffic = self._state.traffic() - before
                    self.runs.append(TracedRun(signature.name, kernel.source, traffic))

        return run


@dataclass(slots=True)
class _State:
    """The memory of `struct hierarchy`, and of the lines of each cache."""

    caches: SimulatedCaches
    memory: NDArray[Any] = field(default_factory=lambda: np.zeros(1, _HIERARCHY))
    lines: list[NDArray[np.uint64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        row = self.memory[0]
        row["count"], row["line_bytes"] = len(self.caches.caches), self.caches.line_bytes
        for entry, cache in zip(row["caches"], self.caches.caches, strict=False):
            count = cache.bytes // self.caches.line_bytes
            self.lines.append(np.zeros(count, np.uint64))
            entry["sets"], entry["ways"] = count // cache.ways, cache.ways
            entry["lines"] = self.lines[-1].ctypes.data

    @property
    def pointer(self) -> ctypes.c_void_p:
        """Return the address of the hierarchy."""
        return ctypes.c_void_p(self.memory.ctypes.data)

    def traffic(self) -> MemoryTraffic:
        """Return the bytes that are counted."""
        row, line = self.memory[0], self.caches.line_bytes
        used = row["caches"][: len(self.caches.caches)]
        caches = (CacheTraffic(int(c["filled"]) * line, int(c["written"]) * line) for c in used)
        loaded, stored, streamed = (int(row[n]) for n in ("loaded", "stored", "streamed"))
        return MemoryTraffic(loaded, stored, tuple(caches), streamed)

    def forget(self) -> None:
        """Set all counts to 0."""
        for name in ("loaded", "stored", "streamed"):
            self.memory[0][name] = 0
        for name in ("filled", "written"):
            self.memory[0]["caches"][name] = 0


@contextmanager
def traced_kernels(cache: KernelCache, caches: SimulatedCaches) -> Iterator[KernelTracer]:
    """Follow the accesses of all kernels that `cache` loads within the context.

    They are made for a processor with these caches. Kernels that were loaded before are forgotten,
    and those loaded within it afterwards.

    Raises ToolchainError where the compiler is no gcc on Linux.
    """
    tracer = KernelTracer(cache, caches)
    cache.load_through(tracer)
    try:
        yield tracer
    finally:
        cache.load_through(None)
        tracer.close()

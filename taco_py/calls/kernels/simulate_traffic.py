"""The bytes that the kernels of a call move between simulated caches and memory.

    caches = SimulatedCaches((SimulatedCache(32768), SimulatedCache(262144, 16)))
    traffic = simulate_traffic(caches, tp.compile("y[i] = A[i,j] * x[j]", A=…, x=…), A, x)
    traffic.total.dram_read, traffic.total.dram_written

Caches are empty before the call, and emptied after it: changed lines in them count as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from codegen.records import dataclass
from codegen.runtime.traced.kernel_tracer import TracedRun, traced_kernels
from codegen.runtime.traced.simulated_caches import MemoryTraffic, SimulatedCaches
from codegen.toolchain.errors import ToolchainError
from taco_py.calls.kernels.kernel import Kernel
from taco_py.data.kernels import KERNELS
from taco_py.language.diagnostics.errors import CompilerError


@dataclass(frozen=True, slots=True)
class CallTraffic:
    """What the kernels of a call moved: all of them, and each run in order.

    The total has what is left in caches as written, too.
    """

    total: MemoryTraffic
    runs: tuple[TracedRun, ...]


def simulate_traffic(
    caches: SimulatedCaches, function: Callable[..., Any], *operands: Any, **by_name: Any
) -> CallTraffic:
    """Return the bytes that the kernels of `function(*operands, **by_name)` move, in one thread.

    Kernels are those for a processor with such caches: small ones make small arrays large.

    function  a kernel of `tp.compile`, a function of `tp.fuse`, or any that calls such ones; it is
              called twice, and only the second call is counted

    Work between kernels, in NumPy say, is not counted. Raises CompilerError where no gcc on Linux
    is there, where a library's routine would be called, and where no kernel runs; and what the
    function raises.
    """
    try:
        with traced_kernels(KERNELS, caches) as tracer:
            if isinstance(function, Kernel):
                compile_again, fields = function.__reduce__()
                function = compile_again(*fields)
            function(*operands, **by_name)
            tracer.forget()
            function(*operands, **by_name)
            runs = tuple(tracer.runs)
            tracer.empty_caches()
            total = tracer.traffic
    except ToolchainError as error:
        raise CompilerError(error.message, hint=error.hint) from error
    if not runs:
        raise CompilerError(
            "Expected a call that runs a kernel, found none",
            hint="compile kernels inside the function, or pass a kernel itself: those that were "
            "compiled before are not followed",
        )
    return CallTraffic(total, runs)

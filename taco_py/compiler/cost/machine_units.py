"""What it costs that units share a loop: threads of the CPU, and threads and warps of a GPU."""

from __future__ import annotations

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class UnitCosts:
    """What it costs that units share a loop: threads of the CPU, and threads and warps of a GPU.

    The last words of a field are its unit (`cost.machine`).
    """

    # ------------------------------------------------------------ threads

    parallel_iterations: int = 30_000
    """Innermost iterations, of about a nanosecond each, from which waking threads pays. A parallel
    region costs 1 µs where the last one ended less than 3 ms ago, 25 µs later on: for two threads
    2 500 iterations and 30 000 to 50 000. Between these little is lost either way."""
    waking_seconds: float = 5e-6
    """Waking the threads of a region, between what it costs soon and long after the last one."""
    awake_seconds: float = 1e-6
    """One more region soon after another, whose threads are still awake. Measured: 1 µs."""
    further_thread_share: float = 0.85
    """The part of a kernel's time on one thread that each thread after the first saves. Not
    measured."""

    # ------------------------------------------------------------ units of a GPU

    iteration_latency_seconds: float = 1e-7
    """An iteration of a thread's own loop, of which the compiler has a few under way. Not
    measured."""
    unknown_rows_ratio: float = 4.0
    """How many times the mean the longest row of an operand is, where rows are not counted."""
    iteration_instructions: float = 12.0
    """An innermost iteration of a warp: loads, 64-bit positions, a product and a sum. Not
    measured."""
    combine_iterations: float = 3.0
    """Combining what the threads of a warp have, in such iterations; four times as many for a
    block, whose threads wait for each other twice. Not measured."""
    atomic_seconds: float = 1e-11
    """An atomic addition, where many are under way. Not measured."""
    search_iterations: float = 24.0
    """Looking for the first and the last row of a range of entries of 65 536 rows. Not measured."""
    strided_ratio: float = 1.5
    """How many times the bytes of a row move where each thread walks a row of its own: what is
    left of a sector may be gone when it is needed. Not measured."""

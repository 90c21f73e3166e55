"""The cost of an iteration that waits for the one before it.

    for j:  A[i,j] = 0.25 * (A[i-1,j] + A[i+1,j] + A[i,j-1] + A[i,j+1])

Each iteration needs A[i,j-1], the result of the previous one, and so about half of its operations
are sequential: `latency` cycles. The out-of-order window of a processor overlaps iterations of the
next row with the current row, more of them for shorter rows. With rows of L iterations, and a
window of W of them,

    cycles = latency / (1 + W / L)

Measured on a Zen 3 for the stencil above: 7.2 cycles in rows of 1000, 5.0 of 64, 3.6 of 32, 2.8 of
16 (W = 30); for one with nine reads and a division 23.8, 20.6, 17.4, 12.6 (W = 12).
"""

from __future__ import annotations

from polyhedral.model import Access, Statement

ACCESS_CYCLES = 2.0
"""Cycles of latency for each access: its operation takes 4 cycles, and half of them wait."""
WINDOW = 256
"""The instructions in a processor's out-of-order window."""
ACCESS_INSTRUCTIONS = 2
"""The instructions of an access: a load and an operation."""


def chained(statement: Statement, loop: str | None) -> bool:
    """Tell whether an iteration of `loop` reads a value that an earlier one wrote.

    The distance is a fixed number of iterations. Sums that may change places do not count: they are
    computed in vectors.
    """
    if loop not in statement.variables:
        return False
    writes = [access for access in statement.accesses if access.writes and access.operator is None]
    reads = [access for access in statement.accesses if access.reads and access.operator is None]
    return any(_follows(read, write, loop) for write in writes for read in reads)


def _follows(read: Access, write: Access, loop: str) -> bool:
    """Tell whether `read` gets the value of `write` at an earlier iteration of `loop` alone."""
    if read.array != write.array or len(read.subscripts) != len(write.subscripts):
        return False
    distances: set[float] = set()
    for mine, its in zip(read.subscripts, write.subscripts, strict=True):
        difference, factor = its - mine, its.coefficient(loop)
        if difference.terms or (difference.constant and not factor):
            return False
        if factor:
            distances.add(difference.constant / factor)
    return all(distance > 0 for distance in distances) and len(distances) < 2


def chain_cycles(statement: Statement, row: float) -> float:
    """Return the cycles of an iteration in rows of `row` iterations, with a chain along them."""
    accesses = len(statement.accesses)
    window = WINDOW / (ACCESS_INSTRUCTIONS * accesses)
    return ACCESS_CYCLES * accesses / (1 + window / row)

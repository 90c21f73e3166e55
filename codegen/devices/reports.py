"""What the emulated device found wrong with a launch, in words."""

from __future__ import annotations

from enum import Enum

from codegen.devices.device import LaunchError
from codegen.records import dataclass

Place3 = tuple[int, int, int]


class Fault(Enum):
    """Kinds of what may be wrong, in the order of `enum kind` of `cuda_emulation.c`."""

    OUT_OF_BOUNDS = "out of bounds"
    UNINITIALISED = "uninitialised memory"
    SHARED_RACE = "race in shared memory"
    GLOBAL_RACE = "race in global memory"
    DIVERGENT_BARRIER = "divergent barrier"
    DIVERGENT_WARP = "divergent warp"
    MISALIGNED = "misaligned access"
    HANG = "no end"
    UNDEFINED_LANE = "undefined lane"
    CONSTANT_WRITE = "write to constant memory"
    STACK_OVERFLOW = "stack overflow"
    TRAP = "trap"
    LIMIT = "limit of the emulation"
    DIVISION = "division by zero"
    SHIFT = "shift by too much"


FAULTS = tuple(Fault)
RACES = (Fault.SHARED_RACE, Fault.GLOBAL_RACE)
HINTS = {
    Fault.OUT_OF_BOUNDS: "compare the index with the size before the access",
    Fault.UNINITIALISED: "upload or fill the buffer, or write the variable, before it is read; "
    "shared memory holds nothing when a block begins",
    Fault.SHARED_RACE: "put __syncthreads() between the two, or __syncwarp() within a warp",
    Fault.GLOBAL_RACE: "use an atomic for both, or two launches; within a block, __syncthreads()",
    Fault.DIVERGENT_BARRIER: "move __syncthreads() out of the branch or loop",
    Fault.DIVERGENT_WARP: "name in the mask just the lanes that arrive there",
    Fault.MISALIGNED: "access vectors only at multiples of their size",
    Fault.HANG: "see whether the loop's condition can become false; most_steps allows more",
    Fault.UNDEFINED_LANE: "take values from lanes that are in the mask and have not ended",
    Fault.CONSTANT_WRITE: "write to a buffer, or to shared memory",
    Fault.STACK_OVERFLOW: "keep large arrays in shared memory, or give the device a larger stack",
    Fault.TRAP: "the kernel's text called __trap()",
    Fault.DIVISION: "compare the divisor with 0, and the least number divided by -1, before",
    Fault.SHIFT: "shift by 0 to 31 bits, or 63 of 64-bit numbers",
    Fault.LIMIT: "put a __syncthreads() into the loop, or split the text",
}


@dataclass(frozen=True, slots=True)
class Party:
    """A thread of a block, at a line of the text; 0 where the line is not told."""

    block: Place3
    thread: Place3
    line: int = 0

    def __str__(self) -> str:
        at = f", line {self.line}" if self.line else ""
        return f"thread {self.thread} of block {self.block}{at}"


@dataclass(frozen=True, slots=True)
class Report:
    """One thing that is wrong: what, who did it, against whom, and where in which memory.

    who     None where the host did it: what it downloads
    buffer  the name of a buffer or shared variable; "" where it is none
    offset  from its beginning in bytes
    size    of the access in bytes
    source  the line of the kernel's text
    """

    fault: Fault
    kernel: str
    who: Party | None
    against: Party | None
    buffer: str
    offset: int
    size: int
    detail: str
    source: str

    @property
    def line(self) -> int:
        """Return the line of the kernel's text, 0 where no thread of a kernel is at fault."""
        return 0 if self.who is None else self.who.line

    def __str__(self) -> str:
        lines = [f"{self.fault.value}: {self.detail}"]
        if self.who is not None:
            lines.append(f"  by {self.who} of {self.kernel}")
        if self.source:
            lines[-1] += f": {self.source}"
        if self.against is not None:
            lines.append(f"  against {self.against}")
        return "\n".join(lines)


class EmulationError(LaunchError):
    """A launch in which something is wrong: `reports` tells it."""

    def __init__(self, kernel: str, launch: str, reports: tuple[Report, ...]) -> None:
        self.reports = reports
        faults = dict.fromkeys(report.fault for report in reports)
        hint = "; ".join(HINTS[fault] for fault in faults)
        super().__init__(kernel, launch, "\n".join(map(str, reports)), hint)

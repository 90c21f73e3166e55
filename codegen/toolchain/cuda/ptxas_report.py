"""What ptxas tells of the kernels that it compiles, from the lines that `-Xptxas -v` prints.

ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    1600 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem, 368 bytes cmem[0]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from codegen.records import dataclass

_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_REGISTERS = re.compile(r"Used (\d+) registers")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+)(?:\+\d+)? bytes cmem\[\d+\]")


@dataclass(frozen=True, slots=True)
class KernelReport:
    """What a kernel takes on an architecture.

    registers     of a thread, as are the bytes of its `stack` and of spilled registers
    shared_bytes  of a block's variables, without dynamic memory
    """

    kernel: str
    architecture: str
    registers: int
    shared_bytes: int
    spill_stores: int
    spill_loads: int
    stack: int
    barriers: int = 0
    constant_bytes: int = 0

    @property
    def spills(self) -> int:
        """Return bytes that a thread stores and loads because registers do not suffice."""
        return self.spill_stores + self.spill_loads


def parse_report(printed: str) -> tuple[KernelReport, ...]:
    """Return the kernels of a report, in its order; functions that are no kernels are left out."""
    return tuple(_reports(printed))


def _reports(printed: str) -> Iterator[KernelReport]:
    entry: tuple[str, str] | None = None
    stack = (0, 0, 0)
    about = ""
    for line in printed.splitlines():
        if match := _ENTRY.search(line):
            entry, stack, about = (match[1], match[2]), (0, 0, 0), match[1]
        elif match := _PROPERTIES.search(line):
            about = match[1]
        elif entry is None:
            continue
        elif (match := _STACK.search(line)) and about == entry[0]:
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif match := _REGISTERS.search(line):
            yield KernelReport(
                *entry,
                int(match[1]),
                _sum(_SHARED, line),
                stack[1],
                stack[2],
                stack[0],
                _sum(_BARRIERS, line),
                _sum(_CONSTANT, line),
            )
            entry = None


def _sum(pattern: re.Pattern[str], line: str) -> int:
    return sum(int(number) for number in pattern.findall(line))

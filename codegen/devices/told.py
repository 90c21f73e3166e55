"""A report of the emulated device's C part, as the value that errors carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codegen.devices.device import Shape
from codegen.devices.line_table import LineTable
from codegen.devices.reports import FAULTS, Fault, Party, Place3, Report
from codegen.records import dataclass

_NOBODY = 0xFFFFFFFF
_ACCESSES = ("read", "write", "atomic", "volatile read", "volatile write")
_WHY_APART = {
    1: "the other one is not there",
    2: "the other one waits with another mask",
    3: "the other one waits at another function",
}


@dataclass(frozen=True, slots=True)
class Names:
    """The lines of a kernel's text, and which of them an address of the library was made of."""

    text: tuple[str, ...]
    lines: LineTable

    def line(self, address: int) -> int:
        """The line of the call that returns to `address`, 0 where nothing says it."""
        return self.lines.line_of(int(address) - 1) if address else 0

    def source(self, line: int) -> str:
        """The text of a line, without the blanks around it."""
        return self.text[line - 1].strip() if 0 < line <= len(self.text) else ""


def tell(kernel: str, shape: Shape, row: Any, buffers: Sequence[str], names: Names) -> Report:
    """The report that C wrote into `row`."""
    fault = FAULTS[row.kind]
    line = int(row.line) or names.line(row.pc)
    buffer = buffers[row.buffer] if row.buffer >= 0 else ""
    against = None
    if row.other_thread != _NOBODY:
        other_line = int(row.other_line) or names.line(row.other_pc)
        against = Party(
            _split(row.other_block, shape.grid), _split(row.other_thread, shape.block), other_line
        )
    return Report(
        fault,
        kernel,
        Party(_split(row.block, shape.grid), _split(row.thread, shape.block), line),
        against,
        buffer,
        int(row.offset),
        int(row.size),
        _detail(fault, row, buffer),
        names.source(line),
    )


def _detail(fault: Fault, row: Any, buffer: str) -> str:
    access = f"{_ACCESSES[row.detail & 7]} of {row.size} bytes"
    at = f"at byte {row.offset} of {buffer}" if buffer else f"at address {row.address:#x}"
    match fault:
        case Fault.OUT_OF_BOUNDS:
            return f"{access} {at}" if buffer else f"{access} {at}, which is in no buffer"
        case Fault.UNINITIALISED | Fault.MISALIGNED | Fault.CONSTANT_WRITE:
            return f"{access} {at}"
        case Fault.SHARED_RACE | Fault.GLOBAL_RACE:
            other = "atomic" if row.detail & 32 else "write" if row.detail & 16 else "read"
            return f"{access} {at}, after a {other} of another thread with no order between"
        case Fault.DIVERGENT_BARRIER if row.detail:
            return "a thread waits at a barrier, while one that waited at earlier ones has ended"
        case Fault.DIVERGENT_BARRIER:
            return "threads of a block wait at different barriers"
        case Fault.DIVERGENT_WARP if row.detail == 4:
            return f"the mask {row.lanes:#010x} does not name the lane itself"
        case Fault.DIVERGENT_WARP:
            why = _WHY_APART.get(int(row.detail), "the other one does not arrive")
            return f"not all lanes of the mask {row.lanes:#010x} arrive: {why}"
        case Fault.UNDEFINED_LANE if row.detail:
            return f"a shuffle of width {row.detail}, which is no power of 2 up to 32"
        case Fault.UNDEFINED_LANE:
            return f"a value of a lane that is not in the mask {row.lanes:#010x} or has ended"
        case Fault.HANG:
            return "a thread with no end"
        case _:
            return str(fault.value)


def _split(number: int, sizes: Place3) -> Place3:
    x, y, _ = sizes
    return int(number % x), int(number // x % y), int(number // x // y)

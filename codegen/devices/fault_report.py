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
_NOT_ITSELF = 4
_WHY_APART = {
    1: "the other one does not",
    2: "the other one waits with another mask",
    3: "the other one waits at another function",
}
_BARRIERS = (
    "threads of a block wait at different barriers",
    "a thread waits at a barrier, while one that waited at earlier ones has ended",
)
_WORDS = {
    Fault.HANG: "a thread that does not end",
    Fault.STACK_OVERFLOW: "a thread's own variables take more than its stack",
    Fault.TRAP: "__trap() was called",
    Fault.LIMIT: "more meetings of lanes between two barriers of their block, or accesses in the "
    "text, than the emulation can follow",
    Fault.DIVISION: "a division by 0, or of the least number by -1",
    Fault.SHIFT: "a shift by {number}",
}
"""What is said where a report has no memory."""


@dataclass(frozen=True, slots=True)
class Names:
    """The lines of a kernel's text, and which of them an address of the library was made of."""

    text: tuple[str, ...]
    lines: LineTable

    def line(self, address: int) -> int:
        """Return the line of the call that returns to `address`, 0 where nothing says it."""
        return self.lines.line_of(int(address) - 1) if address else 0

    def source(self, line: int) -> str:
        """Return the text of a line, without the blanks around it."""
        return self.text[line - 1].strip() if 0 < line <= len(self.text) else ""


def tell(
    kernel: str, shape: Shape, row: Any, buffers: Sequence[str], names: Names, array: str
) -> Report:
    """Return the report that C wrote into `row`, about an array of type `array`, if not ""."""
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
        f"index {row.offset} of {array}" if array else _detail(fault, row, buffer),
        names.source(line),
    )


def _detail(fault: Fault, row: Any, buffer: str) -> str:
    """Describe the fault in the words of its kind."""
    if fault in _WORDS:
        return _WORDS[fault].format(number=int(row.offset))
    if fault is Fault.DIVERGENT_BARRIER:
        return _BARRIERS[int(row.detail)]
    if fault in (Fault.DIVERGENT_WARP, Fault.UNDEFINED_LANE):
        return _lanes(fault, int(row.detail), f"{row.lanes:#010x}")
    access = f"{_ACCESSES[row.detail & 15]} of {row.size} bytes"
    at = f"at byte {row.offset} of {buffer}" if buffer else f"at address {row.address:#x}"
    if fault in (Fault.SHARED_RACE, Fault.GLOBAL_RACE):
        other = _ACCESSES[row.detail >> 4]
        return f"{access} {at}, after a {other} of another thread with no order between"
    return f"{access} {at}" if buffer else f"{access} {at}, which is in no buffer"


def _lanes(fault: Fault, detail: int, mask: str) -> str:
    if fault is Fault.UNDEFINED_LANE and detail:
        return f"a shuffle of width {detail}, which is no power of 2 up to 32"
    if fault is Fault.UNDEFINED_LANE:
        return f"a value of a lane that is not in the mask {mask} or has ended"
    if detail == _NOT_ITSELF:
        return f"the mask {mask} does not name the lane itself"
    return f"not all lanes of the mask {mask} arrive: {_WHY_APART.get(detail, _WHY_APART[1])}"


def _split(number: int, sizes: Place3) -> Place3:
    x, y, _ = sizes
    return int(number % x), int(number // x % y), int(number // x // y)

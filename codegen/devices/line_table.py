"""Where an address of a shared object comes from: its variables, and lines of its source.

Reads what the linker wrote: ELF's table of symbols, and the line program of DWARF 4 (its section
6.2), which compilers write with `-gdwarf-4`. Needs no other program.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Iterator
from pathlib import Path

from codegen.records import dataclass


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable at `address`, relative to where the object is loaded, of `size` bytes.

    line  where it is declared, 0 where nothing says it
    """

    name: str
    address: int
    size: int
    line: int = 0


@dataclass(frozen=True, slots=True)
class LineTable:
    """Addresses in ascending order, with the line of `name` that each begins, 0 for none."""

    addresses: tuple[int, ...]
    lines: tuple[int, ...]

    def line_of(self, address: int) -> int:
        """Return the line that the code at `address` was made of, 0 where nothing says it."""
        place = bisect.bisect_right(self.addresses, address) - 1
        return self.lines[place] if place >= 0 else 0


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int


class SharedObject:
    """A 64-bit little-endian ELF file. Raises ValueError for another one."""

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        if self._data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is no 64-bit little-endian ELF file")
        self._sections = self._read_sections()

    def variables(self, section: str) -> tuple[Variable, ...]:
        """Return the variables of `section`, in the order of their addresses."""
        numbers = [i for i, s in enumerate(self._sections) if s.name == section]
        variables = []
        for table in (s for s in self._sections if s.kind == 2):  # SHT_SYMTAB
            strings = self._sections[table.link]
            for at in range(table.offset, table.offset + table.size, 24):
                name, info, _, index, value, size = struct.unpack_from("<IBBHQQ", self._data, at)
                if index in numbers and info & 15 == 1:  # STT_OBJECT
                    variables.append(Variable(self._string(strings.offset + name), value, size))
        return tuple(sorted(variables, key=lambda variable: variable.address))

    def line_table(self, name: str) -> LineTable:
        """Return the lines of the source file called `name`."""
        rows: list[tuple[int, int]] = []
        for section in self._sections:
            if section.name == ".debug_line":
                data = self._data[section.offset : section.offset + section.size]
                rows += _rows(data, name)
        rows.sort()
        return LineTable(tuple(a for a, _ in rows), tuple(line for _, line in rows))

    def _read_sections(self) -> list[_Section]:
        (start,) = struct.unpack_from("<Q", self._data, 0x28)
        size, count, names = struct.unpack_from("<HHH", self._data, 0x3A)
        raw = [struct.unpack_from("<IIQQQQII", self._data, start + size * i) for i in range(count)]
        text = raw[names][4]
        return [_Section(self._string(text + r[0]), r[1], r[4], r[5], r[6]) for r in raw]

    def _string(self, offset: int) -> str:
        return self._data[offset : self._data.index(b"\0", offset)].decode()


def _rows(data: bytes, name: str) -> Iterator[tuple[int, int]]:
    """Yield (address, line) of the line programs in `data`; line 0 for other files than `name`."""
    at = 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        unit = data[at + 4 : at + 4 + length]
        at += 4 + length
        (version,) = struct.unpack_from("<H", unit, 0)
        if version == 4:
            yield from _LineProgram(unit, name).run()


class _LineProgram:
    """The state machine of DWARF 4, section 6.2.2."""

    def __init__(self, unit: bytes, name: str) -> None:
        self._unit = unit
        (header,) = struct.unpack_from("<I", unit, 2)
        fields: tuple[int, ...] = struct.unpack_from("<BBBbBB", unit, 6)
        self._shortest, self._line_base = fields[0], fields[3]
        self._line_range, self._opcode_base = fields[4:]
        self._lengths = unit[12 : 11 + self._opcode_base]
        self._at = 11 + self._opcode_base
        self._files = self._read_files(name)
        self._at = 6 + header
        self._address, self._line, self._file = 0, 1, 1

    def run(self) -> Iterator[tuple[int, int]]:
        """Yield the rows of the table."""
        while self._at < len(self._unit):
            opcode = self._byte()
            if opcode >= self._opcode_base:
                adjusted = opcode - self._opcode_base
                self._address += adjusted // self._line_range * self._shortest
                self._line += self._line_base + adjusted % self._line_range
                yield self._row()
            elif opcode == 0:
                yield from self._extended()
            elif opcode == 1:  # DW_LNS_copy
                yield self._row()
            else:
                self._standard(opcode)

    def _row(self) -> tuple[int, int]:
        return self._address, self._line if self._file in self._files else 0

    def _extended(self) -> Iterator[tuple[int, int]]:
        length = self._unsigned()
        end = self._at + length
        opcode = self._byte()
        if opcode == 1:  # DW_LNE_end_sequence
            yield self._address, 0
            self._address, self._line, self._file = 0, 1, 1
        elif opcode == 2:  # DW_LNE_set_address
            (self._address,) = struct.unpack_from("<Q", self._unit, self._at)
        self._at = end

    def _standard(self, opcode: int) -> None:
        if opcode == 2:  # DW_LNS_advance_pc
            self._address += self._unsigned() * self._shortest
        elif opcode == 3:  # DW_LNS_advance_line
            self._line += self._signed()
        elif opcode == 4:  # DW_LNS_set_file
            self._file = self._unsigned()
        elif opcode == 8:  # DW_LNS_const_add_pc
            self._address += (255 - self._opcode_base) // self._line_range * self._shortest
        elif opcode == 9:  # DW_LNS_fixed_advance_pc
            self._address += struct.unpack_from("<H", self._unit, self._at)[0]
            self._at += 2
        else:
            for _ in range(self._lengths[opcode - 1]):
                self._unsigned()

    def _read_files(self, name: str) -> set[int]:
        """Return the numbers of the files called `name`."""
        while self._text():
            pass
        numbers, number = set(), 1
        while text := self._text():
            if text == name:
                numbers.add(number)
            for _ in range(3):
                self._unsigned()
            number += 1
        return numbers

    def _text(self) -> str:
        end = self._unit.index(b"\0", self._at)
        text = self._unit[self._at : end].decode(errors="replace")
        self._at = end + 1
        return text

    def _byte(self) -> int:
        self._at += 1
        return self._unit[self._at - 1]

    def _unsigned(self) -> int:
        """Read an unsigned number in LEB128."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def _signed(self) -> int:
        start = self._at
        value = self._unsigned()
        bits = 7 * (self._at - start)
        return value - (1 << bits) if value >> (bits - 1) & 1 else value

"""What a processor can do at most: operations, loads and bytes a second, by threads.

peak("float64", 1)   operations a second of multiply-adds in registers
roofs                the caches and memory, the nearest first, each with its bytes a second
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from codegen.records import dataclass

LANES = {"float64": 1, "float32": 2, "complex128": 1, "complex64": 2}
"""Types whose operations are measured, and their elements in the place of a double."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Amounts a second: by one thread, and by all together."""

    one: float
    all: float

    def of(self, threads: int, most: int) -> float:
        """Return the rate of so many threads of `most`.

        >>> Rate(10.0, 15.0).of(2, 4)
        15.0
        """
        if threads <= 1:
            return self.one
        return max(self.one, self.all) if threads >= most else min(self.one * threads, self.most)

    @property
    def most(self) -> float:
        """Return the rate of any number of threads."""
        return max(self.one, self.all)


@dataclass(frozen=True, slots=True)
class Roof:
    """A cache, or memory.

    bytes     that it holds; 0 of memory
    shared    whether all threads have it together, and not each its own
    """

    name: str
    bytes: int
    shared: bool
    rate: Rate


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What was measured of a processor.

    when          the day and the minute, as ISO 8601 has them
    threads       that all together are
    doubles, floats  operations a second of multiply-adds, two for each
    loads         instructions a second that load an element
    """

    processor: str
    when: str
    threads: int
    vector_bytes: int
    registers: int
    doubles: Rate
    floats: Rate
    loads: Rate
    roofs: tuple[Roof, ...]

    def peak(self, dtype: str, threads: int = 1) -> float | None:
        """Return operations a second on a type of elements, None where they were not measured."""
        lanes = LANES.get(dtype)
        if lanes is None:
            return None
        return (self.doubles if lanes == 1 else self.floats).of(threads, self.threads)

    @property
    def register_bytes(self) -> int:
        """Return the bytes of all vector registers of a thread."""
        return self.vector_bytes * self.registers


def higher(ceilings: Ceilings, before: Ceilings) -> Ceilings:
    """Return the ceilings with the higher of both figures each; others where the caches are not
    alike."""
    alike = [roof.name for roof in ceilings.roofs] == [roof.name for roof in before.roofs]
    if not alike:
        return ceilings
    roofs = (
        replace(one, rate=_higher(one.rate, other.rate))
        for one, other in zip(ceilings.roofs, before.roofs, strict=True)
    )
    return replace(
        ceilings,
        doubles=_higher(ceilings.doubles, before.doubles),
        floats=_higher(ceilings.floats, before.floats),
        loads=_higher(ceilings.loads, before.loads),
        roofs=tuple(roofs),
    )


def _higher(one: Rate, other: Rate) -> Rate:
    return Rate(max(one.one, other.one), max(one.all, other.all))


def to_json(ceilings: Ceilings) -> dict[str, Any]:
    """Return the fields that a file keeps of the ceilings."""
    return {
        "processor": ceilings.processor,
        "when": ceilings.when,
        "threads": ceilings.threads,
        "vector_bytes": ceilings.vector_bytes,
        "registers": ceilings.registers,
        "doubles": _pair(ceilings.doubles),
        "floats": _pair(ceilings.floats),
        "loads": _pair(ceilings.loads),
        "roofs": [[r.name, r.bytes, r.shared, *_pair(r.rate)] for r in ceilings.roofs],
    }


def from_json(fields: Mapping[str, Any]) -> Ceilings:
    """Return the ceilings that `to_json` has written. Raises KeyError, TypeError or ValueError for
    something else."""
    roofs = tuple(
        Roof(str(name), int(size), bool(shared), _rate(rates))
        for name, size, shared, *rates in fields["roofs"]
    )
    return Ceilings(
        str(fields["processor"]),
        str(fields["when"]),
        int(fields["threads"]),
        int(fields["vector_bytes"]),
        int(fields["registers"]),
        _rate(fields["doubles"]),
        _rate(fields["floats"]),
        _rate(fields["loads"]),
        roofs,
    )


def _pair(rate: Rate) -> list[float]:
    return [rate.one, rate.all]


def _rate(pair: Sequence[float]) -> Rate:
    one, all_ = (float(figure) for figure in pair)
    if not (one > 0 and all_ > 0):
        raise ValueError(f"Expected rates above 0, found {one} and {all_}")
    return Rate(one, all_)

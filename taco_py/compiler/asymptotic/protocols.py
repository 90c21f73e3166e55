"""Protocols: how statements access the modes of tensors.

STEP    a loop walks the coordinates that a mode stores, in order
LOCATE  a loop runs independently of the mode, whose coordinates are located
APPEND  coordinates are written in order
INSERT  coordinates are written in any order

(Ahrens et al. 2022, section 3: protocolised concrete index notation.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from itertools import combinations
from typing import assert_never

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import Assign, Forall, Sequence, Statement, Where
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access


class Protocol(Enum):
    STEP = "step"
    LOCATE = "locate"
    APPEND = "append"
    INSERT = "insert"


def choices(access: Access) -> tuple[frozenset[str], ...]:
    """Return the sets of indices along which an access may be stepped through, the largest
    first."""
    sizes = range(len(access.indices), -1, -1)
    sets = (frozenset(c) for size in sizes for c in combinations(access.indices, size))
    return tuple(dict.fromkeys(sets))


@dataclass(frozen=True, slots=True)
class Directed:
    """A statement with the indices along which each access is stepped through.

    Modes that are read and not stepped through are located. Modes are visited in the order of the
    loops: operands in another storage order are transposed first, which costs no more than reading.
    """

    statement: Statement
    steps: Mapping[Access, frozenset[str]]

    def protocol(self, access: Access, index: str) -> Protocol:
        """Return the protocol of `index` of an access that is read."""
        stepped = index in self.steps.get(access, ())
        return Protocol.STEP if stepped else Protocol.LOCATE

    def writes(self) -> Iterator[tuple[Access, tuple[Protocol, ...]]]:
        """Yield every access that is written, with a protocol for each of its modes."""
        return _writes(self.statement, ())

    def __str__(self) -> str:
        parts = [
            f"{access.tensor}[{', '.join(f'{i}: {self.protocol(access, i).value}' for i in modes)}]"
            for access in _reads(self.statement)
            if (modes := access.indices) and access in self.steps
        ]
        for access, protocols in self.writes():
            pairs = zip(access.indices, protocols, strict=True)
            modes_text = ", ".join(f"{index}: {protocol.value}" for index, protocol in pairs)
            if modes_text:
                parts.append(f"{access.tensor}[{modes_text}]")
        return "; ".join(parts)


def assignments(statement: Statement) -> Iterator[tuple[Assign, tuple[str, ...]]]:
    """Yield every assignment with the loops around it, producers first."""

    def visit(part: Statement, bound: tuple[str, ...]) -> Iterator[tuple[Assign, tuple[str, ...]]]:
        match part:
            case Assign():
                yield part, bound
            case Forall(index, body):
                yield from visit(body, (*bound, index))
            case Where(_, consumer, producer):
                yield from visit(producer, bound)
                yield from visit(consumer, bound)
            case Sequence(statements):
                for child in statements:
                    yield from visit(child, bound)
            case _:
                assert_never(part)

    return visit(statement, ())


def _reads(statement: Statement) -> tuple[Access, ...]:
    return tuple(dict.fromkeys(a for s, _ in assignments(statement) for a in accesses(s.value)))


def _writes(
    statement: Statement, bound: tuple[str, ...]
) -> Iterator[tuple[Access, tuple[Protocol, ...]]]:
    """Yield the accesses that are written, with protocols.

    A mode is appended to as long as all loops around it are over modes of the same tensor.
    """
    match statement:
        case Assign(target):
            ahead = 0
            while ahead < len(bound) and bound[ahead] in target.indices:
                ahead += 1
            first = set(bound[:ahead])
            yield (
                target,
                tuple(Protocol.APPEND if i in first else Protocol.INSERT for i in target.indices),
            )
        case Forall(index, body):
            yield from _writes(body, (*bound, index))
        case Where(_, consumer, producer):
            yield from _writes(producer, ())  # a workspace begins anew here
            yield from _writes(consumer, bound)
        case Sequence(statements):
            for part in statements:
                yield from _writes(part, bound)
        case _:
            assert_never(statement)


def any_choice(
    steps: Mapping[Access, frozenset[str]], open_: Iterable[Access]
) -> dict[Access, frozenset[str]]:
    """Return the protocols so far, with the first choice for each other access."""
    return {**steps, **{access: next(iter(choices(access))) for access in open_}}

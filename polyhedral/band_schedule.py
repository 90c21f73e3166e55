"""A new order of execution for the statements of a nest, as plain data.

A schedule gives every statement a row of numbers; instances run in the lexicographic order of
these rows. The rows of the nest itself alternate order numbers and loops; a band of loops may be
replaced by other rows:

    S(i, j) -> [0, i, 0, j, 0]         as written
    S(i, j) -> [0, j, i, 0]            loops exchanged
    S(i, j) -> [0, i/32, j/8, i, j, 0] tiled (`/` rounds down)
    S(t, i) -> [0, t/16, (i+t)/64, t, i+t, 0]   skewed and tiled
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import Enum
from operator import index
from typing import Any

from codegen.records import dataclass
from polyhedral.affine import Affine, affine, variable
from polyhedral.errors import ScheduleError
from polyhedral.model import Nest, Statement

LARGEST_TILE = 2**31
"""Sums of a few products with it stay within 64 bits."""


class Tag(Enum):
    """How the loop of a row is to run; a WAVE along diagonals with the PARALLEL one inside it."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    WAVE = "wave"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Row:
    """`value // size`, rounded down; `name` is that of its loop, empty for a fixed place.

    more    further quotients (value, size) that are added: tiles on one diagonal share the sum
    unroll  iterations of this loop that are to run jammed together, inside the loops below it
    apart   whether full tiles run in loops of their own; of the innermost loop over tiles
    """

    name: str
    value: Affine
    size: int = 1
    tag: Tag = Tag.SERIAL
    more: tuple[tuple[Affine, int], ...] = ()
    unroll: int = 0
    apart: bool = False

    @property
    def quotients(self) -> tuple[tuple[Affine, int], ...]:
        """What is added up: a value and by what it is divided."""
        return ((self.value, self.size), *self.more)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the number at a point of the loops."""
        return sum(value.evaluate(values) // size for value, size in self.quotients)

    def __str__(self) -> str:
        return " + ".join(_quotient(value, size) for value, size in self.quotients)


def _quotient(value: Affine, size: int) -> str:
    if size == 1:
        return str(value)
    plain = len(value.terms) == 1 and not value.constant
    return f"{value}/{size}" if plain else f"({value})/{size}"


@dataclass(frozen=True, slots=True)
class Schedule:
    """The rows of each statement, as many for all of them."""

    rows: tuple[tuple[str, tuple[Row, ...]], ...]

    def of(self, statement: str) -> tuple[Row, ...]:
        """Return the rows of `statement`; KeyError when there is none of that name."""
        return dict(self.rows)[statement]

    @property
    def depth(self) -> int:
        return max((len(rows) for _, rows in self.rows), default=0)

    def position(self, name: str) -> int:
        """Where the row called `name` stands. Raises ScheduleError when there is none."""
        for _, rows in self.rows:
            for position, row in enumerate(rows):
                if row.name == name:
                    return position
        raise ScheduleError(f"Expected one of the loops {self._names()}, found {name}.")

    def _names(self) -> str:
        names = dict.fromkeys(row.name for _, rows in self.rows for row in rows if row.name)
        return ", ".join(names)

    def tagged(self, name: str, tag: Tag) -> Schedule:
        """Return the same order, the loop called `name` tagged. Legality is the caller's to
        check."""
        self.position(name)
        return Schedule(
            tuple(
                (each, tuple(replace(r, tag=tag) if r.name == name else r for r in rows))
                for each, rows in self.rows
            )
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{name} -> [{', '.join(str(row) for row in rows)}]" for name, rows in self.rows
        )


def checked_size(size: Any) -> int:
    """Return `size` as an int, NumPy's integers too. Raises ScheduleError for what no tile can
    have."""
    try:
        found = index(size)
    except TypeError:
        raise ScheduleError(f"Expected tile sizes that are integers, found {size!r}.") from None
    if not 1 <= found <= LARGEST_TILE:
        many = found if abs(found) < 2**64 else "one of more than 64 bits"
        raise ScheduleError(f"Expected a tile size of 1 or more, up to 2^31, found {many}.")
    return found


def original(nest: Nest) -> Schedule:
    """Return the order in which the nest is written."""
    return _padded([(each.name, _written(each)) for each in nest.statements])


def permute(nest: Nest, loops: Sequence[str]) -> Schedule:
    """Return the band of `loops` in that order, outermost first."""
    return rearrange(nest, loops, [Row(name, variable(name)) for name in loops])


def rearrange(nest: Nest, loops: Sequence[str], rows: Sequence[Row]) -> Schedule:
    """Return `rows` in place of the neighbouring loops `loops`, which may be named in any order.

    Every statement inside the outermost of them must be inside all. The rows must tell the
    iterations of the band apart, as they do when they include each loop alone, or a unimodular
    combination of them. Raises ScheduleError.
    """
    band = set(loops)
    if len(band) != len(loops) or not band:
        raise ScheduleError(f"Expected different loops, found {', '.join(loops)}.")
    _check_rows(rows, band)
    known = dict.fromkeys(name for each in nest.statements for name in each.variables)
    foreign = [name for name in loops if name not in known]
    if foreign:
        raise ScheduleError(
            f"Expected loops of the nest, found {foreign[0]}.", f"they are {', '.join(known)}"
        )
    placed = {each.name: _place(each, band) for each in nest.statements}
    inside = {name: place for name, place in placed.items() if place is not None}
    if not inside:
        between = _between(nest, band)
        raise ScheduleError(
            f"Expected neighbouring loops of one nest, found {', '.join(loops)}.",
            f"name {', '.join(between)} too, in between" if between else None,
        )
    _check_perfect(nest, inside, band)
    return _padded(
        [
            (
                each.name,
                _new(each, inside[each.name], len(band), rows)
                if each.name in inside
                else _written(each),
            )
            for each in nest.statements
        ]
    )


def _check_rows(rows: Sequence[Row], band: set[str]) -> None:
    for row in rows:
        foreign = set(row.value.names) - band
        if foreign:
            raise ScheduleError(f"Expected rows of {sorted(band)}, found {row} with {foreign}.")
        if row.size < 1:
            raise ScheduleError(f"Expected a tile size of 1 or more, found {row.size} in {row}.")
    used = {name for row in rows if row.size == 1 for name in row.value.names}
    if used != band:
        missing = ", ".join(sorted(band - used))
        raise ScheduleError(f"Expected an untiled row for every loop, found none for {missing}.")


def _place(statement: Statement, band: set[str]) -> int | None:
    """Return the depth at which the loops of `band` begin in `statement`, where it has them
    together."""
    for start in range(len(statement.loops) - len(band) + 1):
        if set(statement.variables[start : start + len(band)]) == band:
            return start
    return None


def _between(nest: Nest, band: set[str]) -> tuple[str, ...]:
    """Return the loops of a statement that stand between those of `band`."""
    for names in (each.variables for each in nest.statements):
        if band <= set(names):
            places = [place for place, name in enumerate(names) if name in band]
            return tuple(n for n in names[places[0] : places[-1]] if n not in band)
    return ()


def _check_perfect(nest: Nest, inside: Mapping[str, int], band: set[str]) -> None:
    """That no statement shares some of the band's loops, and that the band is in one nest only."""
    (first_name, start), *_ = inside.items()
    first, names = nest.statement(first_name), ", ".join(sorted(band))
    for other in nest.statements:
        shared = len(first.loops) if other is first else first.shared_loops(other)
        if start < shared < start + len(band):
            raise ScheduleError(
                f"Expected {first.name} and {other.name} to share the loops {names}, "
                f"found {other.name} beside one of them.",
                "tile the loops that both have, or give the statements nests of their own",
            )
        if other.name in inside and shared <= start:
            raise ScheduleError(
                f"Expected one nest with the loops {names}, found {first.name} and {other.name} "
                "in different ones.",
                "name loops of different nests differently",
            )


def _written(statement: Statement) -> tuple[Row, ...]:
    rows = [_fixed(statement.order[0])]
    for loop, order in zip(statement.loops, statement.order[1:], strict=True):
        rows += [Row(loop.name, variable(loop.name)), _fixed(order)]
    return tuple(rows)


def _new(statement: Statement, start: int, width: int, rows: Sequence[Row]) -> tuple[Row, ...]:
    written = _written(statement)
    return (*written[: 2 * start + 1], *rows, *written[2 * (start + width) :])


def _fixed(place: int) -> Row:
    return Row("", affine(place))


def _padded(rows: list[tuple[str, tuple[Row, ...]]]) -> Schedule:
    longest = max((len(own) for _, own in rows), default=0)
    fill = _fixed(0)
    return Schedule(tuple((name, own + (fill,) * (longest - len(own))) for name, own in rows))

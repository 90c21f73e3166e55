"""A new order of execution for the statements of a nest, as plain data.

A schedule gives every statement a row of numbers; instances run in the lexicographic order of
these rows. The rows of the nest itself alternate order numbers and loops; a band of loops may be
replaced by other rows:

    S(i, j) -> [0, i, 0, j, 0]         the original order
    S(i, j) -> [0, j, i, 0]            loops interchanged
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
"""The largest size of a tile: sums of a few products with it stay within 64 bits."""


class Tag(Enum):
    """The execution of a row's loop; a WAVE runs along diagonals with the PARALLEL loop inside
    it."""

    SERIAL = "serial"
    PARALLEL = "parallel"
    WAVE = "wave"
    VECTOR = "vector"


@dataclass(frozen=True, slots=True)
class Row:
    """`value // size`, rounded down; `name` is the name of its loop, empty for a constant.

    more       further quotients (value, size) that are added: tiles on one diagonal share the sum
    unroll     iterations of this loop that are unrolled and jammed into the loops below it
    separates  whether full tiles run in separate loops; of the innermost loop over tiles
    """

    name: str
    value: Affine
    size: int = 1
    tag: Tag = Tag.SERIAL
    more: tuple[tuple[Affine, int], ...] = ()
    unroll: int = 0
    separates: bool = False

    @property
    def quotients(self) -> tuple[tuple[Affine, int], ...]:
        """Return the quotients that are added up, as pairs of a value and its divisor."""
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
    """The rows of each statement, equally many for all statements."""

    rows: tuple[tuple[str, tuple[Row, ...]], ...]

    def of(self, statement: str) -> tuple[Row, ...]:
        """Return the rows of `statement`; KeyError where it is unknown."""
        return dict(self.rows)[statement]

    @property
    def depth(self) -> int:
        return max((len(rows) for _, rows in self.rows), default=0)

    def position(self, name: str) -> int:
        """Return the position of the row called `name`. Raises ScheduleError where there is
        none."""
        for _, rows in self.rows:
            for position, row in enumerate(rows):
                if row.name == name:
                    return position
        raise ScheduleError(f"Expected one of the loops {self._names()}, found {name}.")

    def _names(self) -> str:
        names = dict.fromkeys(row.name for _, rows in self.rows for row in rows if row.name)
        return ", ".join(names)

    def tagged(self, name: str, tag: Tag) -> Schedule:
        """Return the same order with the loop called `name` tagged.

        The caller checks legality.
        """
        self.position(name)
        return Schedule(
            tuple(
                (statement, tuple(replace(r, tag=tag) if r.name == name else r for r in rows))
                for statement, rows in self.rows
            )
        )

    def __str__(self) -> str:
        return "\n".join(
            f"{name} -> [{', '.join(str(row) for row in rows)}]" for name, rows in self.rows
        )


def checked_size(size: Any) -> int:
    """Return a valid tile size as an int, also from NumPy's integers. Raises ScheduleError for
    other values."""
    try:
        number = index(size)
    except TypeError:
        raise ScheduleError(f"Expected tile sizes that are integers, found {size!r}.") from None
    if not 1 <= number <= LARGEST_TILE:
        text = number if abs(number) < 2**64 else "one of more than 64 bits"
        raise ScheduleError(f"Expected a tile size of 1 or more, up to 2^31, found {text}.")
    return number


def original(nest: Nest) -> Schedule:
    """Return the order in which the nest is written."""
    return _padded([(statement.name, _original_rows(statement)) for statement in nest.statements])


def permute(nest: Nest, loops: Sequence[str]) -> Schedule:
    """Return the schedule with the band of `loops` in that order, outermost first."""
    return rearrange(nest, loops, [Row(name, variable(name)) for name in loops])


def rearrange(nest: Nest, loops: Sequence[str], rows: Sequence[Row]) -> Schedule:
    """Return the schedule with `rows` in place of the neighbouring loops `loops`, named in any
    order.

    Every statement inside the outermost of them must be inside all. The rows must distinguish the
    iterations of the band, as they do when they include each loop alone, or a unimodular
    combination of them. Raises ScheduleError.
    """
    band = set(loops)
    if len(band) != len(loops) or not band:
        raise ScheduleError(f"Expected different loops, found {', '.join(loops)}.")
    _check_rows(rows, band)
    names = dict.fromkeys(name for statement in nest.statements for name in statement.variables)
    foreign = [name for name in loops if name not in names]
    if foreign:
        raise ScheduleError(
            f"Expected loops of the nest, found {foreign[0]}.", f"they are {', '.join(names)}"
        )
    placed = {statement.name: _place(statement, band) for statement in nest.statements}
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
                statement.name,
                _new(statement, inside[statement.name], len(band), rows)
                if statement.name in inside
                else _original_rows(statement),
            )
            for statement in nest.statements
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
    """Return the depth at which the loops of `band` begin in `statement`, if they are adjacent."""
    for start in range(len(statement.loops) - len(band) + 1):
        if set(statement.variables[start : start + len(band)]) == band:
            return start
    return None


def _between(nest: Nest, band: set[str]) -> tuple[str, ...]:
    """Return the loops of a statement that are between the loops of `band`."""
    for names in (statement.variables for statement in nest.statements):
        if band <= set(names):
            places = [place for place, name in enumerate(names) if name in band]
            return tuple(n for n in names[places[0] : places[-1]] if n not in band)
    return ()


def _check_perfect(nest: Nest, inside: Mapping[str, int], band: set[str]) -> None:
    """Raise ScheduleError where statements share only some loops of the band, or it is in
    several nests."""
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


def _original_rows(statement: Statement) -> tuple[Row, ...]:
    rows = [_fixed(statement.order[0])]
    for loop, order in zip(statement.loops, statement.order[1:], strict=True):
        rows += [Row(loop.name, variable(loop.name)), _fixed(order)]
    return tuple(rows)


def _new(statement: Statement, start: int, width: int, rows: Sequence[Row]) -> tuple[Row, ...]:
    original_rows = _original_rows(statement)
    return (*original_rows[: 2 * start + 1], *rows, *original_rows[2 * (start + width) :])


def _fixed(place: int) -> Row:
    return Row("", affine(place))


def _padded(rows: list[tuple[str, tuple[Row, ...]]]) -> Schedule:
    longest = max((len(present) for _, present in rows), default=0)
    fill = _fixed(0)
    return Schedule(
        tuple((name, present + (fill,) * (longest - len(present))) for name, present in rows)
    )

"""The loops of statements in terms of the directions of a band.

    planes t, i + 2*t, j + 2*t      i = c1 - 2*c0, j = c2 - 2*c0

`c0, c1, …` are the coordinates along the planes: a tile is a box in them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from polyhedral.affine import Affine, variable
from polyhedral.model import Access, Statement

Interval = tuple[int, int]
"""The least and the greatest value."""


def coordinate(place: int) -> str:
    """Return the name of the coordinate along plane `place`."""
    return f"c{place}"


def introduced(planes: Sequence[Affine], variables: Sequence[str]) -> tuple[str | None, ...] | None:
    """Return the loop that each plane introduces beyond those before it; None for a plane without
    one.

    None altogether where a plane introduces two, or one with another factor than 1 or -1.
    """
    names: set[str] = set()
    loops: list[str | None] = []
    for plane in planes:
        new = [name for name in plane.names if name in variables and name not in names]
        if len(new) > 1 or any(abs(plane.coefficient(name)) != 1 for name in new):
            return None
        loops.append(new[0] if new else None)
        names.update(new)
    return tuple(loops)


def along_planes(statement: Statement, planes: Sequence[Affine]) -> dict[str, Affine] | None:
    """Return the loops of `statement` by the coordinates of `planes`; loops that no plane has stay.

    None where the planes do not introduce them one after the other.
    """
    names = introduced(planes, statement.variables)
    if names is None:
        return None
    values: dict[str, Affine] = {}
    for place, (plane, name) in enumerate(zip(planes, names, strict=True)):
        if name is not None:
            factor = plane.coefficient(name)
            rest = (plane - variable(name) * factor).substitute(values)
            values[name] = (variable(coordinate(place)) - rest) * factor
    return values


def moved_accesses(statement: Statement, values: Mapping[str, Affine]) -> tuple[Access, ...]:
    """Return the accesses of `statement` with its loops replaced."""
    return tuple(
        replace(
            access,
            subscripts=tuple(subscript.substitute(values) for subscript in access.subscripts),
        )
        for access in statement.accesses
    )


def ranges(statement: Statement, parameters: Mapping[str, int]) -> dict[str, Interval]:
    """Return an interval that contains the values of each loop, at least one.

    It is exact where bounds use no other loop.
    """
    return {name: (low, max(low, high)) for name, (low, high) in _ends(statement, parameters)}


def never_runs(statement: Statement, parameters: Mapping[str, int]) -> bool:
    """Tell whether intervals of the loops show that one of them has no value."""
    return any(low > high for _, (low, high) in _ends(statement, parameters))


def _ends(statement: Statement, parameters: Mapping[str, int]) -> Iterator[tuple[str, Interval]]:
    """Yield the loops with bounds of their least and greatest values, by intervals."""
    intervals: dict[str, Interval] = {name: (value, value) for name, value in parameters.items()}
    for loop in statement.loops:
        low = max(interval(bound, intervals)[0] for bound in loop.lower)
        high = min(interval(bound, intervals)[1] for bound in loop.upper) - 1
        intervals[loop.name] = (low, max(low, high))
        yield loop.name, (low, high)


def interval(value: Affine, intervals: Mapping[str, Interval]) -> Interval:
    """Return the values that `value` can take."""
    low = high = value.constant
    for name, factor in value.terms:
        ends = [factor * end for end in intervals[name]]
        low, high = low + min(ends), high + max(ends)
    return low, high


def plane_extents(
    statements: Sequence[tuple[Statement, Sequence[Affine]]], parameters: Mapping[str, int]
) -> tuple[int, ...]:
    """Return the extent of each plane, over all statements."""
    spans: list[list[Interval]] = []
    for statement, planes in statements:
        inside = ranges(statement, parameters)
        intervals = {**{name: (value, value) for name, value in parameters.items()}, **inside}
        spans.append([interval(plane, intervals) for plane in planes])
    return tuple(
        max(high for _, high in column) - min(low for low, _ in column) + 1
        for column in zip(*spans, strict=True)
    )

"""Nests run instance by instance: the order they are written in, and the order of a schedule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from polyhedral.band_schedule import Schedule
from polyhedral.model import Access, Nest, Statement, instances

Point = Mapping[str, int]
Instance = tuple[Statement, Point]
MODULUS = 2**61 - 1


def written(nest: Nest, parameters: Point) -> list[Instance]:
    """All instances in the order of the loops as written."""
    found = [(each, point) for each in nest.statements for point in instances(each, parameters)]
    return sorted(found, key=_written_key)


def _written_key(instance: Instance) -> tuple[int, ...]:
    statement, point = instance
    key = [statement.order[0]]
    for name, order in zip(statement.variables, statement.order[1:], strict=True):
        key += [point[name], order]
    return tuple(key)


def new_key(schedule: Schedule, instance: Instance) -> tuple[int, ...]:
    statement, point = instance
    return tuple(row.evaluate(point) for row in schedule.of(statement.name))


def conflicting(first: Instance, second: Instance, parameters: Point) -> Iterator[tuple[Any, Any]]:
    """The pairs of accesses by which two instances touch one element and one of them writes it."""
    for one in first[0].accesses:
        for other in second[0].accesses:
            writes = one.writes or other.writes
            same = one.array == other.array
            if (
                writes
                and same
                and place(one, first, parameters) == place(other, second, parameters)
            ):
                yield one, other


def place(access: Access, instance: Instance, parameters: Point) -> tuple[int, ...]:
    values = {**parameters, **instance[1]}
    return tuple(subscript.evaluate(values) for subscript in access.subscripts)


def pairs(nest: Nest, parameters: Point) -> Iterator[tuple[Instance, Instance, bool]]:
    """Pairs that must stay in order, or whose updates commute (then the last is True)."""
    order = written(nest, parameters)
    for position, first in enumerate(order):
        for second in order[position + 1 :]:
            for one, other in conflicting(first, second, parameters):
                yield first, second, one.commutes(other)


def execute(order: list[Instance], parameters: Point) -> dict[tuple[str, tuple[int, ...]], int]:
    """What is in memory after running `order`, where every statement computes something new."""
    memory: dict[tuple[str, tuple[int, ...]], int] = {}
    for statement, point in order:
        spots = [
            (access, (access.array, place(access, (statement, point), parameters)))
            for access in statement.accesses
        ]
        read = [
            memory.get(spot, hash(spot)) for access, spot in spots
            if access.reads and not access.operator
        ]  # fmt: skip
        result = hash((statement.name, *sorted(point.items()), *read))
        for access, spot in spots:
            if access.writes:
                memory[spot] = _update(access, memory.get(spot, hash(spot)), result)
    return memory


def _update(access: Access, old: int, result: int) -> int:
    match access.operator:
        case "+":
            return (old + result) % MODULUS
        case "*":
            return (old * result) % MODULUS
    return hash((access.mode.value, old if access.reads else 0, result))

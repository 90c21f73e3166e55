"""Pairs of instances that touch one element, and the writers of the values of reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polyhedral.band_schedule import original
from polyhedral.isl.notation import Notation, schedule_map
from polyhedral.model import Access, Nest, Statement

if TYPE_CHECKING:
    import islpy


def conflict(
    context: islpy.Context,
    nest: Nest,
    first: tuple[Statement, Access],
    second: tuple[Statement, Access],
) -> str | None:
    """Return pairs of instances that touch the same element, the first one earlier.

    None where there is no pair.
    """
    import islpy

    names = Notation(nest)
    (source, one), (sink, other) = first, second
    same = [
        f"{names.value(mine, source, 'i')} = {names.value(theirs, sink, 'j')}"
        for mine, theirs in zip(one.subscripts, other.subscripts, strict=True)
    ]
    conditions = [names.domain(source, "i"), names.domain(sink, "j"), *same]
    conditions.append(f"({_before(source, sink)})")
    arrow = f"{names.instance(source, 'i')} -> {names.instance(sink, 'j')}"
    pairs = islpy.Map.read_from_str(
        context, f"{names.header}{{ {arrow} : {' and '.join(conditions)} }}"
    )
    return None if pairs.is_empty() else str(pairs.coalesce())


def distances(
    context: islpy.Context, nest: Nest, relation: str, source: Statement, sink: Statement
) -> tuple[tuple[int | None, int | None], ...]:
    """Return the least and the greatest `sink - source` of each shared loop; None where it is
    unbounded."""
    import islpy

    names = Notation(nest)
    shared = len(source.loops) if source is sink else source.shared_loops(sink)
    differences = ", ".join(f"j{place} - i{place}" for place in range(shared))
    pair = f"{names.instance(source, 'i')} -> {names.instance(sink, 'j')}"
    to_difference = islpy.Map.read_from_str(
        context, f"{names.header}{{ [{pair}] -> [{differences}] }}"
    )
    reached = islpy.Map.read_from_str(context, relation).wrap().apply(to_difference)
    return tuple(
        (_number(reached.dim_min_val(place)), _number(reached.dim_max_val(place)))
        for place in range(shared)
    )


def _number(value: islpy.Val) -> int | None:
    return int(value.to_python()) if value.is_int() else None


def _before(first: Statement, second: Statement) -> str:
    """Return the condition that an instance of `first` comes before one of `second` in the
    original order."""
    shared = len(first.loops) if first is second else first.shared_loops(second)
    pairs = [(f"i{place}", f"j{place}") for place in range(shared)]
    cases = [
        " and ".join([*(f"{i} = {j}" for i, j in pairs[:depth]), f"{pairs[depth][0]} < {later}"])
        for depth, (_, later) in enumerate(pairs)
    ]
    if first is not second and first.order[shared] < second.order[shared]:
        cases.append(" and ".join(f"{i} = {j}" for i, j in pairs) or "true")
    return " or ".join(f"({case})" for case in cases) or "false"


def last_writers(
    context: islpy.Context, nest: Nest, array: str
) -> tuple[tuple[str, str, str], ...]:
    """Return the instances that wrote the values of each read of `array`.

    Triples (writer, reader, relation); reads of initial values have none.
    """
    import islpy

    names = Notation(nest)
    uses = [
        (statement, a)
        for statement in nest.statements
        for a in statement.accesses
        if a.array == array
    ]
    reading = _accesses(names, [(statement, a) for statement, a in uses if a.reads])
    writing = _accesses(names, [(statement, a) for statement, a in uses if a.writes])
    reads = islpy.UnionMap.read_from_str(context, reading)
    writes = islpy.UnionMap.read_from_str(context, writing)
    order = islpy.UnionMap.read_from_str(context, schedule_map(names, original(nest)))
    info = islpy.UnionAccessInfo.from_sink(reads).set_must_source(writes).set_schedule_map(order)
    flow = info.compute_flow().get_must_dependence().coalesce().get_map_list()
    return tuple(
        (
            _statement(nest, pair, islpy.dim_type.in_),
            _statement(nest, pair, islpy.dim_type.out),
            str(pair),
        )
        for pair in (flow.get_at(place) for place in range(flow.n_map()))
    )


def _statement(nest: Nest, relation: islpy.Map, side: islpy.dim_type) -> str:
    name = relation.get_tuple_name(side)
    return nest.statements[int(name[1:])].name


def _accesses(names: Notation, uses: Sequence[tuple[Statement, Access]]) -> str:
    """Return the map from instances to the elements of one array that they touch."""
    parts = [
        f"{names.instance(s, 'i')} -> A[{', '.join(subscripts)}] : {names.domain(s, 'i')}"
        for s, access in uses
        for subscripts in [[names.value(value, s, "i") for value in access.subscripts]]
    ]
    return f"{names.header}{{ {'; '.join(parts)} }}"

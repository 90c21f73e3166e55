"""A nest and its dependences, held in one context for many questions about orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polyhedral.isl.notation import Notation, schedule_map
from polyhedral.model import Access, Nest, Statement
from polyhedral.schedule import Schedule, original

if TYPE_CHECKING:
    import islpy


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A nest and its dependences in a context of ISL, for many questions.

    ordered    pairs of instances, the earlier one first, that touch one element and one writes it
    commuting  those whose updates may also change places
    """

    context: islpy.Context
    names: Notation
    domain: islpy.UnionSet
    ordered: islpy.UnionMap
    commuting: islpy.UnionMap


def hold(context: islpy.Context, nest: Nest) -> Held:
    """The dependences of `nest`, memory-based, as `dependence.dependences` lists them."""
    import islpy

    names = Notation(nest)
    domain = islpy.UnionSet.read_from_str(context, names.domains)
    text = schedule_map(names, original(nest))
    order = islpy.UnionMap.read_from_str(context, text).intersect_domain(domain)
    earlier = order.lex_lt_union_map(order)
    uses = [(each, access) for each in nest.statements for access in each.accesses]
    written, updated, read = (
        _elements(context, names, [use for use in uses if kind(use[1])])
        for kind in (_writes_in_order, _updates, _reads_only)
    )
    changed, seen = written.union(updated), written.union(read)
    strict = changed.apply_range(seen.reverse()).union(seen.apply_range(changed.reverse()))
    strict = strict.intersect(earlier).coalesce()
    both = updated.apply_range(updated.reverse()).intersect(earlier).coalesce()
    return Held(context, names, domain, strict.union(both).coalesce(), both.subtract(strict))


def _writes_in_order(access: Access) -> bool:
    return access.writes and not _updates(access)


def _updates(access: Access) -> bool:
    return access.operator is not None


def _reads_only(access: Access) -> bool:
    return not access.writes


def _elements(
    context: islpy.Context, names: Notation, uses: Sequence[tuple[Statement, Access]]
) -> islpy.UnionMap:
    """From instances to the elements that they touch, of all arrays."""
    import islpy

    arrays = list(dict.fromkeys(a.array for each in names.nest.statements for a in each.accesses))
    parts = [
        f"{names.instance(each, 'i')} -> A{arrays.index(access.array)}[{', '.join(subscripts)}]"
        f" : {names.domain(each, 'i')}"
        for each, access in uses
        for subscripts in [[names.value(value, each, "i") for value in access.subscripts]]
    ]
    return islpy.UnionMap.read_from_str(context, f"{names.header}{{ {'; '.join(parts)} }}")


def keeps_order(held: Held, schedule: Schedule) -> bool:
    """Whether every dependence, of updates too, goes forwards in `schedule`."""
    pairs = _times(held, schedule, held.ordered)
    return all(pair.intersect(_lexicographic(pair, ">=")).is_empty() for pair in _maps(pairs))


def carried(
    held: Held, schedule: Schedule, place: int, statement: str, sign: str = "<>",
    agreed: int | None = None, commuting: bool = True,
) -> bool:  # fmt: skip
    """Whether a dependence with `statement` agrees in the rows before `agreed` (by default `place`)
    and differs at `place`, forwards (`<`) or backwards (`>`); where `commuting`, also one between
    updates that may change places.
    """
    pairs = held.ordered if commuting else held.ordered.subtract(held.commuting)
    mine = _instances(held, statement)
    outer = place if agreed is None else agreed
    near = pairs.intersect_domain(mine).union(pairs.intersect_range(mine))
    return any(
        not _crossing_at(pair, outer, place, each).is_empty()
        for pair in _maps(_times(held, schedule, near))
        for each in sign
    )


def _crossing_at(pair: islpy.Map, agreed: int, place: int, sign: str) -> islpy.Map:
    import islpy

    kinds = islpy.dim_type
    for before in range(agreed):
        pair = pair.equate(kinds.in_, before, kinds.out, before)
    order = pair.order_lt if sign == "<" else pair.order_gt
    return order(kinds.in_, place, kinds.out, place)


def _instances(held: Held, statement: str) -> islpy.UnionSet:
    import islpy

    text = held.names.instance(held.names.nest.statement(statement), "i")
    return islpy.UnionSet.read_from_str(held.context, f"{held.names.header}{{ {text} }}")


def _times(held: Held, schedule: Schedule, pairs: islpy.UnionMap) -> islpy.UnionMap:
    """`pairs` of instances as pairs of rows."""
    import islpy

    order = islpy.UnionMap.read_from_str(held.context, schedule_map(held.names, schedule))
    return pairs.apply_domain(order).apply_range(order)


def _maps(relation: islpy.UnionMap) -> list[islpy.Map]:
    found = relation.get_map_list()
    return [found.get_at(place) for place in range(found.n_map())]


def _lexicographic(pair: islpy.Map, sign: str) -> islpy.Map:
    import islpy

    space = pair.get_space().domain()
    return islpy.Map.lex_ge(space) if sign == ">=" else islpy.Map.lex_lt(space)

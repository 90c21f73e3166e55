"""A nest and its dependences, held in one context for many questions about orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from codegen.records import dataclass
from polyhedral.affine import Affine, affine
from polyhedral.band_schedule import Row, Schedule, original
from polyhedral.isl.notation import Notation, schedule_map
from polyhedral.model import Access, Nest, Statement

if TYPE_CHECKING:
    import islpy


@dataclass(frozen=True, slots=True, eq=False)
class Dependent:
    """Pairs of instances of two statements, the earlier one first, that touch one element and one
    writes it; `commuting` where both update it and may also change places."""

    source: Statement
    sink: Statement
    relation: islpy.Map
    commuting: bool


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A nest and its dependences in a context of ISL, for many questions.

    ordered     all dependences
    dependents  the same by statements. Their pieces are left as they come: one for each pair of
                accesses is what the scheduler needs least time for
    """

    context: islpy.Context
    names: Notation
    domain: islpy.UnionSet
    ordered: islpy.UnionMap
    dependents: tuple[Dependent, ...]


def hold(context: islpy.Context, nest: Nest) -> Held:
    """Return the dependences of `nest`, memory-based, as `dependence.dependences` lists them."""
    import islpy

    names = Notation(nest)
    domain = islpy.UnionSet.read_from_str(context, names.domains)
    text = schedule_map(names, original(nest))
    order = islpy.UnionMap.read_from_str(context, text).intersect_domain(domain)
    earlier = order.lex_lt_union_map(order)
    uses = [(each, access) for each in nest.statements for access in each.accesses]
    written, read = (
        _elements(context, names, [use for use in uses if kind(use[1])])
        for kind in (_writes_in_order, _reads_only)
    )
    strict = both = islpy.UnionMap.empty(earlier.get_space())
    changed, seen = written, written.union(read)
    for operator in dict.fromkeys(a.operator for _, a in uses if a.operator is not None):
        updated = _elements(context, names, [use for use in uses if use[1].operator == operator])
        both = both.union(updated.apply_range(updated.reverse()))
        strict = strict.union(_either(changed, updated))
        changed = changed.union(updated)
    strict = strict.union(_either(changed, seen)).intersect(earlier)
    both = both.intersect(earlier)
    dependents = (*_dependents(nest, strict, False), *_dependents(nest, both, True))
    return Held(context, names, domain, strict.union(both), dependents)


def _either(one: islpy.UnionMap, other: islpy.UnionMap) -> islpy.UnionMap:
    """Return pairs of instances of the two, in both ways, that touch one element."""
    return one.apply_range(other.reverse()).union(other.apply_range(one.reverse()))


def _dependents(nest: Nest, relation: islpy.UnionMap, commuting: bool) -> Iterator[Dependent]:
    import islpy

    found = relation.get_map_list()
    for place in range(found.n_map()):
        each = found.get_at(place)
        source, sink = (
            nest.statements[int(each.get_tuple_name(side)[1:])]
            for side in (islpy.dim_type.in_, islpy.dim_type.out)
        )
        yield Dependent(source, sink, each, commuting)


def _writes_in_order(access: Access) -> bool:
    return access.writes and access.operator is None


def _reads_only(access: Access) -> bool:
    return not access.writes


def _elements(
    context: islpy.Context, names: Notation, uses: Sequence[tuple[Statement, Access]]
) -> islpy.UnionMap:
    """From instances to the elements that they touch, of all arrays, also from those that the
    nest does not run: their order says which it does."""
    import islpy

    arrays = list(dict.fromkeys(a.array for each in names.nest.statements for a in each.accesses))
    parts = dict.fromkeys(
        f"{names.instance(each, 'i')} -> A{arrays.index(access.array)}[{', '.join(subscripts)}]"
        for each, access in uses
        for subscripts in [[names.value(value, each, "i") for value in access.subscripts]]
    )
    return islpy.UnionMap.read_from_str(context, f"{names.header}{{ {'; '.join(parts)} }}")


# ---------------------------------------------------------------- what schedules do to them


def keeps_order(held: Held, schedule: Schedule) -> bool:
    """Tell whether every dependence, of updates too, goes forwards in `schedule`."""
    return all(_goes_forwards(held, schedule, each) for each in held.dependents)


def _goes_forwards(held: Held, schedule: Schedule, pairs: Dependent) -> bool:
    left = pairs.relation
    for place in range(schedule.depth):
        if _compared(held, schedule, pairs, left, place, ">") is not None:
            return False
        agreeing = _compared(held, schedule, pairs, left, place, "=")
        if agreeing is None:
            return True
        left = agreeing
    return False


def carried(
    held: Held, schedule: Schedule, place: int, statement: str, sign: str = "<>",
    agreed: int | None = None, commuting: bool = True,
) -> bool:  # fmt: skip
    """Tell whether a dependence with `statement` agrees in the rows before `agreed` (by default
    `place`) and differs at `place`, forwards (`<`) or backwards (`>`); where `commuting`, also one
    between updates that may change places.
    """
    outer = place if agreed is None else agreed
    return any(
        _crosses(held, schedule, each, outer, place, sign)
        for each in held.dependents
        if statement in (each.source.name, each.sink.name) and (commuting or not each.commuting)
    )


def _crosses(
    held: Held, schedule: Schedule, pairs: Dependent, agreed: int, place: int, signs: str
) -> bool:
    left = pairs.relation
    for before in range(agreed):
        agreeing = _compared(held, schedule, pairs, left, before, "=")
        if agreeing is None:
            return False
        left = agreeing
    return any(_compared(held, schedule, pairs, left, place, sign) is not None for sign in signs)


def _compared(
    held: Held, schedule: Schedule, pairs: Dependent, left: islpy.Map, place: int, sign: str
) -> islpy.Map | None:
    """Those of `left` whose rows at `place` compare by `sign`, the source's on its left side; None
    where there are none."""
    mine, theirs = (schedule.of(each.name)[place] for each in (pairs.source, pairs.sink))
    if not any(value.names for row in (mine, theirs) for value, _ in row.quotients):
        one, other = mine.evaluate({}), theirs.evaluate({})
        return left if (one > other, one == other, one < other)[">=<".index(sign)] else None
    if max(size for row in (mine, theirs) for _, size in row.quotients) > 1:
        found = left.intersect(_comparison(held, pairs, mine, theirs, sign))
    else:
        found = left.add_constraint(_constraint(held, pairs, left, mine, theirs, sign))
    return None if found.is_empty() else found


def _comparison(held: Held, pairs: Dependent, mine: Row, theirs: Row, sign: str) -> islpy.Map:
    import islpy

    names = held.names
    arrow = f"{names.instance(pairs.source, 'i')} -> {names.instance(pairs.sink, 'j')}"
    both = f"{names.row(mine, pairs.source, 'i')} {sign} {names.row(theirs, pairs.sink, 'j')}"
    return islpy.Map.read_from_str(held.context, f"{names.header}{{ {arrow} : {both} }}")


def _constraint(
    held: Held, pairs: Dependent, left: islpy.Map, mine: Row, theirs: Row, sign: str
) -> islpy.Constraint:
    """Return the comparison of two rows without divisions, which takes ISL less time than text."""
    import islpy

    kinds = islpy.dim_type
    space = islpy.LocalSpace.from_space(left.get_space())
    make = islpy.Constraint.equality_alloc if sign == "=" else islpy.Constraint.inequality_alloc
    way = -1 if sign == "<" else 1  # way * (mine - theirs) - 1 >= 0
    one, other = _sum(mine) * way, _sum(theirs) * -way
    found = make(space).set_constant_val(one.constant + other.constant - (sign != "="))
    for kind, names, value in (
        (kinds.in_, pairs.source.variables, one),
        (kinds.out, pairs.sink.variables, other),
        (kinds.param, held.names.nest.parameters, one + other),
    ):
        for at, name in enumerate(names):
            if kind is kinds.param or name in value.names:
                found = found.set_coefficient_val(kind, at, value.coefficient(name))
    return found


def _sum(row: Row) -> Affine:
    return sum((value for value, _ in row.quotients), affine(0))

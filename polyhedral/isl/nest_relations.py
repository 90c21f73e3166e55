"""A nest and its dependences in one context, for many questions about orders."""

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
    """Pairs of instances of two statements, the earlier one first; one writes an element of both.

    commuting  whether both update the element, so that they may change places
    """

    source: Statement
    sink: Statement
    relation: islpy.Map
    commuting: bool


@dataclass(frozen=True, slots=True, eq=False)
class Relations:
    """A nest and its dependences in a context of ISL, for many questions.

    ordered     all dependences
    dependents  the dependences by statements. Their pieces are not simplified: the scheduler is
                fastest with one for each pair of accesses
    """

    context: islpy.Context
    names: Notation
    domain: islpy.UnionSet
    ordered: islpy.UnionMap
    dependents: tuple[Dependent, ...]


def hold(context: islpy.Context, nest: Nest) -> Relations:
    """Return the dependences of `nest`, memory-based, as `dependence.dependences` lists them."""
    import islpy

    names = Notation(nest)
    domain = islpy.UnionSet.read_from_str(context, names.domains)
    text = schedule_map(names, original(nest))
    order = islpy.UnionMap.read_from_str(context, text).intersect_domain(domain)
    earlier = order.lex_lt_union_map(order)
    uses = [(statement, access) for statement in nest.statements for access in statement.accesses]
    writes, read = (
        _elements(context, names, [use for use in uses if kind(use[1])])
        for kind in (_writes_in_order, _reads_only)
    )
    strict = commuting = islpy.UnionMap.empty(earlier.get_space())
    modified, touched = writes, writes.union(read)
    for operator in dict.fromkeys(a.operator for _, a in uses if a.operator is not None):
        updated = _elements(context, names, [use for use in uses if use[1].operator == operator])
        commuting = commuting.union(updated.apply_range(updated.reverse()))
        strict = strict.union(_either(modified, updated))
        modified = modified.union(updated)
    strict = strict.union(_either(modified, touched)).intersect(earlier)
    commuting = commuting.intersect(earlier)
    dependents = (*_dependents(nest, strict, False), *_dependents(nest, commuting, True))
    return Relations(context, names, domain, strict.union(commuting), dependents)


def _either(one: islpy.UnionMap, other: islpy.UnionMap) -> islpy.UnionMap:
    """Return pairs of instances of the two, in both directions, that touch one element."""
    return one.apply_range(other.reverse()).union(other.apply_range(one.reverse()))


def _dependents(nest: Nest, relation: islpy.UnionMap, commuting: bool) -> Iterator[Dependent]:
    import islpy

    pairs = relation.get_map_list()
    for place in range(pairs.n_map()):
        pair = pairs.get_at(place)
        source, sink = (
            nest.statements[int(pair.get_tuple_name(side)[1:])]
            for side in (islpy.dim_type.in_, islpy.dim_type.out)
        )
        yield Dependent(source, sink, pair, commuting)


def _writes_in_order(access: Access) -> bool:
    return access.writes and access.operator is None


def _reads_only(access: Access) -> bool:
    return not access.writes


def _elements(
    context: islpy.Context, names: Notation, uses: Sequence[tuple[Statement, Access]]
) -> islpy.UnionMap:
    """Return the map from instances to the elements of all arrays that they touch.

    Instances that the nest does not run are included: the order excludes them.
    """
    import islpy

    arrays = list(
        dict.fromkeys(a.array for statement in names.nest.statements for a in statement.accesses)
    )
    parts = dict.fromkeys(
        f"{names.instance(s, 'i')} -> A{arrays.index(access.array)}[{', '.join(subscripts)}]"
        for s, access in uses
        for subscripts in [[names.value(value, s, "i") for value in access.subscripts]]
    )
    return islpy.UnionMap.read_from_str(context, f"{names.header}{{ {'; '.join(parts)} }}")


# ---------------------------------------------------------------- effects of schedules


def keeps_order(relations: Relations, schedule: Schedule) -> bool:
    """Tell whether every dependence, of updates too, goes forwards in `schedule`."""
    return all(_goes_forwards(relations, schedule, pairs) for pairs in relations.dependents)


def _goes_forwards(relations: Relations, schedule: Schedule, pairs: Dependent) -> bool:
    left = pairs.relation
    for place in range(schedule.depth):
        if _compared(relations, schedule, pairs, left, place, ">") is not None:
            return False
        agreeing = _compared(relations, schedule, pairs, left, place, "=")
        if agreeing is None:
            return True
        left = agreeing
    return False


def carried(
    relations: Relations, schedule: Schedule, place: int, statement: str, sign: str = "<>",
    agreed: int | None = None, commuting: bool = True,
) -> bool:  # fmt: skip
    """Tell whether a dependence with `statement` differs first at `place`, in a direction of
    `sign`.

    It agrees in the rows before `agreed` (by default `place`) and goes forwards (`<`) or backwards
    (`>`) at `place`. `commuting` includes pairs of updates that may change places.
    """
    outer = place if agreed is None else agreed
    return any(
        _crosses(relations, schedule, pairs, outer, place, sign)
        for pairs in relations.dependents
        if statement in (pairs.source.name, pairs.sink.name) and (commuting or not pairs.commuting)
    )


def _crosses(
    relations: Relations, schedule: Schedule, pairs: Dependent, agreed: int, place: int, signs: str
) -> bool:
    left = pairs.relation
    for before in range(agreed):
        agreeing = _compared(relations, schedule, pairs, left, before, "=")
        if agreeing is None:
            return False
        left = agreeing
    return any(
        _compared(relations, schedule, pairs, left, place, sign) is not None for sign in signs
    )


def _compared(
    relations: Relations,
    schedule: Schedule,
    pairs: Dependent,
    left: islpy.Map,
    place: int,
    sign: str,
) -> islpy.Map | None:
    """Return the pairs of `left` whose rows at `place` compare by `sign`.

    The source's row is on the left side; None where there is no pair.
    """
    mine, theirs = (schedule.of(statement.name)[place] for statement in (pairs.source, pairs.sink))
    if not any(value.names for row in (mine, theirs) for value, _ in row.quotients):
        one, other = mine.evaluate({}), theirs.evaluate({})
        return left if (one > other, one == other, one < other)[">=<".index(sign)] else None
    if max(size for row in (mine, theirs) for _, size in row.quotients) > 1:
        remaining = left.intersect(_comparison(relations, pairs, mine, theirs, sign))
    else:
        remaining = left.add_constraint(_constraint(relations, pairs, left, mine, theirs, sign))
    return None if remaining.is_empty() else remaining


def _comparison(
    relations: Relations, pairs: Dependent, mine: Row, theirs: Row, sign: str
) -> islpy.Map:
    import islpy

    names = relations.names
    arrow = f"{names.instance(pairs.source, 'i')} -> {names.instance(pairs.sink, 'j')}"
    condition = f"{names.row(mine, pairs.source, 'i')} {sign} {names.row(theirs, pairs.sink, 'j')}"
    return islpy.Map.read_from_str(relations.context, f"{names.header}{{ {arrow} : {condition} }}")


def _constraint(
    relations: Relations, pairs: Dependent, left: islpy.Map, mine: Row, theirs: Row, sign: str
) -> islpy.Constraint:
    """Return the comparison of two rows without divisions, which is faster in ISL than text."""
    import islpy

    kinds = islpy.dim_type
    space = islpy.LocalSpace.from_space(left.get_space())
    make = islpy.Constraint.equality_alloc if sign == "=" else islpy.Constraint.inequality_alloc
    way = -1 if sign == "<" else 1  # way * (mine - theirs) - 1 >= 0
    one, other = _sum(mine) * way, _sum(theirs) * -way
    constraint = make(space).set_constant_val(one.constant + other.constant - (sign != "="))
    for kind, names, value in (
        (kinds.in_, pairs.source.variables, one),
        (kinds.out, pairs.sink.variables, other),
        (kinds.param, relations.names.nest.parameters, one + other),
    ):
        for at, name in enumerate(names):
            if kind is kinds.param or name in value.names:
                constraint = constraint.set_coefficient_val(kind, at, value.coefficient(name))
    return constraint


def _sum(row: Row) -> Affine:
    return sum((value for value, _ in row.quotients), affine(0))

"""Relations between statement instances, computed by ISL. The only file that imports islpy.

Every question is asked in a context of its own with a budget of operations, and answered in plain
data or in ISL's notation as text. Names are positions there (statement 0 is S0, its loops i0, i1 …,
the loops of a second instance j0, j1 …, parameters p0, p1 …), so no name of the nest can be one of
ISL's words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from polyhedral.affine import Affine, affine, variable
from polyhedral.errors import BudgetExceededError
from polyhedral.model import Access, Nest, Statement
from polyhedral.schedule import Row, Schedule, original

if TYPE_CHECKING:
    import islpy

BUDGET = 2_000_000
"""Operations of ISL that one question may take, unless the caller says otherwise."""


@contextmanager
def limited(budget: int) -> Iterator[islpy.Context]:
    """A fresh context whose operations, all together, stay within `budget` (0: no limit).

    Raises BudgetExceededError out of the `with` block.
    """
    import islpy

    context = islpy.Context()
    context.set_max_operations(budget)
    try:
        yield context
    except islpy.Error as error:
        if not _exhausted(context):
            raise
        raise BudgetExceededError(
            f"Expected ISL to answer within {budget} operations, found it needs more.",
            "give a larger budget, or keep the loops as they are",
        ) from error
    finally:
        context.set_max_operations(0)


def _exhausted(context: islpy.Context) -> bool:
    """Whether the budget is used up: then even this fails, whatever the first error was called."""
    import islpy

    try:
        islpy.Set.read_from_str(context, "{ : }")
    except islpy.Error:
        return True
    return False


# ---------------------------------------------------------------- the nest in ISL's notation


@dataclass(frozen=True, slots=True)
class Notation:
    """What the names of a nest are called in ISL's notation."""

    nest: Nest

    @property
    def header(self) -> str:
        return f"[{', '.join(self._parameters().values())}] -> "

    def instance(self, statement: Statement, letter: str) -> str:
        """`S0[i0, i1]`."""
        position = [each.name for each in self.nest.statements].index(statement.name)
        return f"S{position}[{', '.join(self.loops(statement, letter).values())}]"

    def loops(self, statement: Statement, letter: str) -> dict[str, str]:
        return {name: f"{letter}{place}" for place, name in enumerate(statement.variables)}

    def value(self, value: Affine, statement: Statement, letter: str) -> str:
        names = {**self._parameters(), **self.loops(statement, letter)}
        return _sum(value, names)

    def row(self, row: Row, statement: Statement, letter: str) -> str:
        parts = [(self.value(value, statement, letter), size) for value, size in row.quotients]
        return " + ".join(
            value if size == 1 else f"floor(({value})/{size})" for value, size in parts
        )

    def domain(self, statement: Statement, letter: str) -> str:
        """The condition under which an instance runs."""
        parts = []
        for loop in statement.loops:
            name = self.loops(statement, letter)[loop.name]
            parts += [f"{self.value(b, statement, letter)} <= {name}" for b in loop.lower]
            parts += [f"{name} < {self.value(b, statement, letter)}" for b in loop.upper]
        parts += [f"{self.value(guard, statement, letter)} >= 0" for guard in statement.guards]
        return " and ".join([*parts, *self.given()]) or "true"

    def given(self) -> list[str]:
        """The conditions on the parameters."""
        names = self._parameters()
        return [f"{_sum(condition, names)} >= 0" for condition in self.nest.context]

    def _parameters(self) -> dict[str, str]:
        return {name: f"p{place}" for place, name in enumerate(self.nest.parameters)}


def _sum(value: Affine, names: Mapping[str, str]) -> str:
    terms = [f"{factor}*{names[name]}" for name, factor in value.terms]
    return " + ".join([*terms, str(value.constant)])


def _before(names: Notation, first: Statement, second: Statement) -> str:
    """That an instance of `first` comes before one of `second` as the nest is written."""
    shared = len(first.loops) if first is second else first.shared_loops(second)
    pairs = [(f"i{place}", f"j{place}") for place in range(shared)]
    cases = [
        " and ".join([*(f"{i} = {j}" for i, j in pairs[:depth]), f"{pairs[depth][0]} < {later}"])
        for depth, (_, later) in enumerate(pairs)
    ]
    if first is not second and first.order[shared] < second.order[shared]:
        cases.append(" and ".join(f"{i} = {j}" for i, j in pairs) or "true")
    return " or ".join(f"({case})" for case in cases) or "false"


def conflict(
    context: islpy.Context,
    nest: Nest,
    first: tuple[Statement, Access],
    second: tuple[Statement, Access],
) -> str | None:
    """Pairs of instances that touch the same element, the first one earlier; None when none do."""
    import islpy

    names = Notation(nest)
    (source, one), (sink, other) = first, second
    same = [
        f"{names.value(mine, source, 'i')} = {names.value(theirs, sink, 'j')}"
        for mine, theirs in zip(one.subscripts, other.subscripts, strict=True)
    ]
    conditions = [names.domain(source, "i"), names.domain(sink, "j"), *same]
    conditions.append(f"({_before(names, source, sink)})")
    arrow = f"{names.instance(source, 'i')} -> {names.instance(sink, 'j')}"
    found = islpy.Map.read_from_str(
        context, f"{names.header}{{ {arrow} : {' and '.join(conditions)} }}"
    )
    return None if found.is_empty() else str(found.coalesce())


def distances(
    context: islpy.Context, nest: Nest, relation: str, source: Statement, sink: Statement
) -> tuple[tuple[int | None, int | None], ...]:
    """Least and greatest `sink - source` of each shared loop; None where there is no bound."""
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


# ---------------------------------------------------------------- the order of pairs


@dataclass(frozen=True, slots=True)
class Pair:
    """Two instances, by the values of their loops, at some values of the parameters."""

    source: tuple[int, ...]
    sink: tuple[int, ...]
    parameters: tuple[int, ...]


def out_of_order(
    context: islpy.Context,
    nest: Nest,
    relation: str,
    sides: Sequence[tuple[Statement, Sequence[Row]]],
) -> Pair | None:
    """A pair of `relation` that the rows of its two statements do not keep in order."""
    import islpy

    names = Notation(nest)
    left = islpy.Map.read_from_str(context, relation)
    for place in range(len(sides[0][1])):
        late = left.intersect(_compare(context, names, sides, place, ">"))
        if not late.is_empty():
            return _sample(late, sides)
        left = left.intersect(_compare(context, names, sides, place, "="))
        if left.is_empty():
            return None
    return _sample(left, sides)


def crossing(
    context: islpy.Context,
    nest: Nest,
    relation: str,
    sides: Sequence[tuple[Statement, Sequence[Row]]],
    outer: int,
    place: int,
    signs: str,
) -> Pair | None:
    """A pair whose rows agree before `outer` and at `place` compare by one of `signs` (`<>`)."""
    import islpy

    names = Notation(nest)
    left = islpy.Map.read_from_str(context, relation)
    for before in range(outer):
        left = left.intersect(_compare(context, names, sides, before, "="))
    for sign in signs:
        found = left.intersect(_compare(context, names, sides, place, sign))
        if not found.is_empty():
            return _sample(found, sides)
    return None


def _compare(
    context: islpy.Context,
    names: Notation,
    sides: Sequence[tuple[Statement, Sequence[Row]]],
    place: int,
    sign: str,
) -> islpy.Map:
    import islpy

    (source, mine), (sink, theirs) = sides
    arrow = f"{names.instance(source, 'i')} -> {names.instance(sink, 'j')}"
    left = names.row(mine[place], source, "i")
    right = names.row(theirs[place], sink, "j")
    return islpy.Map.read_from_str(context, f"{names.header}{{ {arrow} : {left} {sign} {right} }}")


def _sample(pairs: islpy.Map, sides: Sequence[tuple[Statement, Sequence[Row]]]) -> Pair:
    import islpy

    point = pairs.wrap().sample_point()
    values = _coordinates(
        point, islpy.dim_type.set, len(sides[0][0].loops) + len(sides[1][0].loops)
    )
    parameters = _coordinates(point, islpy.dim_type.param, pairs.dim(islpy.dim_type.param))
    first = len(sides[0][0].loops)
    return Pair(values[:first], values[first:], parameters)


def _coordinates(point: islpy.Point, kind: islpy.dim_type, count: int) -> tuple[int, ...]:
    return tuple(int(point.get_coordinate_val(kind, i).to_python()) for i in range(count))


def instance_where(
    context: islpy.Context, nest: Nest, statement: Statement, conditions: Sequence[Affine]
) -> dict[str, int] | None:
    """The loops of an instance of `statement` where all `conditions` are 0 or more; None if none
    is."""
    import islpy

    names = Notation(nest)
    parts = [f"{names.value(condition, statement, 'i')} >= 0" for condition in conditions]
    text = " and ".join([names.domain(statement, "i"), *parts])
    found = islpy.Set.read_from_str(
        context, f"{names.header}{{ {names.instance(statement, 'i')} : {text} }}"
    )
    if found.is_empty():
        return None
    values = _coordinates(found.sample_point(), islpy.dim_type.set, len(statement.loops))
    return dict(zip(statement.variables, values, strict=True))


# ---------------------------------------------------------------- who wrote a value


def last_writers(
    context: islpy.Context, nest: Nest, array: str
) -> tuple[tuple[str, str, str], ...]:
    """The instance that wrote the value each read of `array` gets.

    Triples (writer, reader, relation); reads of what was there before have none.
    """
    import islpy

    names = Notation(nest)
    uses = [(each, a) for each in nest.statements for a in each.accesses if a.array == array]
    reading = _accesses(names, [(each, a) for each, a in uses if a.reads])
    writing = _accesses(names, [(each, a) for each, a in uses if a.writes])
    reads = islpy.UnionMap.read_from_str(context, reading)
    writes = islpy.UnionMap.read_from_str(context, writing)
    order = islpy.UnionMap.read_from_str(context, _schedule_map(names, original(nest)))
    info = islpy.UnionAccessInfo.from_sink(reads).set_must_source(writes).set_schedule_map(order)
    found = info.compute_flow().get_must_dependence().coalesce().get_map_list()
    return tuple(
        (_statement(nest, each, islpy.dim_type.in_), _statement(nest, each, islpy.dim_type.out),
         str(each))
        for each in (found.get_at(place) for place in range(found.n_map()))
    )  # fmt: skip


def _statement(nest: Nest, relation: islpy.Map, side: islpy.dim_type) -> str:
    name = relation.get_tuple_name(side)
    return nest.statements[int(name[1:])].name


def _accesses(names: Notation, uses: Sequence[tuple[Statement, Access]]) -> str:
    """From instances to the elements of one array that they touch."""
    parts = [
        f"{names.instance(each, 'i')} -> A[{', '.join(subscripts)}] : {names.domain(each, 'i')}"
        for each, access in uses
        for subscripts in [[names.value(value, each, "i") for value in access.subscripts]]
    ]
    return f"{names.header}{{ {'; '.join(parts)} }}"


def _schedule_map(names: Notation, schedule: Schedule) -> str:
    parts = [
        f"{names.instance(each, 'i')} -> [{', '.join(rows)}]"
        for each in names.nest.statements
        for rows in [[names.row(row, each, "i") for row in schedule.of(each.name)]]
    ]
    return f"{names.header}{{ {'; '.join(parts)} }}"


# ---------------------------------------------------------------- loops that run a schedule


def scan(context: islpy.Context, nest: Nest, schedule: Schedule) -> islpy.AstNode:
    """The loops that run every instance in the order of `schedule`, as ISL's syntax tree.

    Mark nodes above loops say `name:tag:unroll`; calls S0(…) give the values of the original loops.
    """
    import islpy

    names = Notation(nest)
    domains = "; ".join(
        f"{names.instance(each, 'i')} : {names.domain(each, 'i')}" for each in nest.statements
    )
    domain = islpy.UnionSet.read_from_str(context, f"{names.header}{{ {domains} }}")
    leaf = islpy.Schedule.from_domain(domain).get_root().child(0)
    tree = _insert(leaf, names, nest.statements, schedule, 0).get_schedule()
    given = " and ".join(names.given()) or "true"
    build = islpy.AstBuild.from_context(
        islpy.Set.read_from_str(context, f"{names.header}{{ : {given} }}")
    )
    return build.node_from_schedule(tree)


def _insert(
    leaf: islpy.ScheduleNode,
    names: Notation,
    statements: Sequence[Statement],
    schedule: Schedule,
    place: int,
) -> islpy.ScheduleNode:
    """The tree of `statements` from row `place` on, in place of `leaf`."""
    if place == schedule.depth:
        return leaf
    rows = {each.name: schedule.of(each.name)[place] for each in statements}
    if any(row.name for row in rows.values()):
        return _insert_loop(leaf, names, statements, schedule, place)
    groups: dict[int, list[Statement]] = {}
    for each in statements:
        groups.setdefault(rows[each.name].value.constant, []).append(each)
    if len(groups) == 1:
        return _insert(leaf, names, statements, schedule, place + 1)
    node = leaf.insert_sequence(_filters(leaf, names, [groups[key] for key in sorted(groups)]))
    for position, key in enumerate(sorted(groups)):
        below = node.child(position).child(0)
        node = _insert(below, names, groups[key], schedule, place + 1).parent().parent()
    return node


def _insert_loop(
    leaf: islpy.ScheduleNode,
    names: Notation,
    statements: Sequence[Statement],
    schedule: Schedule,
    place: int,
) -> islpy.ScheduleNode:
    import islpy

    rows = {each.name: schedule.of(each.name)[place] for each in statements}
    parts = [
        f"{names.instance(each, 'i')} -> [({names.row(rows[each.name], each, 'i')})]"
        for each in statements
    ]
    context = leaf.get_ctx()
    partial = islpy.MultiUnionPwAff.read_from_str(
        context, f"{names.header}[{{ {'; '.join(parts)} }}]"
    )
    node = leaf.insert_partial_schedule(partial)
    node = _insert(node.child(0), names, statements, schedule, place + 1).parent()
    named = next(row for row in rows.values() if row.name)
    mark = f"{named.name}:{named.tag.value}:{named.unroll}"
    return node.insert_mark(islpy.Id(mark, context=context))


def _filters(
    leaf: islpy.ScheduleNode, names: Notation, groups: Sequence[Sequence[Statement]]
) -> islpy.UnionSetList:
    import islpy

    filters = islpy.UnionSetList.alloc(leaf.get_ctx(), len(groups))
    for group in groups:
        text = "; ".join(names.instance(each, "i") for each in group)
        filters = filters.add(
            islpy.UnionSet.read_from_str(leaf.get_ctx(), f"{names.header}{{ {text} }}")
        )
    return filters


def node_kind(node: islpy.AstNode) -> str:
    """`for_`, `if_`, `block`, `mark` or `user`."""
    import islpy

    return islpy.ast_node_type(node.get_type()).name


def expression_kind(expr: islpy.AstExpr) -> str:
    """`op`, `id` or `int`."""
    import islpy

    return islpy.ast_expr_type(expr.get_type()).name


def operator_name(expr: islpy.AstExpr) -> str:
    """What ISL calls the operator of `expr`: `add`, `fdiv_q` …"""
    import islpy

    return islpy.ast_expr_op_type(expr.get_op_type()).name


# ---------------------------------------------------------------- several questions about orders


@dataclass(frozen=True, slots=True)
class Component:
    """Statements that one band of loops can run together.

    statements  in the order in which those that agree on all planes run
    planes      of each statement, the directions of the band; none of them carries a dependence
                backwards, so that they may be tiled by any sizes. Empty where there is no band
    parallel    whether a direction carries no dependence at all
    """

    statements: tuple[str, ...]
    planes: tuple[tuple[str, tuple[Affine, ...]], ...]
    parallel: tuple[bool, ...]


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
    domains = "; ".join(
        f"{names.instance(each, 'i')} : {names.domain(each, 'i')}" for each in nest.statements
    )
    domain = islpy.UnionSet.read_from_str(context, f"{names.header}{{ {domains} }}")
    text = _schedule_map(names, original(nest))
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

    order = islpy.UnionMap.read_from_str(held.context, _schedule_map(held.names, schedule))
    return pairs.apply_domain(order).apply_range(order)


def _maps(relation: islpy.UnionMap) -> list[islpy.Map]:
    found = relation.get_map_list()
    return [found.get_at(place) for place in range(found.n_map())]


def _lexicographic(pair: islpy.Map, sign: str) -> islpy.Map:
    import islpy

    space = pair.get_space().domain()
    return islpy.Map.lex_ge(space) if sign == ">=" else islpy.Map.lex_lt(space)


def components(held: Held) -> tuple[Component, ...]:
    """The bands that ISL's scheduler finds (Pluto's algorithm), in an order that is legal.

    Statements that depend on each other in a circle share a band, others have bands of their own.
    ISL gives up on a few nests ("unable to carry dependences"): those have one part and no band.
    """
    import islpy

    held.context.set_schedule_serialize_sccs(1)
    constraints = islpy.ScheduleConstraints.on_domain(held.domain)
    constraints = constraints.set_validity(held.ordered).set_coincidence(held.ordered)
    nest = held.names.nest
    try:
        root = constraints.compute_schedule().get_root()
    except islpy.Error:
        if _exhausted(held.context):
            raise
        names = [each.name for each in sorted(nest.statements, key=lambda each: each.order)]
        return (Component(tuple(names), tuple((name, ()) for name in names), ()),)
    return tuple(_components(root.child(0), nest))


def _components(node: islpy.ScheduleNode, nest: Nest) -> Iterator[Component]:
    if _node_kind(node) in ("sequence", "set_"):
        for place in range(node.n_children()):
            yield from _components(node.child(place).child(0), nest)
        return
    statements = tuple(dict.fromkeys(_leaf_order(node, nest)))
    planes = _planes(node, nest) if _node_kind(node) == "band" else None
    if planes is None or not node.band_get_permutable():
        yield Component(statements, tuple((name, ()) for name in statements), ())
        return
    count = node.band_n_member()
    parallel = tuple(bool(node.band_member_get_coincident(place)) for place in range(count))
    yield Component(statements, tuple((name, planes[name]) for name in statements), parallel)


def _node_kind(node: islpy.ScheduleNode) -> str:
    import islpy

    return islpy.schedule_node_type(node.get_type()).name


def _leaf_order(node: islpy.ScheduleNode, nest: Nest) -> Iterator[str]:
    """The statements below `node` in the order in which they run."""
    if node.n_children() == 0:
        found = node.get_domain().get_set_list()
        for place in range(found.n_set()):
            yield nest.statements[int(found.get_at(place).get_tuple_name()[1:])].name
    for place in range(node.n_children()):
        yield from _leaf_order(node.child(place), nest)


def _planes(node: islpy.ScheduleNode, nest: Nest) -> dict[str, tuple[Affine, ...]] | None:
    """The rows of a band by statement; None where one is no integer combination of its loops."""
    partial = node.band_get_partial_schedule()
    found: dict[str, list[Affine]] = {}
    for member in range(node.band_n_member()):
        pieces = partial.get_at(member).get_pw_aff_list()
        for place in range(pieces.n_pw_aff()):
            piecewise = pieces.get_at(place).get_pieces()
            if len(piecewise) != 1:
                return None
            domain, value = piecewise[0]
            statement = nest.statements[int(domain.get_tuple_name()[1:])]
            plane = _affine(value, statement, nest)
            if plane is None:
                return None
            found.setdefault(statement.name, []).append(plane)
    return {name: tuple(planes) for name, planes in found.items()}


def _affine(value: islpy.Aff, statement: Statement, nest: Nest) -> Affine | None:
    import islpy

    kinds = islpy.dim_type
    if value.dim(kinds.div) or not value.get_denominator_val().is_one():
        return None
    terms = [
        variable(name) * int(value.get_coefficient_val(kind, place).to_python())
        for kind, names in ((kinds.in_, statement.variables), (kinds.param, nest.parameters))
        for place, name in enumerate(names)
    ]
    return sum(terms, affine(int(value.get_constant_val().to_python())))

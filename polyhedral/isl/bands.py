"""The bands of loops that ISL's scheduler finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codegen.records import dataclass
from polyhedral.affine import Affine, affine, variable
from polyhedral.isl.limits import is_exhausted
from polyhedral.isl.nest_relations import Relations
from polyhedral.model import Nest, Statement

if TYPE_CHECKING:
    import islpy


FEW = 4
"""The most pieces of a dependence that are simplified quickly."""
STEEPEST = 64
"""The largest coefficient of a plane: without a limit, the scheduler's integer programs may
continue with ever larger numbers."""
SCHEDULING = 75_000
"""The most operations of ISL in the scheduler: a step in its integer programs counts as one and
takes up to a thousand times as long as others. [at most 17 000 for the kernels of PolyBench, 57 000
for programs of 4 statements in 17 loops and of 22 statements]"""


@dataclass(frozen=True, slots=True)
class Component:
    """Statements that share one band of loops.

    statements  in the order in which statements that agree on all planes run
    planes      of each statement, the directions of the band; none of them carries a dependence
                backwards, so that they may be tiled by any sizes. Empty where there is no band
    parallel    whether a direction carries no dependence at all
    """

    statements: tuple[str, ...]
    planes: tuple[tuple[str, tuple[Affine, ...]], ...]
    parallel: tuple[bool, ...]


def components(relations: Relations) -> tuple[Component, ...]:
    """Return the bands that ISL's scheduler finds (Pluto's algorithm), in a legal order.

    Statements that depend on each other cyclically share a band, others have separate bands. ISL
    gives up on a few nests ("unable to carry dependences"): these have one part and no band.
    Statements that never run come last, without a band.
    """
    relations.context.set_schedule_serialize_sccs(1)
    relations.context.set_schedule_max_coefficient(STEEPEST)
    nest = relations.names.nest
    root = _scheduled(relations, _without_ends(relations)) if _in_boxes(nest) else None
    if root is None:
        root = _scheduled(relations, relations.ordered)
    if root is None:
        names = [statement.name for statement in sorted(nest.statements, key=lambda s: s.order)]
        return (Component(tuple(names), tuple((name, ()) for name in names), ()),)
    bands = [band for band in _components(root.child(0), nest) if band.statements]
    running = {name for band in bands for name in band.statements}
    idle = [s.name for s in nest.statements if s.name not in running]
    return (*bands, *(Component((name,), ((name, ()),), ()) for name in idle))


def _scheduled(relations: Relations, ordered: islpy.UnionMap) -> islpy.ScheduleNode | None:
    """Return the schedule that preserves the dependences `ordered`, None where ISL finds none."""
    import islpy

    constraints = islpy.ScheduleConstraints.on_domain(relations.domain)
    constraints = constraints.set_validity(ordered).set_coincidence(ordered)
    budget = relations.context.get_max_operations()
    relations.context.reset_operations()
    relations.context.set_max_operations(min(budget, SCHEDULING) or budget)
    try:
        root = constraints.compute_schedule().get_root()
    except islpy.Error:
        if is_exhausted(relations.context):
            raise
        root = None
    relations.context.set_max_operations(budget)
    return root


def _in_boxes(nest: Nest) -> bool:
    """Tell whether no bound depends on another loop, and no statement is guarded."""
    bounds = [b for s in nest.statements for loop in s.loops for b in (*loop.lower, *loop.upper)]
    free = all(name in nest.parameters for bound in bounds for name in bound.names)
    return free and not any(statement.guards for statement in nest.statements)


def _without_ends(relations: Relations) -> islpy.UnionMap:
    """Return the dependences with the bounds of loops removed: in boxes, their directions stay.

    Each bound of a loop costs the scheduler a variable for each dependence. Dependences of many
    pieces are left unchanged: they belong to stencils, for which this takes longer than it saves.
    """
    import islpy

    result = islpy.UnionMap.empty(relations.ordered.get_space())
    maps = relations.ordered.get_map_list()
    for place in range(maps.n_map()):
        relation = maps.get_at(place)
        one = islpy.UnionMap.from_map(relation)
        if len(relation.get_basic_maps()) <= FEW:
            one = one.coalesce().gist_domain(relations.domain).gist_range(relations.domain)
        result = result.union(one)
    return result


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
    """Yield the statements below `node` in the order in which they run."""
    if node.n_children() == 0:
        domains = node.get_domain().get_set_list()
        for place in range(domains.n_set()):
            yield nest.statements[int(domains.get_at(place).get_tuple_name()[1:])].name
    for place in range(node.n_children()):
        yield from _leaf_order(node.child(place), nest)


def _planes(node: islpy.ScheduleNode, nest: Nest) -> dict[str, tuple[Affine, ...]] | None:
    """Return the rows of a band by statement.

    None where one is no integer combination of its loops.
    """
    partial = node.band_get_partial_schedule()
    rows: dict[str, list[Affine]] = {}
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
            rows.setdefault(statement.name, []).append(plane)
    return {name: tuple(planes) for name, planes in rows.items()}


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

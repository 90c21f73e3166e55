"""The bands of loops that the scheduler of ISL finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from codegen.records import dataclass
from polyhedral.affine import Affine, affine, variable
from polyhedral.isl.held import Held
from polyhedral.isl.limits import is_exhausted
from polyhedral.model import Nest, Statement

if TYPE_CHECKING:
    import islpy


FEW = 4
"""Pieces of a dependence that are soon simplified."""
STEEPEST = 64
"""The largest coefficient of a plane: without a limit, the scheduler's integer programs may go on
with ever larger numbers."""
SCHEDULING = 75_000
"""Operations of ISL that the scheduler may take: a step in its integer programs counts as one and
takes up to a thousand times as long as others. [at most 17 000 for the kernels of PolyBench, 57 000
for programs of 4 statements in 17 loops and of 22 statements]"""


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


def components(held: Held) -> tuple[Component, ...]:
    """Return the bands that ISL's scheduler finds (Pluto's algorithm), in an order that is legal.

    Statements that depend on each other in a circle share a band, others have bands of their own.
    ISL gives up on a few nests ("unable to carry dependences"): those have one part and no band.
    Statements that never run come last, without a band.
    """
    held.context.set_schedule_serialize_sccs(1)
    held.context.set_schedule_max_coefficient(STEEPEST)
    nest = held.names.nest
    root = _scheduled(held, _without_ends(held)) if _in_boxes(nest) else None
    if root is None:
        root = _scheduled(held, held.ordered)
    if root is None:
        names = [each.name for each in sorted(nest.statements, key=lambda each: each.order)]
        return (Component(tuple(names), tuple((name, ()) for name in names), ()),)
    found = [each for each in _components(root.child(0), nest) if each.statements]
    running = {name for each in found for name in each.statements}
    idle = [each.name for each in nest.statements if each.name not in running]
    return (*found, *(Component((name,), ((name, ()),), ()) for name in idle))


def _scheduled(held: Held, ordered: islpy.UnionMap) -> islpy.ScheduleNode | None:
    """Return the schedule that keeps what is ordered, None where ISL finds none."""
    import islpy

    constraints = islpy.ScheduleConstraints.on_domain(held.domain)
    constraints = constraints.set_validity(ordered).set_coincidence(ordered)
    budget = held.context.get_max_operations()
    held.context.reset_operations()
    held.context.set_max_operations(min(budget, SCHEDULING) or budget)
    try:
        root = constraints.compute_schedule().get_root()
    except islpy.Error:
        if is_exhausted(held.context):
            raise
        root = None
    held.context.set_max_operations(budget)
    return root


def _in_boxes(nest: Nest) -> bool:
    """Tell whether no loop begins or ends where another one says, and no statement is guarded."""
    bounds = [b for s in nest.statements for loop in s.loops for b in (*loop.lower, *loop.upper)]
    free = all(name in nest.parameters for bound in bounds for name in bound.names)
    return free and not any(each.guards for each in nest.statements)


def _without_ends(held: Held) -> islpy.UnionMap:
    """Return the dependences as they would be if no loop ended: in boxes, they go the same ways.

    Each bound of a loop costs the scheduler a variable for each dependence. Those of many pieces
    are left as they are: they are those of stencils, for which this takes longer than it saves.
    """
    import islpy

    found = islpy.UnionMap.empty(held.ordered.get_space())
    maps = held.ordered.get_map_list()
    for place in range(maps.n_map()):
        each = maps.get_at(place)
        one = islpy.UnionMap.from_map(each)
        if len(each.get_basic_maps()) <= FEW:
            one = one.coalesce().gist_domain(held.domain).gist_range(held.domain)
        found = found.union(one)
    return found


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
        found = node.get_domain().get_set_list()
        for place in range(found.n_set()):
            yield nest.statements[int(found.get_at(place).get_tuple_name()[1:])].name
    for place in range(node.n_children()):
        yield from _leaf_order(node.child(place), nest)


def _planes(node: islpy.ScheduleNode, nest: Nest) -> dict[str, tuple[Affine, ...]] | None:
    """Return the rows of a band by statement; None where one is no integer combination of its
    loops."""
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

"""The loops of a schedule, as the syntax tree that ISL builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from polyhedral.band_schedule import Schedule, Tag
from polyhedral.isl.full_tile_domains import isolated
from polyhedral.isl.notation import Notation
from polyhedral.model import Nest, Statement

if TYPE_CHECKING:
    import islpy


def scan(context: islpy.Context, nest: Nest, schedule: Schedule) -> islpy.AstNode:
    """Return the loops that run every instance in the order of `schedule`, as ISL's syntax tree.

    Mark nodes above loops are `name:tag:unroll`; calls S0(…) have the values of the original loops.
    """
    import islpy

    names = Notation(nest)
    domain = islpy.UnionSet.read_from_str(context, names.domains)
    leaf = islpy.Schedule.from_domain(domain).get_root().child(0)
    tree = _insert(leaf, names, nest.statements, schedule, ()).get_schedule()
    context_text = " and ".join(names.context_conditions()) or "true"
    build = islpy.AstBuild.from_context(
        islpy.Set.read_from_str(context, f"{names.header}{{ : {context_text} }}")
    )
    return build.node_from_schedule(tree)


def _insert(
    leaf: islpy.ScheduleNode,
    names: Notation,
    statements: Sequence[Statement],
    schedule: Schedule,
    are_loops: tuple[bool, ...],
) -> islpy.ScheduleNode:
    """Return the tree of `statements` in place of `leaf`.

    are_loops  whether each row before is a loop
    """
    if len(are_loops) == schedule.depth:
        return leaf
    rows = {statement.name: schedule.of(statement.name)[len(are_loops)] for statement in statements}
    if any(row.name for row in rows.values()):
        return _insert_loop(leaf, names, statements, schedule, are_loops)
    groups: dict[int, list[Statement]] = {}
    for statement in statements:
        groups.setdefault(rows[statement.name].value.constant, []).append(statement)
    below = (*are_loops, False)
    if len(groups) == 1:
        return _insert(leaf, names, statements, schedule, below)
    node = leaf.insert_sequence(_filters(leaf, names, [groups[key] for key in sorted(groups)]))
    for position, key in enumerate(sorted(groups)):
        inside = node.child(position).child(0)
        node = _insert(inside, names, groups[key], schedule, below).parent().parent()
    return node


def _insert_loop(
    leaf: islpy.ScheduleNode,
    names: Notation,
    statements: Sequence[Statement],
    schedule: Schedule,
    are_loops: tuple[bool, ...],
) -> islpy.ScheduleNode:
    import islpy

    rows = {statement.name: schedule.of(statement.name)[len(are_loops)] for statement in statements}
    parts = [
        f"{names.instance(statement, 'i')} -> [({names.row(rows[statement.name], statement, 'i')})]"
        for statement in statements
    ]
    context = leaf.get_ctx()
    partial = islpy.MultiUnionPwAff.read_from_str(
        context, f"{names.header}[{{ {'; '.join(parts)} }}]"
    )
    node = leaf.insert_partial_schedule(partial)
    loop_row = next(row for row in rows.values() if row.name)
    below = (*are_loops, True)
    if loop_row.tag in (Tag.WAVE, Tag.PARALLEL):
        node = node.band_member_set_ast_loop_type(0, islpy.ast_loop_type.atomic)
    elif loop_row.separates:
        places = [place for place, is_loop in enumerate(below) if is_loop]
        option = isolated(context, names.nest, statements, schedule, places)
        node = node.band_set_ast_build_options(option)
    node = _insert(node.child(0), names, statements, schedule, below).parent()
    mark = f"{loop_row.name}:{loop_row.tag.value}:{loop_row.unroll}"
    return node.insert_mark(islpy.Id(mark, context=context))


def _filters(
    leaf: islpy.ScheduleNode, names: Notation, groups: Sequence[Sequence[Statement]]
) -> islpy.UnionSetList:
    import islpy

    filters = islpy.UnionSetList.alloc(leaf.get_ctx(), len(groups))
    for group in groups:
        text = "; ".join(names.instance(statement, "i") for statement in group)
        filters = filters.add(
            islpy.UnionSet.read_from_str(leaf.get_ctx(), f"{names.header}{{ {text} }}")
        )
    return filters


def node_kind(node: islpy.AstNode) -> str:
    """Return the kind of a node: `for_`, `if_`, `block`, `mark` or `user`."""
    import islpy

    return islpy.ast_node_type(node.get_type()).name


def expression_kind(expr: islpy.AstExpr) -> str:
    """Return the kind of an expression: `op`, `id` or `int`."""
    import islpy

    return islpy.ast_expr_type(expr.get_type()).name


def operator_name(expr: islpy.AstExpr) -> str:
    """Return ISL's name of the operator of `expr`: `add`, `fdiv_q` …"""
    import islpy

    return islpy.ast_expr_op_type(expr.get_op_type()).name

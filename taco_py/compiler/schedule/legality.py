"""The preconditions of a scheduled loop nest on the formats of operands and result.

Tiles        coordinates at equal distances (an inner tile outside its outer one) can only be
             counted: no sparse level is walked in such steps, nor a coordinate list in tiles
Positions    they belong to a level that stores coordinates, below levels that are fused with it or
             whose loops are outside; every term with its indices is zero where nothing is stored;
             fused ones are visited in order
Inner sums   the loops of a sum inside a product are inside the loops that the sum depends on
Workspaces   the entries of a list or a table are unordered, so they are never merged with others
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from taco_py.compiler.concrete.terms import Term, reductions, split_terms
from taco_py.compiler.concrete.tree import read_in
from taco_py.compiler.iteration.graph import IterationGraph, Loop, Range
from taco_py.compiler.schedule.assembly import check_assembly
from taco_py.compiler.schedule.lanes import check_modes
from taco_py.compiler.schedule.loop_state import Loops
from taco_py.compiler.schedule.refused import refused
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.absent import restricts
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.nodes import Access, Expr
from taco_py.language.notation.tree import peel_reductions
from taco_py.language.problem import Problem
from taco_py.language.provenance.relations import Bound, Coord, Divide, Fuse, Pos, Split


def check(loops: Loops, problem: Problem) -> None:
    """Raise ScheduleError unless kernels for `problem` can have these loops."""
    terms = split_terms(problem.assignment.value)
    for term, order in zip(terms, loops.index_orders, strict=True):
        _check_inner_sums(term.body, order)
        _check_fused_sums(loops, term)
    for relation in loops.provenance.relations:
        if isinstance(relation, Pos):
            _check_positions(loops, problem, relation)
        if isinstance(relation, Bound):
            _check_bound(loops, problem, relation)
        if isinstance(relation, Coord):
            _check_coordinates(loops, relation)
    graph = loops.graph(problem)
    for loop in graph.loops:
        _check_workspaces(graph, loop)
        _check_range(graph, loop)
        _check_left(graph, loop)
    check_modes(graph)
    check_assembly(graph)


def _check_inner_sums(body: Expr, order: tuple[str, ...]) -> None:
    """Raise ScheduleError where an inner sum's loop is outside of a loop that the sum depends on.

    Loops of one sum over several indices may change places.
    """
    for inner in reductions(body):
        summed, terms = peel_reductions(inner, inner.operator)
        for index in summed:
            place = order.index(index) if index in order else len(order)
            late = [i for i in free_indices(inner) if order.index(i) > place]
            if late:
                raise ScheduleError(
                    f"Expected the loop over {index} inside the one over {late[0]}, on which the "
                    f"sum over {index} depends, found the order {','.join(order)}",
                    hint="an inner sum's own loops come after all others",
                )
        _check_inner_sums(terms, order)


def _check_fused_sums(loops: Loops, term: Term) -> None:
    """Raise ScheduleError where a loop runs over indices of an inner sum and others at once."""
    for inner in reductions(term.body):
        nest = split_terms(inner)[0]
        for relation in loops.provenance.relations:
            roots = loops.provenance.roots(relation.children[0])
            has_others = not set(roots) <= set(nest.reduced)
            if (
                isinstance(relation, Fuse)
                and has_others
                and not set(nest.reduced).isdisjoint(roots)
            ):
                raise refused(
                    relation,
                    f"the sum over {', '.join(nest.reduced)} has loops of its own, and "
                    f"{', '.join(roots)} are not all among them",
                    "fuse indices of one sum",
                )
        _check_fused_sums(loops, nest)


def _check_workspaces(graph: IterationGraph, loop: Loop) -> None:
    """Raise ScheduleError where a list or a table is merged with anything else."""
    operands = dict(graph.problem.operands)
    for iterator in loop.lattice.iterators:
        name = iterator.access.tensor
        if name in operands or not loop.merges:
            continue
        siblings = [str(other) for other in loop.lattice.iterators if other != iterator]
        merged = " and ".join(siblings) or f"every coordinate of {loop.index}"
        raise ScheduleError(
            f"The loop over {graph.called(loop)} would meet {merged} together with the entries of "
            f"the workspace {name}, which stores those that there are, in no order",
            hint=f"leave the loop over {graph.called(loop)} that reads {name} to itself",
        )


# ---------------------------------------------------------------- tiles


def _check_range(graph: IterationGraph, loop: Loop) -> None:
    if loop.range is Range.STRIDED:
        leaves = graph.provenance.leaves(loop.index)
        fixed = set(loop.outer).intersection(leaves)
        if len(leaves) - len(fixed) != 1:
            raise ScheduleError(
                f"The loop over {loop.index} would meet coordinates that are no interval, nor at "
                f"equal distances: of {', '.join(leaves)} only {', '.join(sorted(fixed))} are "
                f"outside it",
                hint="put the loops over tiles outside, the largest outermost",
            )
    if loop.range is Range.STRIDED and not loop.plain:
        walked = ", ".join(map(str, loop.lattice.iterators)) or "nothing"
        raise ScheduleError(
            f"The loop over {loop.index} would meet every so-many-th coordinate, but it walks "
            f"{walked}, whose coordinates come one after another",
            hint="put the loop over a tile outside the one over what is in it",
        )
    pos = graph.provenance.position_of(loop.index)
    if pos is not None and loop.merges:
        _check_positions_merged(graph, loop, pos)
    if loop.range is Range.TILE:
        for iterator in loop.lattice.iterators:
            operands = dict(graph.problem.operands)
            tensor = iterator.access.tensor
            if tensor in operands:
                level = operands[tensor].format.levels[iterator.level]
                if not level.is_list:
                    raise ScheduleError(
                        f"The loop over {loop.index} is tiled, but {iterator} is a "
                        f"{level.kind.value} level, in which a tile's beginning cannot be found",
                        hint=f"tile the positions of {tensor} instead: fuse its indices, then pos",
                    )


def _check_left(graph: IterationGraph, loop: Loop) -> None:
    """Raise ScheduleError where each tile of positions would walk another operand again.

    Such a loop belongs to the rest of a term, beside a workspace that each tile fills anew.
    """
    operands = dict(graph.problem.operands)
    walked = {iterator.access.tensor for iterator in loop.lattice.iterators}
    if not walked or not walked <= operands.keys():
        return
    tensors = walked | {access.tensor for access in read_in(loop.body)}
    roots = set(graph.provenance.roots(loop.index))
    for outer in loop.outer:
        pos = graph.provenance.positions_above(outer)
        if pos is None or not graph.provenance.is_derived(outer) or pos.tensor in tensors:
            continue
        if roots <= set(graph.provenance.roots(pos.child)):
            raise ScheduleError(
                f"The loop over {loop.index} would walk {', '.join(sorted(walked))} again for each "
                f"tile {outer} of positions of {pos.tensor}, which it does not read",
                hint=f"leave the positions of {pos.tensor} whole, or what is multiplied by it in "
                "the same loop",
            )


def _check_positions_merged(graph: IterationGraph, loop: Loop, pos: Pos) -> None:
    outer = frozenset(loop.outer)
    walked = ", ".join(map(str, loop.lattice.iterators))
    if loop.lattice.full and graph.provenance.is_chosen(pos.child, outer):
        raise ScheduleError(
            f"The loop over {loop.index} would meet every coordinate for each tile of positions of "
            f"{pos.tensor}, for it walks {walked} together with all others",
            hint=f"leave {pos.child} whole, or tile the coordinates: split them before {pos}",
        )
    if not graph.provenance.are_neighbours(pos.child, outer):
        raise ScheduleError(
            f"The loop over {loop.index} would meet every so-many-th position of {pos.tensor}, but "
            f"it walks {walked} together, one coordinate after another",
            hint=f"put the loops over tiles of {pos.child} outside, the largest outermost",
        )


# ---------------------------------------------------------------- positions


def position_access(problem: Problem, roots: tuple[str, ...], pos: Pos) -> Access:
    """Return the access of the operand that `pos` names. Raises ScheduleError."""
    matches = [
        access
        for access in dict.fromkeys(accesses(problem.assignment.value))
        if pos.means(access.tensor, access.indices, roots)
    ]
    if len(matches) == 1:
        return matches[0]
    raise refused(pos, *_no_access(problem, roots, pos, matches))


def _no_access(
    problem: Problem, roots: tuple[str, ...], pos: Pos, matches: Sequence[Access]
) -> tuple[str, str]:
    """Return the reason and the remedy for a `pos` that names no access, or several."""
    reads = dict.fromkeys(a for a in accesses(problem.assignment.value) if a.tensor == pos.tensor)
    if not reads:
        names = ", ".join(name for name, _ in problem.operands)
        return f"there is no operand {pos.tensor}", f"the operands are {names}"
    if matches:
        one = replace(pos, indices=matches[0].indices)
        return f"{pos.tensor} stands twice in the assignment", f"say which is meant, as in {one}"
    read = " and ".join(f"{a.tensor}({','.join(a.indices)})" for a in reads)
    if pos.indices and all(access.indices != pos.indices for access in reads):
        expected = f"{pos.tensor}({','.join(pos.indices)})"
        return f"there is no {expected} in the assignment", f"what is read is {read}"
    return (
        f"{pos.tensor} stands without {', '.join(roots)}",
        f"name an operand with these indices; {pos.tensor} is read as {read}",
    )


def _check_positions(loops: Loops, problem: Problem, pos: Pos) -> None:
    provenance = loops.provenance
    roots = provenance.roots(pos.parent)
    relation = provenance.above(pos.parent)
    while relation is not None and len(roots) > 1:
        if not isinstance(relation, Fuse):
            raise refused(
                pos,
                f"{pos.parent} is a tile of fused indices",
                "take positions of the fused variable first, then split them",
            )
        relation = provenance.above(relation.outer)
    if any(provenance.position_of(root) != pos for root in roots):
        raise refused(
            pos,
            f"{pos.parent} counts tiles, and no coordinates",
            "positions replace an index, or the coordinates in its innermost tile",
        )
    access = position_access(problem, roots, pos)
    form = problem.type_of(access.tensor).format
    levels = tuple(form.mode_order.index(access.indices.index(root)) for root in roots)
    if levels != tuple(range(levels[0], levels[0] + len(levels))):
        stored = ", ".join(form.stored(access.indices))
        raise refused(
            pos,
            f"{', '.join(roots)} are no neighbouring levels of {pos.tensor}, which stores {stored}",
            "fuse indices in the order in which the operand stores them",
        )
    last = form.levels[levels[-1]]
    walked = [form.levels[level] for level in levels]
    unusual = [level for level in walked if not level.kind.usual]
    if unusual or last.full or (last.branchless and len(levels) == 1):
        last = unusual[0] if unusual else last
        raise refused(
            pos,
            f"the level of {pos.tensor} for {roots[-1]} is {last.kind.value}",
            "positions are those of a compressed level, or of a list's levels fused",
        )
    for term in split_terms(problem.assignment.value):
        inside = {i for a in accesses(term.body) for i in a.indices}
        inside.update(problem.assignment.target.indices)
        value = term.as_sum(problem.result.dtype)
        if inside.intersection(roots) and not restricts(value, access):
            raise refused(
                pos,
                f"a term has values where {pos.tensor} stores nothing",
                "positions can replace coordinates only where the operand is a factor",
            )
    above = form.stored(access.indices)[: levels[0]]
    _check_order(loops, above, roots, pos)


def _check_order(loops: Loops, above: tuple[str, ...], roots: tuple[str, ...], pos: Pos) -> None:
    """Raise ScheduleError unless the position above is known at the first loop over positions.

    So must be the tiles of coordinates around them; fused positions ascend.
    """
    provenance = loops.provenance
    leaves, root_leaves = provenance.leaves(pos.child), provenance.leaves(roots[0])
    tiles = tuple(provenance.tiles_above(pos.parent))
    for order in loops.orders:
        variables = tuple(v for v in order if v in leaves)
        if not variables:
            continue
        outside = order[: order.index(variables[0])]
        for index in above:
            if not set(provenance.leaves(index)) <= set(outside):
                raise refused(
                    pos,
                    f"the loop over {index}, below which these positions of {pos.tensor} lie, is "
                    f"inside the one over {variables[0]}",
                    f"put {index} outside, or fuse it too",
                )
        for tile in tiles:
            if not set(provenance.leaves(tile)) <= set(outside):
                raise refused(
                    pos,
                    f"the loop over {tile}, which chooses coordinates of {pos.tensor}, is inside "
                    f"the one over {variables[0]}",
                    f"reorder so that {tile} is outside",
                )
        if len(roots) > 1 and tuple(v for v in order if v in root_leaves) != root_leaves:
            raise refused(
                pos,
                f"the loops over {', '.join(variables)} do not meet the positions in order",
                "positions of fused levels come in order: the outer tile outside",
            )


def _check_coordinates(loops: Loops, coord: Coord) -> None:
    """Raise ScheduleError unless the tile of positions is known whose coordinates are visited."""
    provenance, variable = loops.provenance, coord.parent
    while isinstance(above := provenance.above(variable), Split | Divide | Bound):
        variable = above.parent
        if isinstance(above, Bound):
            continue
        for order in loops.orders:
            variables = [v for v in order if v in provenance.leaves(coord.child)]
            if variables and not set(provenance.leaves(above.outer)) <= set(
                order[: order.index(variables[0])]
            ):
                raise refused(
                    coord,
                    f"the loop over {above.outer}, which chooses the positions, is not outside the "
                    f"one over {variables[0]}",
                    f"reorder so that {above.outer} is outside",
                )


def _check_bound(loops: Loops, problem: Problem, bound: Bound) -> None:
    """Raise ScheduleError unless the range is known before the kernel begins to compute."""
    pos = loops.provenance.positions_above(bound.parent)
    if pos is None:
        return
    roots = loops.provenance.roots(pos.parent)
    form = problem.type_of(pos.tensor).format
    access = position_access(problem, roots, pos)
    if form.mode_order.index(access.indices.index(roots[0])) > 0:
        raise refused(
            bound,
            f"{bound.parent} runs over entries below one position of {pos.tensor}, of which each "
            "has another number",
            f"bound the index {roots[0]}, or fuse it with those that {pos.tensor} stores above it",
        )

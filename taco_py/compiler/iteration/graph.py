"""The iteration graph: for each loop of a concrete statement, what it runs over and why.

A derived view: it is recomputed from the statement whenever someone wants it, and never edited.
"""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from typing import assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import (
    APART,
    SERIAL,
    Assembly,
    Assign,
    Forall,
    Mode,
    Race,
    Sequence,
    Statement,
    Unit,
    Where,
    Workspace,
    WorkspaceKind,
)
from taco_py.compiler.concrete.tree import assignments, foralls, walk, workspaces_of
from taco_py.compiler.iteration.lattice import Lattice, build_lattice
from taco_py.compiler.iteration.region import Everything, Iterator, Nothing, Region, Regions
from taco_py.compiler.iteration.units_share import (
    fills_row,
    iteration_indices,
    rows_in_blocks,
    updates_words,
)
from taco_py.compiler.iteration.weights import weighed_operands
from taco_py.language.notation.checks import accesses, with_linearity
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.operators import Number
from taco_py.language.problem import Problem
from taco_py.language.provenance.provenance import UNDERIVED, Provenance


class Range(Enum):
    """Which part of an index one loop runs over.

    WHOLE      all of it
    TILES      none: it counts tiles, which loops below run over
    TILE       neighbouring coordinates, chosen by loops over tiles around it
    STRIDED    coordinates at equal distances
    POSITIONS  the coordinates of a range of an operand's entries
    """

    WHOLE = "whole"
    TILES = "tiles"
    TILE = "tile"
    STRIDED = "strided"
    POSITIONS = "positions"


@dataclass(frozen=True, slots=True)
class Loop:
    """One `forall`: its index, the loops around it, and the lattice it runs over.

    range          the part of the index, or of what the loop's variable derives from
    writes_result  its body assigns to the result itself (not only to workspaces)
    overwrites     that assignment is `=`, so that no coordinate may come twice
    fills          the workspaces that its body is a part of the producers of, outermost first
    """

    index: str
    outer: tuple[str, ...]
    region: Region
    lattice: Lattice
    body: Statement
    writes_result: bool
    overwrites: bool
    range: Range = Range.WHOLE
    mode: Mode = SERIAL
    fills: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Tell whether it counts through coordinates and looks out for nothing.

        Together with the loops over tiles around it, it then meets the whole dimension.
        """
        counts = self.lattice.full and not self.lattice.iterators
        return counts and self.range is not Range.POSITIONS

    @property
    def merges(self) -> bool:
        """Tell whether several levels, or a level and the dimension, are walked together."""
        return len(self.lattice.iterators) > 1 or (
            self.lattice.full and bool(self.lattice.iterators)
        )


@dataclass(frozen=True, slots=True)
class Requirement:
    """What a kernel takes for granted about the coordinates of one operand."""

    tensor: str
    ordered: bool
    unique: bool


@dataclass(frozen=True, slots=True)
class IterationGraph:
    """The loops of a statement, outermost first, siblings in order.

    assembly  how a sparse result is assembled, where that has been said
    teams     whether threads are few and take large ranges of a loop, as those of a CPU
    """

    problem: Problem
    statement: Statement
    loops: tuple[Loop, ...]
    provenance: Provenance = UNDERIVED
    assembly: Assembly | None = None
    teams: bool = True

    @property
    def has_places(self) -> bool:
        """Tell whether each element of the result has its place before any loop comes to it: of a
        dense one, and of one whose coordinates are copied."""
        return self.problem.result.format.is_dense or self.assembly is Assembly.COPY

    @property
    def covers_result(self) -> bool:
        """Tell whether every element of a dense result is assigned or zeroed by the kernel
        itself."""
        if self.assigns_first:
            return True
        target = self.problem.assignment.target
        writing = [loop for loop in self.loops if loop.writes_result]
        regions = regions_of(self.problem, self.statement)
        plain = all(
            loop.plain and loop.overwrites for loop in writing if loop.index in target.indices
        )
        nothing = isinstance(regions.statement(self.statement, ""), Nothing)
        if self.begins_with != 0:
            return True
        if nothing:
            return False
        return self.zeroing is not None or (plain and not _adds_to(self.statement, target))

    @property
    def begins_with(self) -> Number:
        """What a dense result is at first that is reduced into: zero for sums."""
        return begins_with(self.problem, self.statement)

    @property
    def assigns_first(self) -> bool:
        """Tell whether a dense result is added to after all of it has been assigned: by the first
        part of a sequence, which then meets every coordinate."""
        target = self.problem.assignment.target
        written = (a for a in assignments(self.statement) if a.target.tensor == target.tensor)
        return _adds_to(self.statement, target) and any(a.operator is None for a in written)

    @property
    def stored_wholly(self) -> tuple[str, ...]:
        """Return the indices of which a sparse result stores every coordinate, for the loop that
        writes it walks nothing that leaves some out."""
        target, form = self.problem.assignment.target, self.problem.result.format
        levels = zip(form.stored(target.indices), form.levels, strict=True)
        listed = [index for index, level in levels if not level.full]
        met = {loop.index for loop in self.loops if loop.writes_result and loop.lattice.full}
        return tuple(index for index in listed if index in met)

    @property
    def zeroing(self) -> Forall | None:
        """Return the loop at whose body's beginning a part of a dense result is zeroed, then added
        to.

        It is the innermost of the outermost loops over the result's outermost levels, as far as
        each of them comes to every coordinate once: all that is added to such a part is added in
        that body, also what threads add to copies of their own. None where there is no such loop,
        or where nothing is added, or only after all has been assigned, or where others would add to
        parts beside it meanwhile, in words that have elements of both.
        """
        target = self.problem.assignment.target
        form = self.problem.result.format
        if not form.is_dense or not _adds_to(self.statement, target) or self.assigns_first:
            return None
        if updates_words(self):
            return None
        found: Forall | None = None
        part = self.statement
        modes = iter(form.mode_order)
        mode = next(modes, None)
        for loop in self.loops:
            if mode is None or not isinstance(part, Forall) or not loop.plain:
                break
            if loop.mode.parallel in APART:
                break
            if self.provenance.roots(loop.index) != (target.indices[mode],):
                break
            if loop.range is not Range.TILES:
                found, mode = part, next(modes, None)
            part = part.body
        return found

    @property
    def in_pieces(self) -> bool:
        """Tell whether threads share the outermost loop in ranges of its index, each with
        workspaces and a part of the result of its own, and not iteration by iteration."""
        if not isinstance(self.statement, Forall):
            return False
        race = self.statement.mode.parallel
        if self.statement.mode.unit is not Unit.CORE:
            return rows_in_blocks(self)
        shared = race is not None and race not in APART
        return shared and (shared_in_pieces(self) or (self.teams and self.weighs_rows))

    @property
    def weighs_rows(self) -> bool:
        """Tell whether the outermost loop goes through all rows of a sparse operand, which have
        more and less entries."""
        outermost = self.loops[0]
        if len(self.provenance.roots(outermost.index)) > 1 or outermost.lattice.iterators:
            return False
        found = weighed_operands(self.problem, self.provenance, outermost.index, self.statement)
        return any(True for _ in found)

    def in_team(self, loop: Loop) -> bool:
        """Tell whether threads share a loop in ranges without the kernel's result being made of
        parts: where they add to copies of their own, and where a loop that is not outermost needs
        workspaces of its own or walks several levels together."""
        race = loop.mode.parallel
        if race is None or not self.teams:
            return False
        if race in APART:
            return True
        if not loop.outer and isinstance(self.statement, Forall):
            return False
        return loop.merges or any(not w.is_number for w in workspaces_of(loop.body))

    def loop_of(self, forall: Forall) -> Loop:
        """What is known of a loop of the statement."""
        return next(loop for loop in self.loops if loop.body is forall.body)

    def called(self, loop: Loop) -> str:
        """What commands call a loop: one over an index may stand for the last of its tiles, and
        where a workspace is filled there may be another name."""
        leaf = self.provenance.leaf(loop.index, loop.outer)
        names: dict[str, str] = {}
        for workspace in loop.fills:
            names |= self.provenance.renamed(workspace)
        return names.get(leaf, leaf)

    def skips(self, index: str) -> bool:
        """Tell whether the loops over the result's `index` may leave coordinates out."""
        return any(
            not loop.plain for loop in self.loops if loop.writes_result and loop.index == index
        )

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """Return one entry for each sparse operand that must be ordered or free of duplicates."""
        found: dict[str, Requirement] = {}
        for tensor, ordered, unique in self._demands():
            old = found.get(tensor, Requirement(tensor, False, False))
            found[tensor] = replace(
                old, ordered=old.ordered or ordered, unique=old.unique or unique
            )
        operands = [name for name, _ in self.problem.operands]
        return tuple(found[name] for name in operands if name in found)

    def _demands(self) -> Iterable[tuple[str, bool, bool]]:
        operands = {name for name, _ in self.problem.operands}
        for loop in self.loops:
            for iterator in loop.lattice.iterators:
                tensor = iterator.access.tensor
                if tensor in operands:
                    demand = self._demand(loop, iterator)
                    if any(demand):
                        yield tensor, *demand
        for access in _nonlinear(self.problem, self.statement):
            if (
                access.tensor in operands
                and not self.problem.type_of(access.tensor).format.is_dense
            ):
                yield access.tensor, False, True
        for tensor in self._cut_apart():
            yield tensor, False, True

    def _cut_apart(self) -> Iterable[str]:
        """Return the operands whose entries are cut into tiles with workspaces of their own, or for
        threads that add to elements of their own: entries with equal coordinates that lie in two
        tiles are not added up in one workspace, or at the same time."""
        for loop in self.loops:
            pos = self.provenance.positions_above(loop.index)
            if pos is None or loop.range is not Range.TILES:
                continue
            own = any(not w.is_number for w in workspaces_of(loop.body))
            if own or self._adds_apart(loop):
                yield pos.tensor

    def _adds_apart(self, loop: Loop) -> bool:
        """Tell whether threads share a loop whose iterations add to elements of their own."""
        target = self.problem.assignment.target
        own = set(iteration_indices(self, loop)) <= set(target.indices)
        return loop.mode.parallel is Race.NONE and own

    def _demand(self, loop: Loop, iterator: Iterator) -> tuple[bool, bool]:
        """(ordered, unique) as the loop needs it of one iterator's level."""
        if loop.merges:
            return True, True
        ordered, unique = self._result_demand(loop)
        in_team = self.in_team(loop) and loop.range is not Range.POSITIONS
        in_pieces = (not loop.outer and self.in_pieces) or in_team
        unique = unique or self.at_most_one(loop.index, iterator) or fills_row(self, loop)
        return ordered or in_pieces or self._searches(loop, iterator), unique

    def at_most_one(self, index: str, iterator: Iterator) -> bool:
        """Tell whether a loop meets one entry or none below each position: the last level's, of an
        index that is known to have one coordinate alone."""
        tensor = iterator.access.tensor
        if (index, 1) not in self.problem.static or tensor not in dict(self.problem.operands):
            return False
        form = self.problem.type_of(tensor).format
        shared = any(each.index == index and each.mode.parallel is not None for each in self.loops)
        unique = form.levels[iterator.level].unique
        return iterator.level == form.order - 1 and unique and not shared

    def _searches(self, loop: Loop, iterator: Iterator) -> bool:
        """Tell whether a part of the level's coordinates is looked for: those of a tile, also where
        it has been turned into positions, or those that another operand's positions lie between."""
        if loop.range is not Range.POSITIONS:
            return loop.range is not Range.WHOLE
        pos = self.provenance.position_of(loop.index)
        if pos is None:
            return True
        access, roots = iterator.access, self.provenance.roots(pos.parent)
        tiled = any(True for _ in self.provenance.tiles_above(pos.parent))
        return tiled or not pos.means(access.tensor, access.indices, roots)

    def _result_demand(self, loop: Loop) -> tuple[bool, bool]:
        """Return the same, as far as the result asks for it."""
        target = self.problem.assignment.target
        if not loop.writes_result or loop.index not in target.indices:
            return False, False
        form = self.problem.result.format
        if form.is_dense:
            return False, loop.overwrites or self._adds_apart(loop)
        level = form.levels[form.mode_order.index(target.indices.index(loop.index))]
        return level.ordered, level.unique


def shared_in_pieces(graph: IterationGraph) -> bool:
    """Tell whether threads that share the outermost loop need memory of their own, or its
    ranges."""
    private = any(not w.is_number for w in workspaces_of(graph.statement))
    return private or graph.loops[0].merges or not graph.has_places


def sparse_levels(problem: Problem, access: Access) -> Mapping[str, Iterator]:
    """For each index of an operand's access that a level iterates: that iterator."""
    form = problem.type_of(access.tensor).format
    return {
        access.indices[mode]: Iterator(access, level)
        for level, mode in enumerate(form.mode_order)
        if not form.levels[level].full
    }


def all_iterators(problem: Problem, statement: Statement) -> dict[Access, Mapping[str, Iterator]]:
    """Return the iterators of every access that the statement reads, its workspaces' included."""
    workspaces = {w.name: w for w in workspaces_of(statement)}
    found: dict[Access, Mapping[str, Iterator]] = {}
    for assign in assignments(statement):
        for access in accesses(assign.value):
            if access.tensor in workspaces:
                found[access] = workspace_levels(workspaces[access.tensor])
            else:
                found[access] = sparse_levels(problem, access)
    return found


def workspace_levels(workspace: Workspace) -> Mapping[str, Iterator]:
    """Return a consumer walks a row's or a table's entries, unless it looks for those of a row."""
    if workspace.kind not in (WorkspaceKind.ROW, WorkspaceKind.HASH):
        return {}
    return {i: Iterator(workspace.access, k) for k, i in enumerate(workspace.indices)}


def begins_with(problem: Problem, statement: Statement) -> Number:
    """What a result is at first that a statement reduces into: zero for sums."""
    target, dtype = problem.assignment.target.tensor, np.dtype(problem.result.dtype)
    for assign in assignments(statement):
        if assign.target.tensor == target and assign.operator is not None:
            return assign.operator.identity_of(dtype) or 0
    return 0


def regions_of(problem: Problem, statement: Statement) -> Regions:
    """What is known of regions before any loop: which levels are sparse, and what the result is."""
    first = begins_with(problem, statement)
    initial = {w.name: w.initial for w in workspaces_of(statement) if w.initial != 0}
    if first != 0:
        initial[problem.assignment.target.tensor] = first
    return Regions(all_iterators(problem, statement), frozenset(), {}, initial)


def build_graph(
    problem: Problem,
    statement: Statement,
    provenance: Provenance = UNDERIVED,
    assembly: Assembly | None = None,
) -> IterationGraph:
    """Return the loops of `statement` with their lattices."""
    regions = regions_of(problem, statement)
    target = problem.assignment.target.tensor

    def visit(
        part: Statement, outer: tuple[str, ...], fills: tuple[str, ...] = ()
    ) -> Iterable[Loop]:
        match part:
            case Assign():
                pass
            case Forall(index, body, mode):
                region: Region = Everything()
                if not provenance.is_derived(index):
                    region = regions.statement(part, index)
                writes = [a for a in assignments(body) if a.target.tensor == target]
                overwrites = any(a.operator is None for a in writes)
                lattice = build_lattice(region)
                range = range_of(provenance, index, outer)
                yield Loop(
                    index,
                    outer,
                    region,
                    lattice,
                    body,
                    bool(writes),
                    overwrites,
                    range,
                    mode,
                    fills,
                )
                yield from visit(body, (*outer, index), fills)
            case Where(workspace, consumer, producer):
                yield from visit(producer, outer, (*fills, workspace.name))
                yield from visit(consumer, outer, fills)
            case Sequence(statements):
                for child in statements:
                    yield from visit(child, outer, fills)
            case _:
                assert_never(part)

    return IterationGraph(problem, statement, tuple(visit(statement, ())), provenance, assembly)


def range_of(provenance: Provenance, variable: str, outer: tuple[str, ...]) -> Range:
    """What a loop over `variable` runs over inside loops over `outer`."""
    if provenance.is_derived(variable):
        return Range.TILES
    if provenance.position_of(variable) is not None:
        return Range.POSITIONS
    bound = frozenset(outer)
    if not provenance.is_chosen(variable, bound):
        return Range.WHOLE
    return Range.TILE if provenance.are_neighbours(variable, bound) else Range.STRIDED


def _adds_to(statement: Statement, target: Access) -> bool:
    return any(
        a.target.tensor == target.tensor and a.operator is not None for a in assignments(statement)
    )


def _nonlinear(problem: Problem, statement: Statement) -> Iterable[Access]:
    """Return accesses whose duplicates may not be added up after the fact.

    They occur twice in one value, or below an operator that is not additive in them. Workspaces
    hand the property down to what stores coordinates outside of the loops that fill them: inside,
    duplicates are added up before the workspace is read.
    """
    filled = {
        part.workspace.name: frozenset(loop.index for loop in foralls(part.producer))
        for part in walk(statement)
        if isinstance(part, Where)
    }
    suspects: dict[str, frozenset[str]] = {}
    for assign in reversed(tuple(assignments(statement))):
        tensors = [a.tensor for a in accesses(assign.value)]
        inside = suspects.get(assign.target.tensor)
        adds = assign.operator is None or assign.operator.additive
        for access, linear in with_linearity(assign.value, adds):
            apart = not linear or tensors.count(access.tensor) > 1
            if access.tensor in filled:
                loops = filled[access.tensor] if apart else inside
                if loops is not None:
                    suspects[access.tensor] = loops & suspects.get(access.tensor, loops)
            elif apart or (inside is not None and _stores_outside(problem, access, inside)):
                yield access


def _stores_outside(problem: Problem, access: Access, loops: frozenset[str]) -> bool:
    """Tell whether an operand stores coordinates of an index that none of the loops is over."""
    form = problem.type_of(access.tensor).format
    levels = zip(form.stored(access.indices), form.levels, strict=True)
    return any(index not in loops for index, level in levels if not level.full)


def conflicts(problem: Problem, access: Access, order: tuple[str, ...]) -> bool:
    """Tell whether the loop `order` meets a sparse level of `access` before the levels above it."""
    form = problem.type_of(access.tensor).format
    place = {index: depth for depth, index in enumerate(order)}
    depths = [place[access.indices[mode]] for mode in form.mode_order]
    return any(
        not level.full and any(above > depths[k] for above in depths[:k])
        for k, level in enumerate(form.levels)
    )

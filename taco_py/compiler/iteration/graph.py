"""The iteration graph: the iteration space of each loop of a concrete statement.

It is a derived view: recomputed from the statement where it is needed, and never edited.
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
    PRIVATE_COPIES,
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
    """The part of an index that a loop runs over.

    FULL       all of it
    TILES      none: it counts tiles, which loops below run over
    TILE       neighbouring coordinates, chosen by loops over tiles around it
    STRIDED    coordinates at equal distances
    POSITIONS  the coordinates of a range of an operand's entries
    """

    FULL = "whole"
    TILES = "tiles"
    TILE = "tile"
    STRIDED = "strided"
    POSITIONS = "positions"


@dataclass(frozen=True, slots=True)
class Loop:
    """One `forall` with its index, the enclosing loops and its merge lattice.

    range          the part of the index, or of the index that the loop's variable derives from
    writes_result  its body assigns to the result itself (not only to workspaces)
    overwrites     that assignment is `=`, so that no coordinate may come twice
    fills          the workspaces whose producers contain the loop, outermost first
    """

    index: str
    outer: tuple[str, ...]
    region: Region
    lattice: Lattice
    body: Statement
    writes_result: bool
    overwrites: bool
    range: Range = Range.FULL
    mode: Mode = SERIAL
    fills: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Tell whether the loop counts through coordinates without looking for stored entries.

        Together with the loops over tiles around it, it then visits the full dimension.
        """
        counts = self.lattice.full and not self.lattice.iterators
        return counts and self.range is not Range.POSITIONS

    @property
    def is_tile(self) -> bool:
        """Tell whether the loop runs over a tile that loops around it choose."""
        return self.range is Range.TILE

    @property
    def merges(self) -> bool:
        """Tell whether several levels, or a level and the dimension, are walked together."""
        return len(self.lattice.iterators) > 1 or (
            self.lattice.full and bool(self.lattice.iterators)
        )


@dataclass(frozen=True, slots=True)
class Requirement:
    """The order and uniqueness of coordinates that a kernel assumes of one operand."""

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
        """Tell whether each element of the result has its position before the loops run.

        This holds for a dense result, and for a result whose coordinates are copied.
        """
        return self.problem.result.format.is_dense or self.assembly is Assembly.COPY

    @property
    def covers_result(self) -> bool:
        """Tell whether the kernel itself assigns or zeroes every element of a dense result."""
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
        """Return the initial value of a dense result that the kernel reduces into: zero for
        sums."""
        return begins_with(self.problem, self.statement)

    @property
    def assigns_first(self) -> bool:
        """Tell whether the first part of a sequence assigns every element of a dense result.

        Later parts add to these elements.
        """
        target = self.problem.assignment.target
        writes = (a for a in assignments(self.statement) if a.target.tensor == target.tensor)
        return _adds_to(self.statement, target) and any(a.operator is None for a in writes)

    @property
    def stored_wholly(self) -> tuple[str, ...]:
        """Return the indices of which a sparse result stores every coordinate.

        The loop over such an index writes the result, and merges no level that leaves some out.
        """
        target, form = self.problem.assignment.target, self.problem.result.format
        levels = zip(form.stored(target.indices), form.levels, strict=True)
        sparse = [index for index, level in levels if not level.full]
        full = {loop.index for loop in self.loops if loop.writes_result and loop.lattice.full}
        return tuple(index for index in sparse if index in full)

    @property
    def zeroing(self) -> Forall | None:
        """Return the loop whose body first zeroes a part of a dense result, then adds to it.

        It is the innermost of the outermost loops over the result's outermost levels, as far as
        each of them comes to every coordinate once: that body adds all that is added to such a
        part, also what threads add to private copies. None where there is no such loop, where
        nothing is added, or only after all has been assigned, or where other threads meanwhile add
        to neighbouring elements that share a word with it.
        """
        target = self.problem.assignment.target
        form = self.problem.result.format
        if not form.is_dense or not _adds_to(self.statement, target) or self.assigns_first:
            return None
        if updates_words(self):
            return None
        zeroed: Forall | None = None
        part = self.statement
        modes = iter(form.mode_order)
        mode = next(modes, None)
        for loop in self.loops:
            if mode is None or not isinstance(part, Forall) or not loop.plain:
                break
            if loop.mode.parallel in PRIVATE_COPIES:
                break
            if self.provenance.roots(loop.index) != (target.indices[mode],):
                break
            if loop.range is not Range.TILES:
                zeroed, mode = part, next(modes, None)
            part = part.body
        return zeroed

    @property
    def in_pieces(self) -> bool:
        """Tell whether threads share the outermost loop in ranges of its index.

        Each range has private workspaces and a part of the result; otherwise, iterations are
        shared.
        """
        if not isinstance(self.statement, Forall):
            return False
        race = self.statement.mode.parallel
        if self.statement.mode.unit is not Unit.CORE:
            return rows_in_blocks(self)
        shared = race is not None and race not in PRIVATE_COPIES
        return shared and (shared_in_pieces(self) or (self.teams and self.weighs_rows))

    @property
    def weighs_rows(self) -> bool:
        """Tell whether the outermost loop goes through all rows of a sparse operand.

        Such rows have different numbers of entries.
        """
        outermost = self.loops[0]
        if len(self.provenance.roots(outermost.index)) > 1 or outermost.lattice.iterators:
            return False
        operands = weighed_operands(self.problem, self.provenance, outermost.index, self.statement)
        return any(True for _ in operands)

    def in_team(self, loop: Loop) -> bool:
        """Tell whether threads share a loop in ranges, while the result is not made of parts.

        This holds where they add to private copies, and where a loop that is not outermost needs
        private workspaces or merges several levels.
        """
        race = loop.mode.parallel
        if race is None or not self.teams:
            return False
        if race in PRIVATE_COPIES:
            return True
        if not loop.outer and isinstance(self.statement, Forall):
            return False
        return loop.merges or any(not w.is_number for w in workspaces_of(loop.body))

    def loop_of(self, forall: Forall) -> Loop:
        """Return the loop of the graph for a `forall` of the statement."""
        return next(loop for loop in self.loops if loop.body is forall.body)

    def called(self, loop: Loop) -> str:
        """Return the name by which commands call a loop.

        A loop over an index may stand for the last of its tiles, and may have another name where it
        fills a workspace.
        """
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
        """Return a requirement for each sparse operand that must be ordered or free of
        duplicates."""
        requirements: dict[str, Requirement] = {}
        for tensor, ordered, unique in self._demands():
            old = requirements.get(tensor, Requirement(tensor, False, False))
            requirements[tensor] = replace(
                old, ordered=old.ordered or ordered, unique=old.unique or unique
            )
        operands = [name for name, _ in self.problem.operands]
        return tuple(requirements[name] for name in operands if name in requirements)

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
        for tensor in self._split_operands():
            yield tensor, False, True

    def _split_operands(self) -> Iterable[str]:
        """Yield the operands whose entries are cut into tiles that are not added up together.

        The tiles have private workspaces, or are shared by threads that add to different elements:
        entries with equal coordinates in two tiles are not added up in one workspace, or at the
        same time.
        """
        for loop in self.loops:
            pos = self.provenance.positions_above(loop.index)
            if pos is None or loop.range is not Range.TILES:
                continue
            private = any(not w.is_number for w in workspaces_of(loop.body))
            if private or self._adds_to_disjoint(loop):
                yield pos.tensor

    def _adds_to_disjoint(self, loop: Loop) -> bool:
        """Tell whether threads share a loop whose iterations add to different elements."""
        target = self.problem.assignment.target
        disjoint = set(iteration_indices(self, loop)) <= set(target.indices)
        return loop.mode.parallel is Race.NONE and disjoint

    def _demand(self, loop: Loop, iterator: Iterator) -> tuple[bool, bool]:
        """Return (ordered, unique) as a loop needs them of the level of one iterator."""
        if loop.merges:
            return True, True
        ordered, unique = self._result_demand(loop)
        in_team = self.in_team(loop) and loop.range is not Range.POSITIONS
        in_pieces = (not loop.outer and self.in_pieces) or in_team
        unique = unique or self.at_most_one(loop.index, iterator) or fills_row(self, loop)
        return ordered or in_pieces or self._searches(loop, iterator), unique

    def at_most_one(self, index: str, iterator: Iterator) -> bool:
        """Tell whether a loop visits at most one entry below each position.

        This holds for the last level, of an index whose size is known to be 1.
        """
        tensor = iterator.access.tensor
        if (index, 1) not in self.problem.static or tensor not in dict(self.problem.operands):
            return False
        form = self.problem.type_of(tensor).format
        shared = any(
            sibling.index == index and sibling.mode.parallel is not None for sibling in self.loops
        )
        unique = form.levels[iterator.level].unique
        return iterator.level == form.order - 1 and unique and not shared

    def _searches(self, loop: Loop, iterator: Iterator) -> bool:
        """Tell whether a loop searches for a part of the level's coordinates.

        The part is a tile, also where it has been turned into positions, or the coordinates between
        two positions of another operand.
        """
        if loop.range is not Range.POSITIONS:
            return loop.range is not Range.FULL
        pos = self.provenance.position_of(loop.index)
        if pos is None:
            return True
        access, roots = iterator.access, self.provenance.roots(pos.parent)
        tiled = any(True for _ in self.provenance.tiles_above(pos.parent))
        return tiled or not pos.means(access.tensor, access.indices, roots)

    def _result_demand(self, loop: Loop) -> tuple[bool, bool]:
        """Return (ordered, unique) as the result needs them of a loop."""
        target = self.problem.assignment.target
        if not loop.writes_result or loop.index not in target.indices:
            return False, False
        form = self.problem.result.format
        if form.is_dense:
            return False, loop.overwrites or self._adds_to_disjoint(loop)
        level = form.levels[form.mode_order.index(target.indices.index(loop.index))]
        return level.ordered, level.unique


def shared_in_pieces(graph: IterationGraph) -> bool:
    """Tell whether threads that share the outermost loop need private memory.

    They need it for workspaces, for merged levels, and for a result whose positions are not known.
    """
    private = any(not w.is_number for w in workspaces_of(graph.statement))
    return private or graph.loops[0].merges or not graph.has_places


def sparse_levels(problem: Problem, access: Access) -> Mapping[str, Iterator]:
    """Return, for each index of an access that a sparse level iterates, that iterator."""
    form = problem.type_of(access.tensor).format
    return {
        access.indices[mode]: Iterator(access, level)
        for level, mode in enumerate(form.mode_order)
        if not form.levels[level].full
    }


def all_iterators(problem: Problem, statement: Statement) -> dict[Access, Mapping[str, Iterator]]:
    """Return the iterators of every access that the statement reads, including workspaces."""
    workspaces = {w.name: w for w in workspaces_of(statement)}
    iterators: dict[Access, Mapping[str, Iterator]] = {}
    for assign in assignments(statement):
        for access in accesses(assign.value):
            if access.tensor in workspaces:
                iterators[access] = workspace_levels(workspaces[access.tensor])
            else:
                iterators[access] = sparse_levels(problem, access)
    return iterators


def workspace_levels(workspace: Workspace) -> Mapping[str, Iterator]:
    """Return the iterators of a workspace whose entries a consumer walks.

    There are none where the consumer locates elements by their coordinates.
    """
    if workspace.kind not in (WorkspaceKind.ROW, WorkspaceKind.HASH):
        return {}
    return {i: Iterator(workspace.access, k) for k, i in enumerate(workspace.indices)}


def begins_with(problem: Problem, statement: Statement) -> Number:
    """Return the initial value of a result that a statement reduces into: zero for sums."""
    target, dtype = problem.assignment.target.tensor, np.dtype(problem.result.dtype)
    for assign in assignments(statement):
        if assign.target.tensor == target and assign.operator is not None:
            return assign.operator.identity_of(dtype) or 0
    return 0


def regions_of(problem: Problem, statement: Statement) -> Regions:
    """Return the regions outside of all loops: which levels are sparse, and the initial values."""
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
    """Build the iteration graph of `statement`: its loops with their lattices."""
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
    """Return which part of its index a loop over `variable` runs over, inside loops over
    `outer`."""
    if provenance.is_derived(variable):
        return Range.TILES
    if provenance.position_of(variable) is not None:
        return Range.POSITIONS
    bound = frozenset(outer)
    if not provenance.is_chosen(variable, bound):
        return Range.FULL
    return Range.TILE if provenance.are_neighbours(variable, bound) else Range.STRIDED


def _adds_to(statement: Statement, target: Access) -> bool:
    return any(
        a.target.tensor == target.tensor and a.operator is not None for a in assignments(statement)
    )


def _nonlinear(problem: Problem, statement: Statement) -> Iterable[Access]:
    """Yield the accesses whose duplicates may not be added up after the fact.

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
            separate = not linear or tensors.count(access.tensor) > 1
            if access.tensor in filled:
                loops = filled[access.tensor] if separate else inside
                if loops is not None:
                    suspects[access.tensor] = loops & suspects.get(access.tensor, loops)
            elif separate or (inside is not None and _stores_outside(problem, access, inside)):
                yield access


def _stores_outside(problem: Problem, access: Access, loops: frozenset[str]) -> bool:
    """Tell whether an operand stores coordinates of an index that none of `loops` runs over."""
    form = problem.type_of(access.tensor).format
    levels = zip(form.stored(access.indices), form.levels, strict=True)
    return any(index not in loops for index, level in levels if not level.full)


def conflicts(problem: Problem, access: Access, order: tuple[str, ...]) -> bool:
    """Tell whether the loop `order` visits a sparse level of `access` before the levels above
    it."""
    form = problem.type_of(access.tensor).format
    place = {index: depth for depth, index in enumerate(order)}
    depths = [place[access.indices[mode]] for mode in form.mode_order]
    return any(
        not level.full and any(above > depths[k] for above in depths[:k])
        for k, level in enumerate(form.levels)
    )

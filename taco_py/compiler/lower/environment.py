"""The environment of lowering: a kernel's arrays, sizes, names and types, and the current scope."""

from __future__ import annotations

from collections.abc import Iterator as Iterable
from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np

from codegen import build
from codegen.ir import Array, Declare, Expr, Storage, Table, Var
from codegen.names import Names
from codegen.records import dataclass
from codegen.types import BOOL, ScalarType, scalar
from taco_py.compiler.concrete.nodes import Assembly, Statement, Workspace, WorkspaceKind
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.compiler.iteration.copied_pattern import CopiedPattern, copied_pattern
from taco_py.compiler.iteration.graph import IterationGraph, all_iterators, regions_of
from taco_py.compiler.iteration.region import Iterator, Regions
from taco_py.compiler.levels import (
    Above,
    Compressed,
    Iterated,
    LevelStorage,
    Singleton,
    functions_of,
)
from taco_py.compiler.levels.workspace import RowList, TableMode
from taco_py.compiler.lower.bindings import Source
from taco_py.language.diagnostics.errors import InternalError
from taco_py.language.notation.checks import all_indices
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.operators import Number
from taco_py.language.problem import Problem, TensorType
from taco_py.language.provenance.provenance import UNDERIVED, Provenance
from taco_py.language.provenance.relations import Interval

FIRST = build.const(0)


@dataclass(frozen=True, slots=True)
class TensorArrays:
    """The arrays of an operand or of the result; `strides`, a level each, if it is all dense."""

    type: TensorType
    values: Array
    levels: tuple[LevelStorage, ...]
    strides: tuple[Expr, ...] = ()


@dataclass(frozen=True, slots=True)
class WorkspaceArrays:
    """The variables of a workspace: `scalar` alone, `values` alone, a row's four, or a table and
    its values. A row without marks is a hash table of `room` slots, a power of 2.

    base     its offset in its arrays
    shared   whether several threads add to it at once
    stored   a flag set in place of adding to the workspace, where only the pattern counts
    present  a flag for readers, true where something was added
    sets     whether additions to the workspace set that flag
    term     the access of which each stored element is a term, None where there is none, and the
             indices that are reduced over
    bound    counts additions where only their number is needed, and the most of them in one filling
    keys     the coordinate in each slot, -1 in free ones
    ranked   the values in the order of the list
    filled   the number of coordinates while threads of a block insert them together
    """

    workspace: Workspace
    element: ScalarType
    scalar: Var | None = None
    values: Array | None = None
    marks: Array | None = None
    list: Array | None = None
    count: Var | None = None
    table: Table | None = None
    base: Expr = FIRST
    shared: bool = False
    stored: Declare | None = None
    present: Var | None = None
    sets: bool = False
    term: tuple[Access, frozenset[str]] | None = None
    bound: tuple[Var, Var] | None = None
    room: Expr = FIRST
    keys: Array | None = None
    ranked: Array | None = None
    filled: Array | None = None


@dataclass(frozen=True, slots=True)
class Environment:
    """Facts that hold for all of one kernel.

    sizes       the extent of each index: a parameter, or a constant where it is static
    indices     the variable that holds the coordinate of each index
    iterators   the sparse levels of each access
    bindings    where each parameter's argument comes from, by name
    initial     initial values of workspaces and the result, where not zero
    position_names  the variable that walks each iterator, or locates each dense level; filled in as
                    lowering meets them
    """

    problem: Problem
    graph: IterationGraph
    names: Names
    tensors: Mapping[str, TensorArrays]
    workspaces: Mapping[str, WorkspaceArrays]
    sizes: Mapping[str, Expr]
    indices: Mapping[str, Var]
    iterators: Mapping[Access, Mapping[str, Iterator]]
    dtypes: Mapping[str, np.dtype[np.generic]]
    bindings: Mapping[str, Source]
    provenance: Provenance = UNDERIVED
    position_names: dict[tuple[Access, int], Var] = field(default_factory=dict)
    initial: dict[str, Number] = field(default_factory=dict)

    @property
    def target(self) -> Access:
        return self.problem.assignment.target

    @property
    def copied(self) -> CopiedPattern | None:
        """Return the pattern that the result copies, if it does."""
        return copied_pattern(self.problem) if self.graph.assembly is Assembly.COPY else None

    def position_var(self, access: Access, level: int) -> Var:
        """Return the variable for positions of one level of one access: pA2 for the second level of
        A."""
        key = (access, level)
        if key not in self.position_names:
            name = self.names.fresh(f"p{access.tensor}{level + 1}")
            self.position_names[key] = Var(name)
        return self.position_names[key]

    def level(self, access: Access, level: int) -> Compressed | Singleton:
        """Return the level functions of a level of an operand that stores coordinates."""
        return level_functions(self.tensors[access.tensor], level)

    def iterated(self, iterator: Iterator, scope: Scope) -> Iterated:
        """Return the level functions of a sparse level, or of a workspace's mode, at one point."""
        tensor = iterator.access.tensor
        if tensor in self.workspaces:
            return self._workspace_level(self.workspaces[tensor], iterator.level)
        arrays, level = self.tensors[tensor], iterator.level
        form = arrays.type.format
        return functions_of(
            form.levels[level].kind, arrays.levels[level], self._above(iterator, scope)
        )

    def _above(self, iterator: Iterator, scope: Scope) -> Above:
        """Return the expressions known above a level of an operand."""
        access, level = iterator.access, iterator.level
        stored = self.problem.stored(access)
        path = tuple(self.indices[i] if i in scope.bound else None for i in stored[:level])
        return Above(
            scope.position(access, level - 1),
            self.sizes[stored[level]],
            path[-1] if path else None,
            scope.position(access, level - 2) if level else None,
            bool(level) and self.problem.type_of(access.tensor).format.levels[level - 1].full,
            path,
        )

    def _workspace_level(self, arrays: WorkspaceArrays, level: int) -> Iterated:
        if arrays.list is not None and arrays.count is not None:
            count = arrays.count if arrays.bound is None else FIRST
            return RowList(arrays.list, count, arrays.base if arrays.keys is not None else FIRST)
        if arrays.table is None:
            raise InternalError(f"The workspace {arrays.workspace.name} has no levels to walk")
        indices = arrays.workspace.indices
        inner = build.mul(*(self.sizes[i] for i in indices[level + 1 :]))
        size = None if level == 0 else self.sizes[indices[level]]
        return TableMode(arrays.table, inner, size, branchless=level > 0)


def level_functions(arrays: TensorArrays, level: int) -> Compressed | Singleton:
    """Return the level functions of a compressed or singleton level."""
    kind = arrays.type.format.levels[level].kind
    functions = (
        functions_of(kind, arrays.levels[level], Above()) if kind.usual and not kind.full else None
    )
    if not isinstance(functions, Compressed | Singleton):
        raise InternalError(f"Level {level} of {arrays.values.name} lists no coordinates")
    return functions


@dataclass(frozen=True, slots=True)
class Carry:
    """The sums that tiles carry over, two each: their values, and their positions in the result."""

    values: Array
    places: Array
    tile: Var


@dataclass(frozen=True, slots=True)
class BlockSum:
    """A partial sum of each block of a GPU, the array of partial sums, and the initial value."""

    partial: Var
    parts: Array
    first: Expr


@dataclass(frozen=True, slots=True)
class Scope:
    """The state at one point of the generated code.

    positions  the position of each level that is already resolved
    bound      the indices whose coordinates are known
    absent     accesses known to be zero here
    intervals  the full range of each variable over positions
    left       for each level walked through such a range: the positions that tiles leave of it
    piece      the loop in pieces, and the values of its variable in this piece
    atomic     the loop whose iterations add to common elements of the result, if there is one
    origins    for each index of a dense workspace over tiles: where its tile begins
    carry      the arrays of partial sums that tiles would add to such elements
    read       the indices whose coordinates are those of the result
    serial     whether no loop is shared among threads
    zeroing    whether absent elements are stored as zero, where no other code writes them
    sums       the loop of blocks with partial sums, and these sums
    single     the levels of the one entry that a thread processes
    tile       the variable that counts the entries of a tile, and the position of the first one
    """

    positions: Mapping[tuple[Access, int], Expr]
    bound: frozenset[str]
    absent: frozenset[Access]
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    left: Mapping[tuple[Access, int], Interval] = field(default_factory=dict)
    piece: tuple[str, Interval] | None = None
    atomic: str | None = None
    carry: Carry | None = None
    origins: Mapping[tuple[str, str], Expr] = field(default_factory=dict)
    read: frozenset[str] = frozenset()
    serial: bool = False
    zeroing: bool = False
    sums: tuple[str, tuple[BlockSum, ...]] | None = None
    single: frozenset[tuple[Access, int]] = frozenset()
    tile: tuple[str, Expr] | None = None

    def position(self, access: Access, level: int) -> Expr | None:
        """Return the position at `level`; above the root 0 or as set; None while it is unknown."""
        if level < 0:
            return self.positions.get((access, -1), build.const(0))
        return self.positions.get((access, level))

    def piece_of(self, variable: str) -> Interval | None:
        """Return the values of a loop's variable in this piece of the work, if it is in pieces."""
        return self.piece[1] if self.piece is not None and self.piece[0] == variable else None

    def at(self, access: Access, level: int, position: Expr) -> Scope:
        """Return the scope with one more position resolved."""
        return replace(self, positions={**self.positions, (access, level): position})

    def ranging(self, variable: str, interval: Interval) -> Scope:
        """Return the scope with the full range of one more variable."""
        return replace(self, intervals={**self.intervals, variable: interval})

    def leaving(self, access: Access, level: int, interval: Interval) -> Scope:
        """Return the scope with one more level, of which only the positions in `interval` are
        left."""
        return replace(self, left={**self.left, (access, level): interval})

    def reading(self, index: str) -> Scope:
        """Return the scope with one more index whose coordinates the result has."""
        return replace(self, read=self.read | {index})

    def beginning(self, origins: Mapping[tuple[str, str], Expr]) -> Scope:
        """Return the scope with more tiles of dense workspaces."""
        return replace(self, origins={**self.origins, **origins})

    def inside_loop(self, index: str, missing: frozenset[Access]) -> Scope:
        """Return the scope inside a loop over `index`, in a case where `missing` are absent."""
        return replace(self, bound=self.bound | {index}, absent=self.absent | missing)

    def taking(self, levels: frozenset[tuple[Access, int]]) -> Scope:
        """Return the scope with one entry of these levels."""
        return replace(self, single=levels)

    def regions(self, env: Environment) -> Regions:
        """Return the regions at this point."""
        return Regions(env.iterators, self.absent, {}, env.initial)


EMPTY_SCOPE = Scope({}, frozenset(), frozenset())


def make_environment(
    problem: Problem, graph: IterationGraph, statement: Statement, assembled: bool = False
) -> Environment:
    """Name all variables and arrays of a kernel.

    assembled  whether a sparse result has its structure already
    """
    names = Names()
    indices = {i: Var(names.fresh(i)) for i in all_indices(problem.assignment)}
    static = dict(problem.static)
    sizes: dict[str, Expr] = {
        i: build.const(static[i]) if i in static else Var(names.fresh(f"n_{i}")) for i in indices
    }
    derived = dict.fromkeys(v for r in graph.provenance.relations for v in r.children)
    indices |= {v: Var(names.fresh(v)) for v in derived}
    tensors = {
        name: _arrays(names, name, kind, Storage.INPUT, Storage.INPUT)
        for name, kind in problem.operands
    }
    target = problem.assignment.target.tensor
    fixed = assembled or problem.result.format.is_dense
    structure = Storage.INPUT if fixed else Storage.GROWING
    values = Storage.OUTPUT if fixed else Storage.GROWING
    tensors[target] = _arrays(names, target, problem.result, structure, values)
    for side in problem.side:
        name = side.target.tensor
        tensors[name] = _arrays(names, name, side.type, Storage.INPUT, Storage.OUTPUT)
    dtypes = {name: np.dtype(kind.dtype) for name, kind in problem.operands}
    workspaces = {}
    index = scalar(problem.result.index_dtype)
    for workspace in workspaces_of(statement):
        workspaces[workspace.name] = _workspace(names, workspace, index)
        dtypes[workspace.name] = np.dtype(workspace.dtype)
    return Environment(
        problem,
        graph,
        names,
        tensors,
        workspaces,
        sizes,
        indices,
        all_iterators(problem, statement),
        dtypes,
        dict(_bindings(sizes, tensors)),
        graph.provenance,
        initial=regions_of(problem, statement).initial,
    )


def _bindings(
    sizes: Mapping[str, Expr], tensors: Mapping[str, TensorArrays]
) -> Iterable[tuple[str, Source]]:
    for index, size in sizes.items():
        if isinstance(size, Var):
            yield size.name, Source("size", index=index)
    for tensor, arrays in tensors.items():
        for level, storage in enumerate(arrays.levels):
            if storage.pos is not None:
                yield storage.pos.name, Source("pos", tensor, level)
            if storage.crd is not None:
                yield storage.crd.name, Source("crd", tensor, level)
        yield arrays.values.name, Source("values", tensor)
        for level, stride in enumerate(arrays.strides):
            if isinstance(stride, Var):
                yield stride.name, Source("stride", tensor, level)


def _arrays(
    names: Names, name: str, kind: TensorType, structure: Storage, values_in: Storage
) -> TensorArrays:
    index = scalar(kind.index_dtype)
    levels = []
    for number, level in enumerate(kind.format.levels, 1):
        arrays = {
            array: Array(names.fresh(f"{name}{number}_{array}"), index, structure)
            for array in level.arrays
        }
        levels.append(LevelStorage(arrays.get("pos"), arrays.get("crd")))
    values = Array(names.fresh(f"{name}_vals"), scalar(kind.element), values_in)
    strides: tuple[Expr, ...] = ()
    if kind.format.is_dense:
        last = len(levels) - 1
        strides = tuple(
            build.const(1)
            if k == last and kind.unit_stride
            else Var(names.fresh(f"{name}{k + 1}_stride"))
            for k in range(len(levels))
        )
    return TensorArrays(kind, values, tuple(levels), strides)


def _workspace(names: Names, workspace: Workspace, index: ScalarType) -> WorkspaceArrays:
    """Name the variables of a workspace; `index` is a type for every coordinate of the result."""
    element = scalar(workspace.dtype)
    name = names.fresh(workspace.name)
    match workspace.kind:
        case WorkspaceKind.SCALAR:
            return WorkspaceArrays(workspace, element, scalar=Var(name, element))
        case WorkspaceKind.DENSE:
            values = Array(name, element, Storage.LOCAL)
            return WorkspaceArrays(workspace, element, values=values)
        case WorkspaceKind.ROW | WorkspaceKind.MARKED:
            return WorkspaceArrays(
                workspace,
                element,
                values=Array(name, element, Storage.LOCAL),
                marks=Array(names.fresh(f"{name}_set"), BOOL, Storage.LOCAL),
                list=Array(names.fresh(f"{name}_list"), index, Storage.LOCAL),
                count=Var(names.fresh(f"{name}_count")),
            )
        case WorkspaceKind.HASH:
            return WorkspaceArrays(
                workspace,
                element,
                values=Array(names.fresh(f"{name}_vals"), element, Storage.LOCAL),
                table=Table(name),
            )

"""Assembly of a sparse result: appending coordinates and values in storage order.

Levels that store coordinates come in *groups* that share one counter of positions: a compressed
level by itself, or a coordinate list, a compressed level with the singletons below it. A group
appends at the loop of its last level. While the loops below a position run, `counter` is the number
of its entries so far:

    for i …                                C = ds
      for j …
        C2_crd[pC2] = j;  C_vals[pC2] = …;  pC2++
      C2_pos[i + 1] = pC2
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from codegen import build
from codegen.ir import (
    Array,
    Assign,
    Declare,
    Expr,
    Fill,
    Part,
    Reserve,
    Role,
    SetLength,
    Stmt,
    Store,
    Var,
    While,
)
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import top_reduction
from taco_py.compiler.levels import Compressed
from taco_py.compiler.lower.environment import Environment, TensorArrays, level_functions
from taco_py.compiler.lower.numbers import number
from taco_py.language.formats import Format
from taco_py.language.notation.nodes import Access
from taco_py.language.notation.operators import Number
from taco_py.language.provenance.relations import Interval

ZERO = build.const(0)


@dataclass(frozen=True, slots=True)
class Group:
    """Levels `first` to `last` with their counter.

    start   the counter before the current position above
    outer   the counter before the current entry of the group above, where dense levels lie between
    filled  the number of complete segments, where positions above may be left out; else None
    """

    first: int
    last: int
    counter: Var
    start: Var
    outer: Var
    filled: Var | None


@dataclass(frozen=True, slots=True)
class Result:
    """A sparse result to which entries are appended.

    nothing  the value of stored elements to which nothing is assigned, below dense levels
    base     the coordinate at which a dense outermost level begins
    is_part  whether it is a part of the result: a sparse root level then has no edges
    """

    access: Access
    arrays: TensorArrays
    order: tuple[str, ...]
    sizes: tuple[Expr, ...]
    groups: tuple[Group, ...]
    nothing: Number = 0
    base: Expr = ZERO
    is_part: bool = False

    @property
    def format(self) -> Format:
        return self.arrays.type.format

    @property
    def is_sparse(self) -> bool:
        return bool(self.groups)

    def group_of(self, level: int) -> Group | None:
        """Return the group that holds `level`, None for a dense level."""
        return next((g for g in self.groups if g.first <= level <= g.last), None)

    def group_below(self, level: int) -> Group | None:
        """Return the group whose first level is right below `level`."""
        return next((g for g in self.groups if g.first == level + 1), None)

    def has_group_below(self, level: int) -> bool:
        """Tell whether a level below `level` stores coordinates."""
        return any(group.first > level for group in self.groups)

    def begin_of(self, level: int) -> tuple[Group, Var] | None:
        """Return the next group below an entry's level, and its counter before the entry; None
        where all levels below are dense."""
        below = next((g for g in self.groups if g.first > level), None)
        if below is None:
            return None
        return below, below.start if below.first == level + 1 else below.outer

    def begin_entry(self, level: int) -> Iterator[Stmt]:
        """Declare the counter of the next group before an entry with dense levels between."""
        group, begin = self.group_of(level), self.begin_of(level)
        if group is not None and group.last == level and begin is not None:
            below, start = begin
            if start == below.outer:
                yield Declare(start, below.counter)

    def if_filled(self, level: int, code: Iterator[Stmt]) -> Iterator[Stmt]:
        """Yield code that runs where an entry has something below it; always above dense levels
        alone."""
        begin = self.begin_of(level)
        if begin is None:
            yield from code
        else:
            yield build.if_(build.lt(begin[1], begin[0].counter), build.block(*code))

    # ------------------------------------------------------------ parts

    @property
    def root(self) -> Array | None:
        """Return the pos array of an outermost level that stores coordinates."""
        return self.arrays.levels[0].pos if self.group_of(0) is not None else None

    def part(self, coordinates: Interval) -> Result:
        """Return the result for these coordinates of the outermost level."""
        if self.root is not None:
            return replace(self, is_part=True)
        sizes = (coordinates.length, *self.sizes[1:])
        return replace(self, sizes=sizes, base=coordinates.lo, is_part=True)

    def parts(self) -> tuple[Part, ...]:
        """Return the arrays of which each part of the result has a part."""
        parts: list[Part] = []
        for storage in self.arrays.levels:
            if storage.pos is not None and storage.pos != self.root:
                parts.append(Part(storage.pos, storage.crd))
            if storage.crd is not None:
                parts.append(Part(storage.crd, None, self.most_positions))
        if parts:
            parts.append(Part(self.arrays.values, role=Role.VALUES))
        return tuple(parts)

    # ------------------------------------------------------------ the kernel's frame

    def prologue(self) -> Iterator[Stmt]:
        """Yield the counters at zero, the allocation above the first group, and the first edges."""
        for group in self.groups:
            yield Declare(group.counter, build.const(0))
            if group.filled is not None:
                yield Declare(group.filled, build.const(0))
        if not self.groups:
            return
        if self.root is None or not self.is_part:
            yield from self._reserve(-1, build.const(1))
        for group in self.groups:
            level = level_functions(self.arrays, group.first)
            if isinstance(level, Compressed) and self._has_edges(group):
                if group is not self.groups[0]:
                    yield Reserve(level.pos, build.const(1))
                zero = build.zero(level.pos.element)
                yield Store(level.pos, build.const(0), zero)

    def epilogue(self) -> Iterator[Stmt]:
        """Yield the root's edges, the edges of segments never reached, and the lengths of all
        arrays."""
        if not self.groups:
            return
        if self.groups[0].first == 0 and self._has_edges(self.groups[0]):
            yield self._edges(self.groups[0], build.const(0))
        positions: Expr = build.const(1)
        for level, kind in enumerate(self.format.levels):
            group = self.group_of(level)
            if kind.is_list and group is not None:
                functions = level_functions(self.arrays, level)
                assert isinstance(functions, Compressed)
                yield from self.complete(group, positions)
                if self._has_edges(group):
                    yield SetLength(functions.pos, build.add(positions, 1))
            if group is None:
                positions = build.mul(positions, self.sizes[level])
            else:
                positions = group.counter
                crd = level_functions(self.arrays, level).crd
                yield SetLength(crd, positions, limit=self.most_positions)
        yield SetLength(self.arrays.values, positions, Role.VALUES)

    def _has_edges(self, group: Group) -> bool:
        return group.first > 0 or not self.is_part

    @property
    def most_positions(self) -> int | None:
        """Return the largest position that pos can hold; None where no array is so long."""
        limit = int(np.iinfo(self.arrays.type.index_dtype).max)
        return None if limit == np.iinfo(np.int64).max else limit

    def complete(self, group: Group, segments: Expr) -> Iterator[Stmt]:
        """Close all segments before number `segments`: `pos[filled + 1] = counter`."""
        if group.filled is None:
            return
        edge = self._edges(group, group.filled)
        body = build.block(edge, build.increment(group.filled))
        yield While(build.lt(group.filled, segments), body)

    # ------------------------------------------------------------ around one loop

    def enter(self, level: int, bound: Expr) -> Iterator[Stmt]:
        """Reserve memory before a loop over the index of `level` of at most `bound` iterations."""
        group = self.group_of(level)
        if group is not None and group.last == level:
            yield from self._reserve(level, build.add(group.counter, bound))

    def _reserve(self, level: int, positions: Expr) -> Iterator[Stmt]:
        """Reserve memory for `positions` positions of `level` and all arrays of that length."""
        if level >= 0:
            group = self.group_of(level)
            assert group is not None
            for k in range(group.first, group.last + 1):
                crd = level_functions(self.arrays, k).crd
                yield Reserve(crd, positions)
        for below in range(level + 1, self.format.order):
            if self.format.levels[below].full:
                positions = build.mul(positions, self.sizes[below])
                continue
            functions = level_functions(self.arrays, below)
            assert isinstance(functions, Compressed)
            yield Reserve(functions.pos, build.add(positions, 1))
            return
        yield Reserve(self.arrays.values, positions, Role.VALUES)

    def open(self, level: int, position: Expr, read: bool = False) -> Iterator[Stmt]:
        """Yield the code at a coordinate of `level`, before the code below it.

        read  whether the coordinate was read from the result itself, which has it already
        """
        below = self.group_below(level)
        if below is not None:
            yield from self.complete(below, position)
            yield Declare(below.start, below.counter)
        yield from self.begin_entry(level)
        group = self.group_of(level)
        if group is not None and group.last == level and below is None:
            yield from self._zeros(level, group)

    def _zeros(self, level: int, group: Group) -> Iterator[Stmt]:
        """Yield the initial values below an entry, where all levels below are dense."""
        if any(g.first > level for g in self.groups) or level + 1 == len(self.sizes):
            return
        block = build.mul(*self.sizes[level + 1 :])
        start = build.mul(group.counter, block)
        element = self.arrays.values.element
        nothing = number(self.nothing, element) if self.nothing else build.zero(element)
        yield Fill(self.arrays.values, start, block, nothing, Role.VALUES)

    def close(self, level: int, position: Expr) -> Iterator[Stmt]:
        """Yield the code at a coordinate of `level`, after the code below it: edges, then the
        coordinates."""
        below = self.group_below(level)
        if below is not None:
            yield from self.finish(below, position)
        group = self.group_of(level)
        if group is None or group.last != level:
            return
        yield from self.if_filled(level, self.append(group))

    def finish(self, below: Group, position: Expr) -> Iterator[Stmt]:
        """Yield the edge that completes the segment of `position`."""
        yield self._edges(below, position)
        if below.filled is not None:
            yield Assign(below.filled, build.add(position, 1))

    def append(self, group: Group) -> Iterator[Stmt]:
        """Yield code that appends an entry to the group."""
        for level in range(group.first, group.last + 1):
            functions = level_functions(self.arrays, level)
            yield functions.append(group.counter, Var(self.order[level]))
        yield build.increment(group.counter)

    def _edges(self, group: Group, parent: Expr) -> Stmt:
        functions = level_functions(self.arrays, group.first)
        assert isinstance(functions, Compressed)
        return functions.append_edges(parent, group.counter)


def make_result(env: Environment) -> Result:
    """Return the result of the environment's problem, with counters named."""
    arrays = env.tensors[env.target.tensor]
    form = arrays.type.format
    stored = form.stored(env.target.indices)
    groups: list[Group] = []
    for level, kind in enumerate(() if env.graph.has_places else form.levels):
        if kind.is_list:
            last = level
            while last + 1 < form.order and form.levels[last + 1].branchless:
                last += 1
            skips = any(
                env.graph.skips(stored[above]) for above in range(level) if form.levels[above].full
            )
            name = f"p{env.target.tensor}{level + 1}"
            counter = Var(env.names.fresh(name))
            start = Var(env.names.fresh(f"{name}_begin"))
            outer = Var(env.names.fresh(f"{name}_outer"))
            filled = Var(env.names.fresh(f"{name}_filled")) if skips else None
            groups.append(Group(level, last, counter, start, outer, filled))
    names = tuple(env.indices[i].name for i in stored)
    sizes = tuple(env.sizes[i] for i in stored)
    return Result(env.target, arrays, names, sizes, tuple(groups), _nothing(env))


def _nothing(env: Environment) -> Number:
    """Return the fill value of a result; of an absent reduction, the identity of its operator.

    A temporary is absent where nothing is reduced.
    """
    type, value = env.problem.result, env.problem.assignment.value
    reduce = top_reduction(value)
    if type.fill or reduce is None or reduce is value:
        fill: Number = type.fill_value.item()
        return fill
    return reduce.operator.identity_of(np.dtype(type.dtype)) or 0

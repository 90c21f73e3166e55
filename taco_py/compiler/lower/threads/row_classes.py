"""Rows as hash tables by size: small ones in the shared memory of a block, others in global memory.

    blocks for i in 0..m:  if sizes[i] <= 256:           32 threads; tables in shared memory
    blocks for i in 0..m:  if 256 < sizes[i] <= 1024:    256 threads; the same
    for batch …: blocks for i in 0..m:  if 1024 < sizes[i]: …  256 threads; tables in global memory

The threads of a block enter the coordinates of one operand's row at a time, no two the same one:
what is added to each comes in the order of these rows. How many places there are is told by the
bytes that a row may have. (Nagasaka et al. 2017, High-performance and memory-saving sparse general
matrix-matrix multiplication for NVIDIA Pascal GPU, section III: rows are grouped by their size.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codegen import build
from codegen.ir import (
    Allocate,
    Array,
    Block,
    Declare,
    Expr,
    For,
    LoopKind,
    Stmt,
    Storage,
    Var,
)
from codegen.names import Names
from codegen.records import dataclass
from codegen.tree import rewrite
from codegen.types import INT64
from taco_py.compiler.lower.environment import WorkspaceArrays

ZERO = build.const(0)
CLASSES = ((32, 8 << 10), (256, 40 << 10))
"""Threads of a block, and the bytes of shared memory that the tables of a row may have there."""
THREADS = 256
"""Threads of a block whose row has its tables in global memory."""


@dataclass(frozen=True, slots=True)
class RowClasses:
    """Blocks that take rows by their size.

    sizes  how many places the tables of each row have
    rows   the tables in global memory
    begin  declares where those of a row begin, `room` how many places each has
    """

    names: Names
    sizes: Array
    rows: tuple[WorkspaceArrays, ...]
    begin: Var
    room: Var

    @property
    def limits(self) -> tuple[int, ...]:
        """Return the most places of the tables in shared memory, for each class."""
        each = sum(array.element.itemsize for row in self.rows for array in arrays_of_table(row))
        return tuple(1 << ((bytes // each).bit_length() - 1) for _, bytes in CLASSES)

    def large(self, size: Expr) -> Expr:
        """Return how many places tables of so many have in global memory: none where they are
        small."""
        return build.select(build.lt(self.limits[-1], size), size, 0)

    def shared(
        self, piece: Var, count: Expr, ends: tuple[Stmt, ...], work: tuple[Stmt, ...]
    ) -> Iterator[Stmt]:
        """Yield the loops over the pieces whose tables lie in shared memory."""
        below = -1
        size = build.load_index(self.sizes, piece)
        known = (
            Declare(self.begin, ZERO, constant=True),
            Declare(self.room, size, constant=True),
        )
        for (threads, _), limit in zip(CLASSES, self.limits, strict=True):
            mine = build.and_(below < 0 or build.lt(below, size), build.le(size, limit))
            arrays = {a: self._own(a) for row in self.rows for a in arrays_of_table(row)}
            code = tuple(rewrite(stmt, _to_arrays(arrays)) for stmt in work)
            made = (Allocate(array, build.const(limit)) for array in arrays.values())
            yield self.blocks(piece, count, (*ends, *known, *code), mine, threads, tuple(made))
            below = limit

    def blocks(
        self, piece: Var, count: Expr, work: tuple[Stmt, ...], mine: Expr,
        threads: int = THREADS, made: tuple[Stmt, ...] = (),
    ) -> For:  # fmt: skip
        """Return a loop of blocks that do `work` for the pieces that are theirs."""
        filled = (Allocate(row.filled, build.const(1)) for row in self.rows if row.filled)

        def shared(node: Any) -> Any:
            if isinstance(node, For) and node.kind is LoopKind.THREADS:
                return replace(node, units=threads)
            return node

        inside = rewrite(build.if_(mine, Block(work)), shared)
        return For(
            piece, ZERO, count, Block((*made, *filled, inside)), kind=LoopKind.BLOCKS
        )  # fmt: skip

    def _own(self, array: Array) -> Array:
        return replace(array, name=self.names.fresh(array.name))


def _to_arrays(arrays: dict[Array, Array]) -> Any:
    return lambda node: arrays.get(node, node) if isinstance(node, Array) else node


def row_classes(
    names: Names, tables: tuple[WorkspaceArrays, ...], begin: Var, room: Var
) -> RowClasses:
    """Return the classes of a kernel's rows, whose tables are these."""
    return RowClasses(names, Array(names.fresh("sizes"), INT64, Storage.LOCAL), tables, begin, room)


def arrays_of_table(table: WorkspaceArrays) -> tuple[Array, ...]:
    """What has a place for each of a table's."""
    found = (table.values, table.keys, table.list, table.ranked)
    return tuple(array for array in found if array is not None)


def in_blocks(names: Names, table: WorkspaceArrays) -> WorkspaceArrays:
    """Return a table that the threads of a block fill together."""
    name = names.fresh(f"{table.workspace.name}_filled")
    return replace(table, filled=Array(name, INT64, Storage.LOCAL))

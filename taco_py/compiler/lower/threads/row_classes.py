"""Rows as hash tables by size: small ones in the shared memory of a block, others in global memory.

    blocks for i in 0..m:  if sizes[i] <= 256:           32 threads; tables in shared memory
    blocks for i in 0..m:  if 256 < sizes[i] <= 1024:    256 threads; the same
    for batch …: blocks for i in 0..m:  if 1024 < sizes[i]: …  256 threads; tables in global memory

The threads of a block insert the coordinates of one operand's row at a time, all of them different:
values are added to each in the order of these rows. The bytes that a row may have determine the
number of slots. (Nagasaka et al. 2017, High-performance and memory-saving sparse general
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
"""Threads of a block, and the most bytes of shared memory for the tables of its row."""
THREADS = 256
"""Threads of a block whose row has its tables in global memory."""


@dataclass(frozen=True, slots=True)
class RowClasses:
    """Blocks that process rows by their size.

    sizes  the number of slots of the tables of each row
    rows   the tables in global memory
    begin  the variable for the begin of a row's tables, `room` for the number of slots of each
    """

    names: Names
    sizes: Array
    rows: tuple[WorkspaceArrays, ...]
    begin: Var
    room: Var

    @property
    def limits(self) -> tuple[int, ...]:
        """Return the most slots of the tables in shared memory, for each class."""
        slot_bytes = sum(
            array.element.itemsize for row in self.rows for array in arrays_of_table(row)
        )
        return tuple(1 << ((bytes // slot_bytes).bit_length() - 1) for _, bytes in CLASSES)

    def large(self, size: Expr) -> Expr:
        """Return the number of slots in global memory of tables of `size`: none where they are
        small."""
        return build.select(build.lt(self.limits[-1], size), size, 0)

    def shared(
        self, piece: Var, count: Expr, ends: tuple[Stmt, ...], work: tuple[Stmt, ...]
    ) -> Iterator[Stmt]:
        """Yield the loops over the pieces whose tables lie in shared memory."""
        below = -1
        size = build.load_index(self.sizes, piece)
        declared = (
            Declare(self.begin, ZERO, constant=True),
            Declare(self.room, size, constant=True),
        )
        for (threads, _), limit in zip(CLASSES, self.limits, strict=True):
            mine = build.and_(below < 0 or build.lt(below, size), build.le(size, limit))
            arrays = {a: self._renamed(a) for row in self.rows for a in arrays_of_table(row)}
            code = tuple(rewrite(stmt, _to_arrays(arrays)) for stmt in work)
            allocations = (Allocate(array, build.const(limit)) for array in arrays.values())
            yield self.blocks(
                piece, count, (*ends, *declared, *code), mine, threads, tuple(allocations)
            )
            below = limit

    def blocks(
        self, piece: Var, count: Expr, work: tuple[Stmt, ...], mine: Expr,
        threads: int = THREADS, allocations: tuple[Stmt, ...] = (),
    ) -> For:  # fmt: skip
        """Return a loop of blocks that do `work` for the pieces of their class."""
        filled = (Allocate(row.filled, build.const(1)) for row in self.rows if row.filled)

        def shared(node: Any) -> Any:
            if isinstance(node, For) and node.kind is LoopKind.THREADS:
                return replace(node, units=threads)
            return node

        inside = rewrite(build.if_(mine, Block(work)), shared)
        return For(
            piece, ZERO, count, Block((*allocations, *filled, inside)), kind=LoopKind.BLOCKS
        )  # fmt: skip

    def _renamed(self, array: Array) -> Array:
        return replace(array, name=self.names.fresh(array.name))


def _to_arrays(arrays: dict[Array, Array]) -> Any:
    return lambda node: arrays.get(node, node) if isinstance(node, Array) else node


def row_classes(
    names: Names, tables: tuple[WorkspaceArrays, ...], begin: Var, room: Var
) -> RowClasses:
    """Return the classes of a kernel's rows, which have these tables."""
    return RowClasses(names, Array(names.fresh("sizes"), INT64, Storage.LOCAL), tables, begin, room)


def arrays_of_table(table: WorkspaceArrays) -> tuple[Array, ...]:
    """Return the arrays with an element for each slot of a table."""
    arrays = (table.values, table.keys, table.list, table.ranked)
    return tuple(array for array in arrays if array is not None)


def in_blocks(names: Names, table: WorkspaceArrays) -> WorkspaceArrays:
    """Return a table for threads of a block to fill together."""
    name = names.fresh(f"{table.workspace.name}_filled")
    return replace(table, filled=Array(name, INT64, Storage.LOCAL))

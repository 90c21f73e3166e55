"""The copy of one step of an operand into shared memory by the threads of a block.

    left, rows by depth, contiguous along the depth:     thread t takes depth t % 8, row t / 8, and
                                                         the rows 32, 64, 96 further
    right, depth by columns, contiguous along columns:   thread t takes column t % 128, depth
                                                         t / 128, and the depths 2, 4, 6 further

Adjacent threads copy adjacent elements, at least a sector of 32 bytes of them. In shared memory an
element's edge (its row or column) runs fastest, so that the products read runs of it. Rows there
are padded so that the threads of a warp write to the most banks at once.
"""

from __future__ import annotations

from math import ceil

from codegen.build import ExprLike, add, const, div, mod, mul
from codegen.ir import Expr
from codegen.records import dataclass
from polyhedral.products.gpu_tile import GpuArithmetic, GpuTile, run_of


@dataclass(frozen=True, slots=True)
class Staging:
    """A copy of `edge` by `depth` elements, by `threads` threads.

    chunk    the elements along the depth that adjacent threads copy; 0 where memory is contiguous
             along the edge
    padding  elements after each row of shared memory
    """

    edge: int
    depth: int
    threads: int
    chunk: int
    padding: int

    @property
    def copies(self) -> int:
        """Return the number of elements for each thread."""
        return self.edge * self.depth // self.threads

    @property
    def size(self) -> int:
        """Return the number of elements of shared memory."""
        return self.depth * (self.edge + self.padding)

    def place(
        self, thread: Expr, copy: Expr, edge: ExprLike = 0, depth: ExprLike = 0
    ) -> tuple[Expr, Expr]:
        """Return edge and depth of a thread's elements, of a block that begins there."""
        threads, chunk = self.threads, self.chunk
        if chunk:
            high = threads // chunk
            passes = self.edge // high
            part = _part(copy, passes, self.copies)
            return (
                add(edge, div(thread, chunk), mul(part, high)),
                add(depth, mod(thread, chunk), mul(_group(copy, passes, self.copies), chunk)),
            )
        if threads >= self.edge:
            edge_position = add(edge, mod(thread, self.edge))
            return edge_position, add(
                depth, div(thread, self.edge), mul(copy, threads // self.edge)
            )
        passes = self.edge // threads
        part = _part(copy, passes, self.copies)
        group = _group(copy, passes, self.copies)
        return add(edge, thread, mul(part, threads)), add(depth, group)

    def in_shared(self, depth: Expr, *edge: Expr) -> Expr:
        """Return the position of an element in shared memory; its edge is a sum."""
        return add(mul(depth, self.edge + self.padding), *edge)


def _part(copy: Expr, passes: int, copies: int) -> Expr:
    """Return the number of a copy in its group; there may be only one group."""
    return copy if passes == copies else mod(copy, passes)


def _group(copy: Expr, passes: int, copies: int) -> Expr:
    """Return the group of a copy."""
    return const(0) if passes == copies else div(copy, passes)


def staging(
    tile: GpuTile, edge: int, per_thread: int, along_depth: bool, machine: GpuArithmetic
) -> Staging:
    """Return the copy of one operand of a tile.

    edge         rows or columns of the block
    per_thread   rows or columns of a thread
    along_depth  whether the operand is contiguous along the depth
    """
    chunk, element_bytes = 0, machine.element_bytes
    if along_depth:
        neighbours = max(machine.gpu.sector_bytes // element_bytes, ceil(tile.threads / edge))
        chunk = min(tile.depth, neighbours)
    run = run_of(per_thread, element_bytes)
    plans = (
        Staging(edge, tile.depth, tile.threads, chunk, padding * run) for padding in range(0, 9)
    )
    return min(plans, key=lambda plan: (write_cycles(plan, machine), plan.padding))


def write_cycles(plan: Staging, machine: GpuArithmetic) -> int:
    """Return the cycles in which a warp writes an element each.

    They are the most words of one bank, of the lanes that write 128 bytes at once.
    """
    words, count, warp = (
        ceil(machine.element_bytes / 4),
        machine.gpu.banks,
        machine.gpu.warp_threads,
    )
    lanes_at_once = max(1, count // words)
    most = 0
    for first in range(0, min(warp, plan.threads), lanes_at_once):
        banks = [0] * count
        for thread in range(first, first + lanes_at_once):
            at = _place_of(plan, thread) * words
            for word in range(words):
                banks[(at + word) % count] += 1
        most = max(most, *banks)
    return most


def _place_of(plan: Staging, thread: int) -> int:
    """Return the position of the first element of a thread."""
    if plan.chunk:
        return thread % plan.chunk * (plan.edge + plan.padding) + thread // plan.chunk
    edge = thread % plan.edge
    return thread // plan.edge * (plan.edge + plan.padding) + edge

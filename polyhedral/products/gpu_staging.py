"""How the threads of a block copy one step of an operand into shared memory.

    left, rows by depth, contiguous along the depth:     thread t takes depth t % 8, row t / 8, and
                                                         the rows 32, 64, 96 further
    right, depth by columns, contiguous along columns:   thread t takes column t % 128, depth
                                                         t / 128, and the depths 2, 4, 6 further

Neighbouring threads take neighbours in memory, at least a sector of 32 bytes of them. In shared
memory an element's edge (its row or column) runs fastest, so that the products read runs of it.
Rows there are padded by what makes the threads of a warp write to the most banks at once.
"""

from __future__ import annotations

from math import ceil

from codegen.build import ExprLike, add, const, div, mod, mul
from codegen.ir import Expr
from codegen.records import dataclass
from polyhedral.products.gpu_tile import GpuArithmetic, GpuTile, run_of


@dataclass(frozen=True, slots=True)
class Staging:
    """A copy of `edge` by `depth` elements, by so many threads.

    chunk    neighbours along the depth that threads take side by side; 0 where neighbours in
             memory lie along the edge
    padding  elements behind each row of shared memory
    """

    edge: int
    depth: int
    threads: int
    chunk: int
    padding: int

    @property
    def copies(self) -> int:
        """Return elements for each thread."""
        return self.edge * self.depth // self.threads

    @property
    def size(self) -> int:
        """Return elements of shared memory."""
        return self.depth * (self.edge + self.padding)

    def place(
        self, thread: Expr, copy: Expr, edge: ExprLike = 0, depth: ExprLike = 0
    ) -> tuple[Expr, Expr]:
        """Edge and depth of a thread's elements, of a block that begins there."""
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
            across = add(edge, mod(thread, self.edge))
            return across, add(depth, div(thread, self.edge), mul(copy, threads // self.edge))
        passes = self.edge // threads
        part = _part(copy, passes, self.copies)
        group = _group(copy, passes, self.copies)
        return add(edge, thread, mul(part, threads)), add(depth, group)

    def in_shared(self, depth: Expr, *edge: Expr) -> Expr:
        """Where an element lies in shared memory; its edge is a sum."""
        return add(mul(depth, self.edge + self.padding), *edge)


def _part(copy: Expr, passes: int, copies: int) -> Expr:
    """Return the number of a copy in its group; there may be one group alone."""
    return copy if passes == copies else mod(copy, passes)


def _group(copy: Expr, passes: int, copies: int) -> Expr:
    """Return the group of a copy."""
    return const(0) if passes == copies else div(copy, passes)


def staging(
    tile: GpuTile, edge: int, own: int, along_depth: bool, machine: GpuArithmetic
) -> Staging:
    """Return the copy of one operand of a tile.

    edge         rows or columns of the block
    own          those of a thread
    along_depth  whether neighbours in memory lie along the depth
    """
    chunk, element_bytes = 0, machine.element_bytes
    if along_depth:
        neighbours = max(machine.gpu.sector_bytes // element_bytes, ceil(tile.threads / edge))
        chunk = min(tile.depth, neighbours)
    run = run_of(own, element_bytes)
    plans = (
        Staging(edge, tile.depth, tile.threads, chunk, padding * run) for padding in range(0, 9)
    )
    return min(plans, key=lambda plan: (write_cycles(plan, machine), plan.padding))


def write_cycles(plan: Staging, machine: GpuArithmetic) -> int:
    """Return the cycles in which a warp writes an element each: as many as the words that one bank
    has to take, of the lanes that write 128 bytes together."""
    words, count, warp = (
        ceil(machine.element_bytes / 4),
        machine.gpu.banks,
        machine.gpu.warp_threads,
    )
    together = max(1, count // words)
    most = 0
    for first in range(0, min(warp, plan.threads), together):
        banks = [0] * count
        for thread in range(first, first + together):
            at = _place_of(plan, thread) * words
            for word in range(words):
                banks[(at + word) % count] += 1
        most = max(most, *banks)
    return most


def _place_of(plan: Staging, thread: int) -> int:
    """Where the first element of a thread lies."""
    if plan.chunk:
        return thread % plan.chunk * (plan.edge + plan.padding) + thread // plan.chunk
    edge = thread % plan.edge
    return thread // plan.edge * (plan.edge + plan.padding) + edge

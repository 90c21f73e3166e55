"""Stages of neighbouring elements: computed in near memory, written past the caches in whole lines.

for lane in 0..count: stage[lane] = …
elements before the first line; stream stage[…] line by line; the elements after the last line
"""

from __future__ import annotations

from collections.abc import Callable

from codegen.build import add, block, const, minimum, mod, select, sub
from codegen.ir import (
    Array,
    Declare,
    Expr,
    For,
    Lead,
    Load,
    Prefetch,
    Stmt,
    Store,
    Var,
    VectorLoad,
    VectorStore,
)
from taco_py.compiler.dataflow.moved_bytes import LINE_BYTES

STAGE_ELEMENTS = 256
"""Elements that are computed in near memory before they are written past the caches, or while as
many are prefetched."""
PREFETCH_LEVEL = 2
"""The cache that the next slab is brought to: the nearest one holds this slab."""
FIRST = const(0)
FEWEST_LINES = 8
"""Cache lines of a row from which on most of them are whole, wherever the row begins."""


def first_line(array: Array, place: Expr) -> Expr:
    """Return the elements from a place of an array to its first cache line."""
    line = LINE_BYTES // array.element.itemsize
    return mod(add(Lead(array, LINE_BYTES), sub(line, mod(place, line))), line)


def write_stage(
    array: Array,
    place: Expr,
    stage: Array,
    count: Expr,
    has_lines: Expr,
    shift: Expr,
    lanes: int,
    variable: Callable[[str], Var],
    source: Expr = FIRST,
) -> list[Stmt]:
    """Return the loops that write a stage: lines past the caches, single elements around them.

    place      of its first element in the array
    has_lines  whether the stage is more than the elements before the first line
    shift      the elements from its begin to a line, more or fewer by whole lines
    lanes      of the vectors that a line is written in
    variable   returns a new variable
    source     the place of the stage's first element in its array
    """
    line = LINE_BYTES // array.element.itemsize
    lane, rest = variable("lane"), variable("rest")
    begin, end = variable("lines"), variable("lines_end")
    vectors = [
        VectorStore(
            array,
            add(place, lane, part),
            VectorLoad(stage, add(source, lane, part), lanes),
            streaming=True,
        )
        for part in range(0, line, lanes)
    ]
    copy = Store(array, add(place, rest), Load(stage, add(source, rest)))
    offset, inside = minimum(mod(add(shift, line), line), count), sub(count, begin)
    return [
        Declare(begin, select(has_lines, offset, count), True),
        Declare(end, add(begin, sub(inside, mod(inside, line))), True),
        For(rest, const(0), begin, block(copy)),
        For(lane, begin, end, block(*vectors), line),
        For(rest, end, count, block(copy)),
    ]


def prefetch_stage(array: Array, place: Expr, count: Expr, lane: Var) -> For:
    """Return the loop that asks for the lines of a stage."""
    line = max(1, LINE_BYTES // array.element.itemsize)
    fetch = Prefetch(array, add(place, lane), PREFETCH_LEVEL)
    return For(lane, const(0), count, block(fetch), line)

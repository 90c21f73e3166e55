"""The bytes that must enter a cache while a nest of loops runs, whatever the cache keeps.

A cache that holds C bytes cannot have more than C of what some iterations touch when these begin.
Where they touch F bytes, F - C must come in; so it is with each such segment of the nest:

    bytes ≥ segments · (F - C)       for iterations of any loop, taken together in any number

    for i, k, j:  C[i,j] += A[i,k] * B[k,j]      with B larger than the cache
    a segment is an iteration of i, F all of B and a row of A and of C: B comes in again for each i

The argument is that of Hong and Kung (1981) for one order of loops. What a compiler exchanges
inside a segment changes nothing, so that segments are no shorter than what our passes and C
compilers join.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from codegen.records import dataclass
from taco_py.report.limits.kernel_work import Counted

SHORT = 16
"""Iterations of inner loops together up to which compilers may write them out."""
UNROLL = 8
"""Iterations of an outer loop that passes and compilers may join: segments have no fewer."""


@dataclass(frozen=True, slots=True)
class NestLoop:
    """A loop over a part of an index, and how many iterations it has each time, on average.

    shared  whether threads share it
    fixed   whether the rounds are a number in the code, as those of what is in a tile: a compiler
            may then write them out
    """

    index: str
    rounds: float
    shared: bool = False
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class LoopNest:
    """Loops, the outermost first, around the accesses to some arrays.

    is_register_row  whether the last two loops may be exchanged: a row of the result in registers
    """

    loops: tuple[NestLoop, ...]
    arrays: tuple[Counted, ...]
    is_register_row: bool = False

    @property
    def walked(self) -> Counted | None:
        """Return the sparse operand whose entries the loops run over, if there is one."""
        return next((array for array in self.arrays if array.sparse), None)

    @property
    def shared_at(self) -> int:
        """Return the depth of the loop that threads share; beyond all where none is."""
        depths = (depth for depth, loop in enumerate(self.loops) if loop.shared)
        return next(depths, len(self.loops))


@dataclass(frozen=True, slots=True)
class Segment:
    """Iterations of the loop at a depth that are taken together: how often, and how many."""

    depth: int
    count: float
    length: float


def segments(nest: LoopNest) -> Iterator[Segment]:
    """Return segments of the nest, from all of it down to few iterations of inner loops."""
    yield Segment(-1, 1.0, 1.0)
    outside = 1.0
    last = len(nest.loops) - 1
    for depth, loop in enumerate(nest.loops):
        if outside * loop.rounds == 0:
            return  # what is inside never runs
        lengths = [loop.rounds]
        if depth < last - nest.is_register_row:
            length = float(UNROLL)
            while length < loop.rounds:
                lengths.append(length)
                length *= 4
        for length in lengths:
            yield Segment(depth, outside * loop.rounds / length, length)
        outside *= loop.rounds


def bytes_into(nest: LoopNest, holds: float, line: int, threads: int = 1) -> float:
    """Return the bytes that enter caches of so many bytes each, one a thread, at least.

    line  bytes that come together
    """
    most = 0.0
    for segment in segments(nest):
        room = holds * threads if segment.depth < nest.shared_at else holds
        touched = touched_bytes(nest, segment, line)
        most = max(most, segment.count * max(0.0, touched - room))
    return most


def touched_bytes(nest: LoopNest, segment: Segment, line: int) -> float:
    """Return the bytes of all arrays that one segment touches, in whole lines."""
    most: dict[str, float] = {}
    for array in nest.arrays:
        touched = _touched(nest, array, segment, line)
        most[array.tensor] = max(most.get(array.tensor, 0.0), touched)
    return sum(most.values())


def _touched(nest: LoopNest, array: Counted, segment: Segment, line: int) -> float:
    if array.sparse:
        return array.bytes * _share_of_entries(nest, array, segment)
    inside = [met_inside(nest, index, segment) for index in array.indices]
    spans = [min(a, b) for a, b in zip(inside, array.extents, strict=True)]
    size = array.item * prod(spans)
    if not spans or not size:
        return size
    run, at = spans[-1] if array.unit else 1.0, len(spans) - 1
    stride = array.extents[-1]
    while array.unit and at > 0 and spans[at] >= array.extents[at]:
        at -= 1
        run *= spans[at]
        stride *= array.extents[at]
    if array.item * stride < line:  # the next run may lie in the same line
        return size
    return max(size, size / run / array.item * line if run * array.item < line else size)


def _share_of_entries(nest: LoopNest, array: Counted, segment: Segment) -> float:
    """Return the share of a sparse operand's entries that one segment meets."""
    share = 1.0
    for depth, loop in enumerate(nest.loops):
        if loop.index not in array.indices:
            continue
        if depth < segment.depth:
            share /= max(1.0, loop.rounds)
        elif depth == segment.depth:
            share *= min(1.0, segment.length / max(1.0, loop.rounds))
    return share


def inside_of(nest: LoopNest, index: str, segment: Segment) -> float:
    """Return the coordinates of an index that one segment runs over."""
    count = 1.0
    for depth, loop in enumerate(nest.loops):
        if loop.index == index and depth >= segment.depth:
            count *= segment.length if depth == segment.depth else loop.rounds
    return count


def met_inside(nest: LoopNest, index: str, segment: Segment) -> float:
    """Return the coordinates of an index that one segment meets: of what a sparse operand lists,
    those that the segment's rows have together, where that is known, or as many as one row has.

    Tiles of the index part them, so that each tile has its share on average.
    """
    least, walked = inside_of(nest, index, segment), nest.walked
    if walked is None or walked.unions is None or index not in walked.indices[1:]:
        return least
    rows = inside_of(nest, walked.indices[0], segment)
    distinct = walked.unions.distinct(walked.indices.index(index), rows)
    for depth, loop in enumerate(nest.loops):
        if loop.index not in walked.indices[1:]:
            continue
        if depth < segment.depth:
            distinct /= max(1.0, loop.rounds)
        elif depth == segment.depth:
            distinct *= min(1.0, segment.length / max(1.0, loop.rounds))
    return max(distinct, least)


def widely_read(nest: LoopNest, array: Counted) -> bool:
    """Tell whether an array may be read in vectors: its neighbours lie along the innermost loop, or
    the innermost loop reads the same element again."""
    if array.sparse or not nest.loops:
        return True
    inner = _innermost(nest)
    if inner.isdisjoint(array.indices):
        return True
    return array.unit and array.indices[-1] in inner


def _innermost(nest: LoopNest) -> set[str]:
    """Return the indices of loops that may become vectors: the last one, and those around short
    ones."""
    innermost: set[str] = set()
    rounds = 1.0
    for loop in reversed(nest.loops):
        innermost.add(loop.index)
        rounds *= loop.rounds
        if rounds > SHORT or not loop.fixed:
            break
    return innermost


def single_loads(nest: LoopNest, registers: float) -> float:
    """Return loads of single elements, of arrays that no vectors can be read of, at least;
    `registers` is how many elements all registers hold."""
    narrow = [replace_item(array) for array in nest.arrays if not widely_read(nest, array)]
    if not narrow:
        return 0.0
    only = LoopNest(nest.loops, tuple(narrow), nest.is_register_row)
    return bytes_into(only, registers, 1)


def loop_turns(nest: LoopNest) -> float:
    """Count the turns of all loops, except loops that may be written out; of the innermost one,
    which may run in vectors, one each time, and where others inside are written out, as many as are
    left if a compiler joins some.

    for i in 100, k in 20, j in 64   →   100 turns over i, and 2000 over k
    """
    loops = [*nest.loops]
    while loops and loops[-1].fixed and loops[-1].rounds <= SHORT:
        loops.pop()
    outside, turns = 1.0, 0.0
    for loop in loops[:-1]:
        outside *= loop.rounds
        turns += outside
    if loops and len(loops) < len(nest.loops):
        turns += outside * loops[-1].rounds / UNROLL
    return turns


def entry_loads(nest: LoopNest, vector_bytes: int) -> float:
    """Return loads of entries of a sparse operand, at least: its value, and the coordinate if
    something needs it, each time that loops meet one.

    Where they do so innermost, or around written-out loops that fill no vector, vectors load
    neighbours together, and compilers may join turns of the loop around.

    for j in 4, i in 100, k in 5 entries, r in 16   →   2 · 2000
    for i in 100, k in 5 entries                    →   12 bytes · 500 / 32 bytes
    """
    walked = nest.walked
    if walked is None:
        return 0.0
    depths = [d for d, loop in enumerate(nest.loops) if loop.index in walked.indices]
    if not depths:
        return 0.0
    visits = prod(loop.rounds for loop in nest.loops[: depths[-1] + 1])
    inside = nest.loops[depths[-1] + 1 :]
    lanes = vector_bytes // min(array.item for array in nest.arrays)
    fills = prod(loop.rounds for loop in inside) >= max(lanes, 2)
    if inside and (fills or not all(loop.fixed for loop in inside)):
        return (1 + walked.reads_crd) * max(visits, walked.entries)
    return max(visits / UNROLL, walked.entries) * walked.item / max(vector_bytes, walked.item)


def replace_item(array: Counted) -> Counted:
    """Return the same array with elements of one byte, to count them."""
    return Counted(array.tensor, array.indices, array.extents, 1, unit=array.unit)


def shares(loops: Sequence[NestLoop], threads: int) -> float:
    """Return the share of all iterations that the thread with most of them has.

    9 iterations, 2 threads  →  5/9
    """
    rounds = next((loop.rounds for loop in loops if loop.shared), 1.0)
    total = max(1.0, rounds)
    return -(-total // threads) / total if threads > 1 else 1.0

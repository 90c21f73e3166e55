"""Running totals of an array, by loops that threads share.

    a[0] = 0;  for k in 1..n+1: a[k] += a[k - 1]

    parallel for c in 0..n/256+1:             each chunk by itself
      sum = 0
      for k in 256*c+1 .. : sum += a[k];  a[k] = sum
      sums[c + 1] = sum
    the same of sums                          a few in the end, which one thread adds up
    parallel for k in 257..n+1: a[k] += sums[(k - 1) / 256]

Numbers are put together in an order that does not depend on threads. (Sengupta et al. 2007, Scan
primitives for GPU computing: reduce, scan the sums, scan.)
"""

from __future__ import annotations

from collections.abc import Iterator

from codegen import build
from codegen.emit.abi import THREADS
from codegen.ir import (
    Allocate,
    Array,
    Assign,
    Block,
    Declare,
    Expr,
    For,
    Function,
    Invoke,
    LoopKind,
    Place,
    Stmt,
    Storage,
    Store,
    Var,
)
from codegen.names import Names
from codegen.tree import find
from codegen.types import INT64

CHUNK = 256
"""Elements that one thread puts together."""
LEVELS = 2
"""How often chunks are put together by chunks: 65536 elements are one number in the end."""

ZERO, ONE = build.const(0), build.const(1)


NAMES = {"+": "running_totals", "max": "running_maxima"}
"""The functions by their operations, of which 0 is the identity on these numbers."""
NUMBERS, COUNT = Array("numbers", INT64, Storage.OUTPUT), Var("count")


def running_totals(array: Array, count: Expr, op: str = "+") -> Invoke:
    """Put each of `array[1]` to `array[count]` together with all before it by `op`.

    The first element becomes 0. It calls a function of `totals_functions`.
    """
    return Invoke(NAMES[op], (Place(array, ZERO),), (count,), THREADS)


def totals_functions(function: Function) -> Iterator[Function]:
    """Yield the functions that one needs for its running totals, which come before it in a
    module."""
    called = {call.function for call in find(function, Invoke)}
    for op, name in NAMES.items():
        if name in called:
            names = Names((NUMBERS.name, COUNT.name, THREADS.name))
            body = Block(tuple(_levels(names, NUMBERS, COUNT, op, LEVELS)))
            yield Function(name, (NUMBERS,), (COUNT,), body, threaded=True, internal=True)


def _levels(names: Names, array: Array, count: Expr, op: str, levels: int) -> Iterator[Stmt]:
    """Yield the statements of running totals by chunks of several levels."""
    if levels == 0:
        k = Var(names.fresh("k"))
        add = Store(array, k, build.load(array, build.sub(k, 1)), op)
        yield Store(array, ZERO, build.zero(array.element))
        yield For(k, ONE, build.add(count, 1), build.block(add))
        return
    sums = Array(names.fresh(f"{array.name}_sums"), array.element, Storage.LOCAL)
    chunks = Var(names.fresh("chunks"))
    yield Declare(chunks, build.add(build.div(count, CHUNK), 1), constant=True)
    yield Allocate(sums, build.add(chunks, 1))
    yield _in_chunks(names, array, count, op, chunks, sums)
    yield from _levels(names, sums, chunks, op, levels - 1)
    k = Var(names.fresh("k"))
    before = build.load(sums, build.div(build.sub(k, 1), CHUNK))
    add = Store(array, k, before, op)
    first, end = build.const(CHUNK + 1), build.add(count, 1)
    yield For(k, first, end, build.block(add), kind=LoopKind.PARALLEL)


def _in_chunks(names: Names, array: Array, count: Expr, op: str, chunks: Var, sums: Array) -> For:
    """Return each chunk's running totals, and the last of each for `sums`."""
    chunk, k = Var(names.fresh("chunk")), Var(names.fresh("k"))
    total = Var(names.fresh("sum"), array.element)
    begin = build.mul(chunk, CHUNK)
    end = build.minimum(build.add(begin, CHUNK), count)
    step = build.block(Assign(total, build.load(array, k), op), Store(array, k, total))
    body = build.block(
        build.if_(build.eq(chunk, 0), Store(array, ZERO, build.zero(array.element))),
        Declare(total, build.zero(array.element)),
        For(k, build.add(begin, 1), build.add(end, 1), step),
        Store(sums, build.add(chunk, 1), total),
    )
    return For(chunk, ZERO, chunks, body, kind=LoopKind.PARALLEL)

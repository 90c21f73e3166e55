"""Cut a long sum in vector lanes into parts that run side by side.

    vector for j in a..b reducing + acc:       part = (b - a) / 64 * 16
      acc += A[p + j] * x[j]                   if part > 0:
                                        ->       acc_1 = acc_2 = acc_3 = 0
                                                 vector for j in a..a + part reducing + acc, acc_1 …
                                                   acc += A[p + j] * x[j]
                                                   acc_1 += A[p + j + part] * x[j + part]
                                                   ...
                                                 acc += acc_1 + acc_2 + acc_3
                                               vector for j in a + part * 4..b: as before

Additions to one vector wait for each other, which takes longer than the elements take to come from
memory; four vectors do not wait, and are four streams for the hardware to follow (1.9 times the
speed on rows of 10,000 elements, Zen 3). A loop that has four sums anyway is left in one part. The
order of a sum is free, as it is for `omp simd reduction`. Minima and maxima are cut alike. Of 32
bits, a long loop is one of blocks, whose sums are added up in 64 (`long_sums`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from codegen.build import add, block, const, div, lt, mul, select, sub, zero
from codegen.ir import (
    Assign,
    Block,
    Comment,
    Const,
    Declare,
    Expr,
    For,
    Function,
    If,
    Load,
    Module,
    Reduction,
    Select,
    Stmt,
    Store,
    Var,
    While,
)
from codegen.machine.target import Target
from codegen.names import Names
from codegen.passes.sums.long_sums import BLOCK, blocks_of, wider
from codegen.tree import children, find, map_children, rewrite
from codegen.variables import (
    declared_vars,
    names_beside,
    rename,
    statements,
    substitute,
    variables_read,
)

SUMS = 4
"""Sums in flight: an addition takes about four cycles."""
ROUND_TO = 16
"""Iterations that fill vectors: parts are so many, or several times as many."""
VECTORS = 8
"""Vectors of a part from which on it is worth a second loop's end, and the sum of all sums."""

EXTREMA = ("min", "max")
"""Operators whose parts begin with what was combined before."""

TERMS = 32
"""Numbers of 32 bits that a lane adds up before its sum is added to a wide one."""


def split_vector_sums(module: Module, target: Target) -> Module:
    """Return `module` with its sums in vector lanes cut where there are fewer than SUMS."""
    return map_children(module, lambda f: _function(f, target) if isinstance(f, Function) else f)


def split_sums_of_streams(module: Module, target: Target) -> Module:
    """Return `module` with such sums cut in functions that read no coordinates: sums beside entries
    of a sparse operand are short, and are cut into blocks alone."""

    def split(function: Function) -> Function:
        return _function(function, target, streams=not _reads_coordinates(function))

    return map_children(module, lambda f: split(f) if isinstance(f, Function) else f)


def _reads_coordinates(function: Function) -> bool:
    """Tell whether integers of an array say which elements loops read, and how many.

    Labels do not: one element is chosen by them.
    """
    integers = {array for array in function.arrays if array.element.is_integer}
    deciding: set[Var] = set()
    conditions = [*_places(function.body)]
    for stmt in statements(function.body):
        match stmt:
            case For(start=start, stop=stop):
                conditions += (start, stop)
            case While(condition=condition) | If(condition=condition):
                conditions.append(condition)
    values: dict[Var, list[Expr]] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, Declare | Assign):
            values.setdefault(stmt.var, []).append(stmt.value)
    while conditions:
        expr = conditions.pop()
        if not integers.isdisjoint(load.array for load in find(expr, Load)):
            return True
        for var in variables_read(expr) - deciding:
            deciding.add(var)
            conditions += values.get(var, ())
    return False


def _function(function: Function, target: Target, streams: bool = True) -> Function:
    names = names_beside(function)
    return rewrite(
        function,
        lambda node: _split(node, target, names, streams) if isinstance(node, For) else node,
    )


def _places(node: object) -> Iterator[Expr]:
    """Yield the positions of elements that are read or written, but for choices of one."""
    if isinstance(node, Select):
        return
    if isinstance(node, Load | Store):
        yield node.index
    for child in children(node):
        yield from _places(child)


def _split(loop: For, target: Target, names: Names, streams: bool) -> For | Block | If:
    if not _only_sums(loop):
        return loop
    if not streams or len(loop.reductions) * 2 > SUMS:
        if loop.reductions[0].op in EXTREMA:
            return loop
        return _long_in_blocks(loop, names, _block(loop, target))
    first, part = Var(names.fresh("first")), Var(names.fresh("part"))
    count = SUMS // len(loop.reductions)
    length, lanes = sub(loop.stop, first), max(target.lanes(r.var.type) for r in loop.reductions)
    return block(
        Declare(first, loop.start, constant=True),
        Declare(part, _part(length, count, lanes), constant=True),
        If(lt(0, part), _side_by_side(loop, first, part, count, names, _block(loop, target))),
        For(
            loop.var, add(first, mul(part, count)), loop.stop, loop.body, 1, loop.kind,
            loop.reductions,
        ),
    )  # fmt: skip


def _block(loop: For, target: Target) -> int:
    """Count the iterations of a block, of which a lane adds up no more than `TERMS`."""
    return min(
        BLOCK, TERMS * min(target.lanes(reduction.var.type) for reduction in loop.reductions)
    )


def _part(length: Expr, count: int, lanes: int) -> Expr:
    """Return how many iterations each of `count` sums takes, none where they are too few."""
    part = mul(div(length, ROUND_TO * count), ROUND_TO)
    least = VECTORS * lanes
    return part if least <= ROUND_TO else select(lt(length, count * least), 0, part)


def _only_sums(loop: For) -> bool:
    """Tell whether a loop in vector lanes only combines scalars by one operator."""
    if not loop.is_vector or loop.step != 1 or not loop.reductions:
        return False
    simple = all(isinstance(s, Declare | Assign | Comment) for s in loop.body.body)
    (first, *more) = {r.op for r in loop.reductions}
    alike = not more and first in ("+", *EXTREMA)
    return simple and alike and all(r.var.type.kind == "float" for r in loop.reductions)


def _side_by_side(loop: For, first: Var, part: Var, count: int, names: Names, size: int) -> Block:
    sums, op = [r.var for r in loop.reductions], loop.reductions[0].op
    copies = [{s: Var(names.fresh(s.name), s.type) for s in sums} for _ in range(count - 1)]
    every = (*sums, *(new for copy in copies for new in copy.values()))
    body: list[Stmt] = list(loop.body.body)
    for number, copy in enumerate(copies, 1):
        body += _shifted(loop, mul(part, number), copy, names).body
    shortened = For(
        loop.var, add(first, const(0)), add(first, part), Block(tuple(body)), 1, loop.kind,
        tuple(Reduction(op, var) for var in every),
    )  # fmt: skip
    if op in EXTREMA:
        return block(
            *(Declare(new, old) for copy in copies for old, new in copy.items()),
            shortened,
            *(Assign(old, copy[old], op) for old in sums for copy in copies),
        )
    if any(map(wider, (var.type for var in sums))):
        partials = {old: Var(names.fresh(old.name), old.type) for old in sums}
        return blocks_of(_with_sums(shortened, partials), (partials, *copies), names, size)
    return block(
        *(Declare(new, zero(new.type)) for copy in copies for new in copy.values()),
        shortened,
        *(Assign(old, add(*(copy[old] for copy in copies)), "+") for old in sums),
    )


def _long_in_blocks(loop: For, names: Names, size: int) -> For | If:
    """Return a loop in one part, in blocks where it is long and its sums have 32 bits."""
    length = sub(loop.stop, loop.start)
    short = isinstance(length, Const) and length.value.real <= size
    if short or not any(wider(reduction.var.type) for reduction in loop.reductions):
        return loop
    partials = {
        reduction.var: Var(names.fresh(reduction.var.name), reduction.var.type)
        for reduction in loop.reductions
    }
    cut = blocks_of(_with_sums(loop, partials), (partials,), names, size)
    return If(lt(length, size), Block((loop,)), cut)


def _with_sums(loop: For, partials: dict[Var, Var]) -> For:
    """Return the loop with other variables that it adds to."""
    reductions = tuple(Reduction(r.op, partials.get(r.var, r.var)) for r in loop.reductions)
    return replace(loop, body=rename(loop.body, partials), reductions=reductions)


def _shifted(loop: For, by: Any, sums: dict[Var, Var], names: Names) -> Block:
    """Return the body `by` iterations further on, adding to other variables."""
    locals_ = sorted(declared_vars(loop.body), key=lambda var: var.name)
    body = rename(loop.body, {var: Var(names.fresh(var.name), var.type) for var in locals_})
    return rename(substitute(body, {loop.var: add(loop.var, by)}), sums)

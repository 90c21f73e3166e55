"""Split a long sum over indirect loads into four sums that do not wait for each other.

    for p in a..b:                        rest = a; stop = b
      acc += vals[p] * x[crd[p]]          if stop - rest >= 64:
                                            first = rest
                                   ->       rest = first + (stop - first) / 8 * 8
                                            acc_1 = acc_2 = acc_3 = 0
                                            for p in first..rest step 8:
                                              prefetch vals[p + 384]; prefetch crd[p + 384]
                                              acc += vals[p] * x[crd[p]]
                                              acc_1 += vals[p + 1] * x[crd[p + 1]]
                                              ...
                                            acc += acc_1 + acc_2 + acc_3
                                          for p in rest..stop:
                                            acc += vals[p] * x[crd[p]]

A sum of 32 bits is one of 64 of blocks of 1024 terms (`long_sums`).

The order of a sum is free (as it is for `omp simd reduction`). Two loops in a row end where the
processor cannot foresee it, twice as often as one: rows of up to 64 entries gain less from four
sums than that costs (on Zen 3, rows of 10 to 27 entries: 0.75 to 0.9 of the plain loop's speed;
from 64 on, up to 1.9). The hardware follows the two streams only within a page; the prefetch runs
ahead of both and may pass the end of the arrays, where it does nothing. Loops that `vectorize`
marks are left alone.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from codegen.build import add, block, div, ge, mul, sub, zero
from codegen.ir import (
    Array,
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
    Prefetch,
    Stmt,
    Var,
)
from codegen.names import Names
from codegen.passes.sums.long_sums import blocks_of, wider
from codegen.passes.vectorize import is_scalar_call, reductions_of, stride, strides_in
from codegen.tree import find, map_children, rewrite, walk
from codegen.variables import declared_vars, names_beside, rename, substitute

POSITIONS = 8
"""Iterations in one round of the main loop."""
LONG = 64
"""Iterations from which on the main loop is worth its second loop end."""
ACCUMULATORS = 4
"""Sums in flight: an addition takes about four cycles and starts every cycle."""
AHEAD = 384
"""Elements between a position and what is prefetched there; 256 to 512 do equally well."""
MAX_STATEMENTS = 6
MAX_STREAMS = 4


def split_accumulators(module: Module) -> Module:
    """Return `module` with its indirect sums split."""
    return map_children(module, lambda f: _function(f) if isinstance(f, Function) else f)


def _function(function: Function) -> Function:
    names = names_beside(function)
    return rewrite(function, lambda node: _split(node, names) if isinstance(node, For) else node)


def _split(loop: For, names: Names) -> For | Block:
    match sub(loop.stop, loop.start):
        case Const(value=count) if count.real < LONG:
            return loop
    if not _is_indirect_sum(loop):
        return loop
    first, stop, rest = (Var(names.fresh(name)) for name in ("first", "stop", "rest"))
    full = mul(div(sub(stop, first), POSITIONS), POSITIONS)
    plain = For(loop.var, first, stop, inline_single_uses(loop.body))
    unrolled = block(
        Declare(first, rest, constant=True),
        Assign(rest, add(first, full)),
        *_main_loop(plain, rest, names).body,
    )
    return block(
        Declare(rest, loop.start),
        Declare(stop, loop.stop, constant=True),
        If(ge(sub(stop, rest), LONG), unrolled),
        For(loop.var, rest, stop, loop.body),
    )


def inline_single_uses(body: Block) -> Block:
    """Return a body of declarations and sums with each variable that is read once put in its place.

    `j = crd[p]; acc += x[j]` becomes `acc += x[crd[p]]`.
    """
    uses = Counter(find(body, Var))
    values: dict[Var, Expr] = {}
    rest: list[Stmt] = []
    for stmt in body.body:
        stmt = substitute(stmt, values)
        if isinstance(stmt, Declare) and uses[stmt.var] == 2:  # its declaration and its one use
            values[stmt.var] = stmt.value
        else:
            rest.append(stmt)
    return Block(tuple(rest))


def _is_indirect_sum(loop: For) -> bool:
    """Tell whether `loop` only adds to scalars, and cannot be vectorized."""
    statements = [s for s in loop.body.body if not isinstance(s, Comment)]
    simple = loop.is_serial and loop.step == 1 and len(statements) <= MAX_STATEMENTS
    simple = simple and not loop.unroll
    if not simple or not all(isinstance(s, Declare | Assign) for s in statements):
        return False
    if any(map(is_scalar_call, walk(loop.body))):
        return False
    reductions = reductions_of(loop, also_complex=True)
    if not reductions or any(r.op != "+" for r in reductions):
        return False
    strides = strides_in(loop)
    return any(stride(load.index, strides) not in (0, 1) for load in find(loop.body, Load))


def streams(loop: For) -> tuple[Load, ...]:
    """Return the loads that advance by one element an iteration, one for each array."""
    strides = strides_in(loop)
    local = declared_vars(loop.body)
    streams_: dict[Array, Load] = {}
    for load in find(loop.body, Load):
        if stride(load.index, strides) == 1 and not local & set(find(load.index, Var)):
            streams_.setdefault(load.array, load)
    return tuple(streams_.values())[:MAX_STREAMS]


def prefetches(loads: tuple[Load, ...], var: Var) -> list[Stmt]:
    """Prefetch each stream AHEAD elements behind the place of `var`."""
    ahead = {var: add(var, AHEAD)}
    return [Prefetch(load.array, substitute(load.index, ahead)) for load in loads]


def _main_loop(loop: For, rest: Var, names: Names) -> Block:
    """Return the full rounds of POSITIONS iterations, summed into ACCUMULATORS variables each."""
    sums = tuple(r.var for r in reductions_of(loop, also_complex=True) or ())
    wide = any(wider(var.type) for var in sums)
    lanes = [
        {s: Var(names.fresh(s.name), s.type) for s in sums if number or wide}
        for number in range(ACCUMULATORS)
    ]
    body = list(prefetches(streams(loop), loop.var))
    for position in range(POSITIONS):
        body.extend(iteration(loop, position, lanes[position % ACCUMULATORS], names))
    main = For(loop.var, loop.start, rest, Block(tuple(body)), POSITIONS, note=_note(loop))
    if wide:
        return blocks_of(main, lanes, names)
    return block(
        *(Declare(new, zero(old.type)) for lane in lanes for old, new in lane.items()),
        main,
        *(Assign(old, add(*(lane[old] for lane in lanes[1:])), "+") for old in sums),
    )


def _note(loop: For) -> str:
    return (
        f"{loop.var.name} by {POSITIONS}, where it has {LONG} terms: {ACCUMULATORS} sums that do "
        "not wait for each other"
    )


def iteration(loop: For, position: int, sums: dict[Var, Var], names: Names) -> tuple[Stmt, ...]:
    """Return the body of `loop` for the iteration `position` places after the counter."""
    body: Any = loop.body
    if position > 0:
        locals_ = sorted(declared_vars(loop.body), key=lambda var: var.name)
        body = rename(body, {v: Var(names.fresh(v.name), v.type) for v in locals_})
        body = substitute(body, {loop.var: add(loop.var, position)})
    renamed: Block = rename(body, sums)
    return renamed.body

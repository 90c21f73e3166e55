"""Skip the rows of a block that store nothing, at once.

    for l in 0..8:                              if pos[b] < pos[b + 8]:
      t = 0                                       for l in 0..8:
      for p in pos[b + l]..pos[b + l + 1]:          t = 0
        t += A[p] * x[crd[p]]            ->         …
      Y[c + l] += t                                 Y[c + l] += t

Rows beside blocks or diagonals are what these leave: few have an entry, and each would cost two
positions, a sum and an element of the result.

Legal when all that the loop does is to add sums over neighbouring segments, which begin from zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.build import add, block, lt
from codegen.ir import (
    Assign,
    Block,
    Cast,
    Comment,
    Const,
    Declare,
    Expr,
    For,
    If,
    Load,
    Module,
    Stmt,
    Store,
    Var,
)
from codegen.names import Names
from codegen.passes.blocks.one_store import rewrite_loops
from codegen.passes.simplify import simplify_tree
from codegen.tree import find
from codegen.types import INT64
from codegen.variables import substitute

ROWS = range(2, 33)
"""How many rows a block may have."""


def skip_empty_rows(module: Module) -> Module:
    """Return `module` with such loops under a condition wherever the pattern above occurs."""
    return rewrite_loops(module, _guarded)


def _guarded(loop: For, names: Names) -> list[Stmt] | None:
    segment = match_segment(loop)
    if segment is None:
        return None
    ends = (loop.start, loop.stop)
    first, last = (simplify_tree(substitute(segment, {loop.var: end})) for end in ends)
    return [If(lt(first, last), block(loop))]


def match_segment(loop: For) -> Load | None:
    """Find where a row's segment begins, in a loop that adds sums over them; None in others."""
    if not _counts_rows(loop):
        return None
    stmts = [stmt for stmt in loop.body.body if not isinstance(stmt, Comment)]
    values: dict[Var, Expr] = {}
    while stmts and isinstance(stmts[0], Declare) and stmts[0].constant:
        declare = stmts.pop(0)
        assert isinstance(declare, Declare)
        values[declare.var] = simplify_tree(substitute(declare.value, values))
    return _segment(stmts, values, loop.var)


def _segment(stmts: Sequence[Stmt], values: dict[Var, Expr], row: Var) -> Load | None:
    match stmts:
        case [
            Declare(var=total, value=Const(value=zero)),
            For(step=1) as inner,
            Store(op="+", value=Var() as added) as store,
        ] if zero == 0 and added == total and _only_adds(inner.body, total):
            begin, end = (_place(bound, values) for bound in (inner.start, inner.stop))
        case _:
            return None
    is_written = any(load.array == store.array for load in find(inner, Load))
    if is_written or not isinstance(begin, Load) or not isinstance(end, Load):
        return None
    after = simplify_tree(substitute(begin, {row: add(row, 1)}))
    return begin if end == after and begin.array != store.array else None


def _place(bound: Expr, values: dict[Var, Expr]) -> Expr:
    """Return a bound of a segment without declared variables, in its own type."""
    while isinstance(bound, Cast):
        bound = bound.operand
    return simplify_tree(substitute(bound, values))


def _counts_rows(loop: For) -> bool:
    plain = loop.is_serial and loop.step == 1 and not loop.unroll
    if not plain or loop.start != Const(0, INT64) or not isinstance(loop.stop, Const):
        return False
    return int(loop.stop.value.real) in ROWS


def _only_adds(body: Block, total: Var) -> bool:
    """Tell whether all that a loop does is to add to a variable."""
    for stmt in body.body:
        match stmt:
            case Comment() | Declare(constant=True):
                continue
            case Assign(var=var, op="+") if var == total:
                continue
            case If(then=then, orelse=orelse) if not orelse.body and _only_adds(then, total):
                continue
        return False
    return True

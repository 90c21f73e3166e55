"""Count in 32 bits what is counted to a constant: registers of a GPU have 32 bits.

    for n: int64 in 0..4:                      for n: int32 in 0..4:
      const k: int64 = k0 + t % 8 + n * 8  →     const k: int64 = k0 + t % 8 + n * 8
      const c: int64 = t % 8 * 4                 const c: int32 = t % 8 * 4

Loops between constants and names for what is computed of their variables have 32 bits, where no
part of it has more. What is added to an integer of 64 bits is widened there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from codegen.infer import COMPARISONS
from codegen.ir import Binary, Block, Const, Declare, Expr, For, Kernel, LoopKind, Module, Var
from codegen.tree import map_children
from codegen.types import INT32, INT64
from codegen.variables import assigned_vars

MOST = (1 << 31) - 1
Range = tuple[int, int]
"""The least and the greatest value."""
Ranges = Mapping[Var, Range]


def count_in_short(module: Module) -> Module:
    """Return `module` whose kernels have counters of 32 bits where these are enough."""
    return replace(module, kernels=tuple(map(_kernel, module.kernels)))


def _kernel(kernel: Kernel) -> Kernel:
    return replace(kernel, body=_Shorter(assigned_vars(kernel.body)).of(kernel.body, {}))


class _Shorter:
    """Rewrites one kernel; `assigned` variables have any value."""

    def __init__(self, assigned: frozenset[Var]) -> None:
        self._assigned = assigned

    def of(self, node: Any, ranges: Ranges) -> Any:
        """Return a tree with short counters, given the ranges of outer variables."""
        match node:
            case Block(body=body):
                inner, statements = dict(ranges), []
                for stmt in body:
                    statements.append(self.of(stmt, inner))
                    if isinstance(stmt, Declare):
                        inner.update(self._declared(stmt, inner))
                return Block(tuple(statements))
            case For():
                return self._loop(node, ranges)
            case Declare(var=var) if self._declared(node, ranges):
                return replace(node, var=_short(var), value=self.of(node.value, ranges))
            case Var():
                return _short(node) if node in ranges else node
            case Binary():
                return self._binary(node, ranges)
        return map_children(node, lambda child: self.of(child, ranges))

    def _loop(self, loop: For, ranges: Ranges) -> For:
        match loop.start, loop.stop:
            case Const(value=int(start)), Const(value=int(stop)) if self._counts(loop):
                if 0 <= start < stop <= MOST - loop.step:
                    body = self.of(loop.body, {**ranges, loop.var: (start, stop - 1)})
                    return replace(loop, var=_short(loop.var), body=body)
        shortened: For = map_children(loop, lambda child: self.of(child, ranges))
        return shortened

    def _counts(self, loop: For) -> bool:
        """Tell whether a loop's variable is all that it changes, and each iteration has one
        value."""
        is_private_kind = loop.kind in (LoopKind.SERIAL, LoopKind.THREADS, LoopKind.LANES)
        return is_private_kind and loop.var.type == INT64 and loop.var not in self._assigned

    def _declared(self, stmt: Declare, ranges: Ranges) -> dict[Var, Range]:
        """Return the range of a declared variable, where it is short."""
        if stmt.var.type != INT64 or stmt.var in self._assigned or isinstance(stmt.value, Const):
            return {}
        range_ = _range(stmt.value, ranges)
        return {} if range_ is None else {stmt.var: range_}

    def _binary(self, expr: Binary, ranges: Ranges) -> Expr:
        """Return an operation of which both operands are short, with constants of 32 bits, or
        another."""
        operands = (expr.left, expr.right)
        left, right = (self.of(operand, ranges) for operand in operands)
        parts = operands if expr.op in COMPARISONS else (expr,)
        if all(_range(part, ranges) is not None for part in parts):
            left, right = map(_short_constant, (left, right))
        return Binary(expr.op, left, right)


def _short(var: Var) -> Var:
    return replace(var, type=INT32)


def _short_constant(expr: Expr) -> Expr:
    return replace(expr, type=INT32) if isinstance(expr, Const) and expr.type == INT64 else expr


def _range(expr: Expr, ranges: Ranges) -> Range | None:
    """Return the range of an expression of short counters, no part of which has more than 32
    bits."""
    match expr:
        case Const(value=int(value), type=type) if type == INT64 and 0 <= value <= MOST:
            return value, value
        case Var() if expr in ranges:
            return ranges[expr]
        case Binary(op=op, left=left, right=right):
            one, other = _range(left, ranges), _range(right, ranges)
            if one is None or other is None:
                return None
            result = _combined(op, one, other)
            return result if result is not None and result[1] <= MOST else None
    return None


def _combined(op: str, one: Range, other: Range) -> Range | None:
    """Return the range of a sum, product or quotient of numbers that are not negative."""
    match op:
        case "+":
            return one[0] + other[0], one[1] + other[1]
        case "*":
            return one[0] * other[0], one[1] * other[1]
        case "/" if other[0] > 0:
            return one[0] // other[1], one[1] // other[0]
        case "%" if other[0] > 0:
            return 0, min(one[1], other[1] - 1)
    return None

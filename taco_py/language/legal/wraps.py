"""Fill values in the types of the computation, written into expressions.

    A[i,j] - 1 > 0   → wrapped(A[i,j] - 1, 255) > 0        A of uint8, 0 where nothing is stored
    (A[i,j] - 1) * x[j] + b[i]                             unchanged: its readers wrap all the same

Sums and products of integers are the same whether their arguments wrap first or the results wrap at
the end. Every other operation, a conversion to another type too, reads its arguments as values of
their type. Fill values that are computed later without types (`absent`) are right then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import assert_never

from codegen.records import dataclass
from taco_py.language.legal.absent import (
    Fills,
    arg_fill,
    call_fill,
    operator_of,
    reduced_fill,
    same,
    typed_fill,
)
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.dtypes import DType, expression_dtype, operand_dtype
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import WRAPPED, Number, Operator


def with_wraps(assignment: Assignment, fills: Fills, dtypes: Mapping[str, DType]) -> Assignment:
    """Write into an assignment the values that integer fill values wrap to.

    A[i,j] - 1 > 0  →  wrapped(A[i,j] - 1, 255) > 0
    """
    if all(fills(access) is None for access in accesses(assignment.value)):
        return assignment
    part = _Wraps(fills, dtypes).of(assignment.value)
    value = (part if part.agrees else part.resolve_fill()).expr
    return assignment if value == assignment.value else replace(assignment, value=value)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of an expression with its fill value.

    typed  in the types of the computation
    plain  as `absent` computes it without types
    """

    expr: Expr
    typed: Number | None
    plain: Number | None

    @property
    def is_plain(self) -> bool:
        """Tell whether both fill values are the same."""
        return self.typed is None or same(self.typed, self.plain)

    @property
    def agrees(self) -> bool:
        """Tell whether both fill values are 0, or neither is."""
        return same(self.typed, 0) == same(self.plain, 0)

    def resolve_fill(self) -> _Part:
        """Return the part as an expression whose fill value needs no types."""
        if not isinstance(self.typed, int) or self.is_plain:
            return self
        args = (self.expr, Literal(self.typed))
        return _Part(Call(WRAPPED, args, self.expr.span), self.typed, self.typed)


@dataclass(frozen=True, slots=True)
class _Wraps:
    """Finder of the values that parts of an expression wrap to."""

    fills: Fills
    dtypes: Mapping[str, DType]

    def of(self, expr: Expr) -> _Part:
        """Write wrapped fill values into an expression where its operations read them."""
        match expr:
            case Access():
                fill = self.fills(expr)
                return _Part(expr, fill, fill)
            case Literal(value):
                return _Part(expr, value, value)
            case Reduce(operator, _, body):
                part = self.of(body)
                if not (_adds_and_multiplies(operator) and part.agrees):
                    part = part.resolve_fill()
                fills = (reduced_fill(operator, fill) for fill in (part.typed, part.plain))
                return _Part(replace(expr, body=part.expr), *fills)
            case Call():
                return self._call(expr)
            case _:
                assert_never(expr)

    def _call(self, expr: Call) -> _Part:
        parts = [self.of(arg) for arg in expr.args]
        says_itself = expr.operator.at_absent or expr.operator.at_fills
        if not says_itself and not all(part.is_plain for part in parts):
            dtype = operand_dtype(expr, self.dtypes)
            parts = [p.resolve_fill() if self._is_read(expr, p.expr, dtype) else p for p in parts]
        part = self._filled(expr, parts)
        if isinstance(part.plain, float) and isinstance(part.typed, int):
            return self._filled(expr, [argument.resolve_fill() for argument in parts])
        return part

    def _is_read(self, expr: Call, arg: Expr, dtype: DType) -> bool:
        """Tell whether an operation yields another number if an argument wraps first."""
        if dtype.kind not in "iu" or not _adds_and_multiplies(expr.operator):
            return True
        return expression_dtype(arg, self.dtypes) != dtype

    def _filled(self, expr: Call, parts: Sequence[_Part]) -> _Part:
        pairs = list(zip(expr.args, parts, strict=True))
        typed = [arg_fill(expr.operator, arg, part.typed) for arg, part in pairs]
        plain = [arg_fill(expr.operator, arg, part.plain) for arg, part in pairs]
        value = typed_fill(expr, typed, self.dtypes)
        return _Part(_with_args(expr, parts), value, call_fill(operator_of(expr), plain))


def _with_args(expr: Call, parts: Sequence[_Part]) -> Call:
    args = tuple(part.expr for part in parts)
    return expr if all(map(is_, args, expr.args)) else replace(expr, args=args)


def _adds_and_multiplies(operator: Operator) -> bool:
    """Tell whether integers may wrap before or after an operation: x + y, x - y, -x and x * y."""
    return operator.additive or operator.distributes

"""Sums inside functions as separate statements, which forward and reverse mode read again.

    H[i,k] = max(sum(j, A[i,j] * X[j,k]) + b[k], 0)    →    v[i,k] = sum(j, A[i,j] * X[j,k])
                                                            H[i,k] = max(v[i,k] + b[k], 0)

Beside a sparse operand of the same indices they are computed where it stores something:

    y[i] = sum(j, A[i,j] * exp(sum(k, U[i,k] * V[j,k])))
    →    v[i,j] = stored(A[i,j]) * sum(k, U[i,k] * V[j,k])
         y[i] = sum(j, A[i,j] * exp(v[i,j]))

The planner inlines a statement into its reader where that is faster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field

from codegen.records import dataclass
from taco_py.language.autodiff.index_names import FreshNames
from taco_py.language.notation.checks import free_indices
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import COMPILER, MUL
from taco_py.language.notation.tree import is_call_of, map_children


@dataclass(slots=True, eq=False)
class _Splitter:
    names: FreshNames
    zero: Collection[str]
    statements: list[Assignment] = field(default_factory=list)

    def split(self, expr: Expr, masks: tuple[Access, ...] = (), inside: bool = False) -> Expr:
        """Replace each sum inside a function by an access."""
        if isinstance(expr, Reduce) and inside:
            return self._value(expr, masks)
        if is_call_of(expr, MUL):
            masks = (*masks, *mask_factors(expr, self.zero))
        closes = isinstance(expr, Call) and expr.operator.closes
        return map_children(expr, lambda child: self.split(child, masks, inside or closes))

    def _value(self, expr: Reduce, masks: Sequence[Access]) -> Access:
        """Add a statement for a sum, and return its access."""
        free = free_indices(expr)
        same = [mask for mask in masks if {*mask.indices} == {*free}]
        value = where_stored(expr, same[:1])
        target = Access(self.names.fresh("v"), free)
        self.statements.append(Assignment(target, value))
        return target


def mask_factors(expr: Expr, zero: Collection[str]) -> Iterator[Access]:
    """Yield the factors of a product that make it 0 where they store nothing.

    zero  operands that are 0 there
    """
    if is_call_of(expr, COMPILER["stored"]):
        (expr,) = expr.args
    if isinstance(expr, Access) and expr.tensor in zero and not expr.subscripts:
        yield expr
    elif is_call_of(expr, MUL):
        for arg in expr.args:
            yield from mask_factors(arg, zero)


def where_stored(expr: Expr, masks: Iterable[Access]) -> Expr:
    """Restrict a value to where operands store something, else 0: stored(A[i,j]) * value."""
    for mask in masks:
        expr = Call(MUL, (Call(COMPILER["stored"], (mask,)), expr))
    return expr


def with_forward_values(
    statements: Sequence[Assignment], zero: Collection[str], names: FreshNames
) -> tuple[Assignment, ...]:
    """Insert statements for the sums inside functions before the statements that read them.

    zero  operands that are 0 where they store nothing
    """
    result: list[Assignment] = []
    for statement in statements:
        splitter = _Splitter(names, zero)
        value = splitter.split(statement.value)
        result += splitter.statements
        same = value is statement.value
        result.append(
            statement
            if same
            else Assignment(statement.target, value, statement.operator, statement.span)
        )
    return tuple(result)

"""Sums inside functions as statements of their own, which forward and reverse mode read again.

    H[i,k] = max(sum(j, A[i,j] * X[j,k]) + b[k], 0)    →    v[i,k] = sum(j, A[i,j] * X[j,k])
                                                            H[i,k] = max(v[i,k] + b[k], 0)

Beside a sparse operand of the same indices they are taken where that stores something:

    y[i] = sum(j, A[i,j] * exp(sum(k, U[i,k] * V[j,k])))
    →    v[i,j] = stored(A[i,j]) * sum(k, U[i,k] * V[j,k])
         y[i] = sum(j, A[i,j] * exp(v[i,j]))

The planner puts a statement back into its reader where that is faster.
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
    made: list[Assignment] = field(default_factory=list)

    def split(self, expr: Expr, masks: tuple[Access, ...] = (), inside: bool = False) -> Expr:
        """Put an access in the place of each sum that stands inside a function."""
        if isinstance(expr, Reduce) and inside:
            return self._value(expr, masks)
        if is_call_of(expr, MUL):
            masks = (*masks, *mask_factors(expr, self.zero))
        closes = isinstance(expr, Call) and expr.operator.closes
        return map_children(expr, lambda child: self.split(child, masks, inside or closes))

    def _value(self, expr: Reduce, masks: Sequence[Access]) -> Access:
        """Return the access of a sum that has a statement of its own."""
        free = free_indices(expr)
        same = [mask for mask in masks if {*mask.indices} == {*free}]
        value = where_stored(expr, same[:1])
        target = Access(self.names.fresh("v"), free)
        self.made.append(Assignment(target, value))
        return target


def mask_factors(expr: Expr, zero: Collection[str]) -> Iterator[Access]:
    """Find the factors of a product that make it 0 where they store nothing.

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
    """Take a value where operands store something, else 0: stored(A[i,j]) * value."""
    for mask in masks:
        expr = Call(MUL, (Call(COMPILER["stored"], (mask,)), expr))
    return expr


def with_forward_values(
    statements: Sequence[Assignment], zero: Collection[str], names: FreshNames
) -> tuple[Assignment, ...]:
    """Make statements for the sums inside functions, before the statement that reads them.

    zero  operands that are 0 where they store nothing
    """
    found: list[Assignment] = []
    for each in statements:
        splitter = _Splitter(names, zero)
        value = splitter.split(each.value)
        found += splitter.made
        same = value is each.value
        found.append(each if same else Assignment(each.target, value, each.operator, each.span))
    return tuple(found)

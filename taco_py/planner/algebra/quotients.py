"""Quotients and negations around products, done to one of their factors instead.

    sum(j, sum(k, A[i,j] * B[j,k] / d[i] * x[k]))  →  sum(j, sum(k, A[i,j] / d[i] * B[j,k] * x[k]))
    sum(j, d[i] * d[j] / m * x[j])                 →  sum(j, d[i] / m * d[j] * x[j])

One product is left under the sums, whose factors may be contracted in any order. A divisor goes to
a factor that has all of its indices; where none has, one that is a product is taken apart. Values
are the same but for rounding, and what is not stored is zero beside any divisor as before, for
every factor is still one. Where none has the indices, a quotient stays one factor. So does one
around which nothing is summed: `sum(j, …) / d[i]` divides once a sum. Products of integers are
left: their quotient is of a type in which they do not wrap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from codegen.records import dataclass
from taco_py.language.diagnostics.errors import OperandTypeError
from taco_py.language.legal.types import negates, sum_wraps_alone
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import DType, expression_dtype
from taco_py.language.notation.nodes import Call, Expr, Reduce
from taco_py.language.notation.operators import Operator
from taco_py.language.notation.tree import children, walk

MOVED_OPERATIONS = 16
"""Operations that are moved in one term at most."""
Path = tuple[int, ...]
"""Which child to go to at each step from the root of an expression."""
Binders = Mapping[str, Path]
"""Where the sum over each index is, of those around an expression."""


@dataclass(frozen=True, slots=True)
class _Part:
    """An expression in a product, where it is, and the sums around it."""

    expr: Expr
    path: Path
    binders: Binders


def open_products(expr: Expr, dtypes: Mapping[str, DType]) -> Expr:
    """Return a term with quotients and negations of products under sums applied to one factor."""
    if not any(_scales(node) for node, _ in walk(expr)):
        return expr
    for _ in range(MOVED_OPERATIONS):
        opened = next(_moves(expr, dtypes), None)
        if opened is None:
            break
        expr = opened
    return expr


def _scales(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.operator.scales


def _moves(expr: Expr, dtypes: Mapping[str, DType]) -> Iterator[Expr]:
    """Yield the expression with one operation moved to a factor, for every one that may move."""
    product = _Product(dtypes, expression_dtype(expr, dtypes))
    product.visit(_Part(expr, (), {}))
    for opening in product.openings:
        able = [factor for factor in product.factors if product.may_take(factor, opening)]
        if able:
            to = min(able, key=lambda f: (len(free_indices(f.expr)), len(tuple(accesses(f.expr)))))
            assert isinstance(opening.expr, Call)
            scaled = _placed(expr, to.path, _done_to(opening.expr, to.expr))
            yield _placed(scaled, opening.path, children(_at(scaled, opening.path))[0])
        elif (quotient := product.divide_in_turn(opening)) is not None:
            yield _placed(expr, opening.path, quotient)


@dataclass(slots=True)
class _Product:
    """The factors of a product, through the sums in it, and the operations around some of them.

    dtype  the product's type
    """

    dtypes: Mapping[str, DType]
    dtype: DType
    operator: Operator | None = None
    factors: list[_Part] = field(default_factory=list)
    openings: list[_Part] = field(default_factory=list)

    def visit(self, part: _Part) -> None:
        """Note the factors of a part, or the operation around several factors."""
        expr = part.expr
        match expr:
            case Reduce(operator, index, _) if operator.additive and self.may_open(expr):
                self.visit(_below(part, 0, {**part.binders, index: part.path}))
            case Call(operator, args) if self.multiplies(operator) and self.may_open(expr):
                self.operator = operator
                for place in range(len(args)):
                    self.visit(_below(part, place, part.binders))
            case Call(operator, (inside, *_)) if operator.scales and self.may_open(inside):
                self.visit_around(part)
            case _:
                self.factors.append(part)

    def visit_around(self, part: _Part) -> None:
        """Note the factors inside of an operation, or the operation itself as a factor."""
        inside = replace(self, factors=[], openings=[])
        inside.visit(_below(part, 0, part.binders))
        with_indices = [factor for factor in inside.factors if free_indices(factor.expr)]
        several = len(with_indices) > 1 or (
            len(with_indices) == 1
            and not {*free_indices(part.expr)} <= {*free_indices(with_indices[0].expr)}
        )
        if several and any(index in part.binders for index in free_indices(part.expr)):
            self.operator = inside.operator
            self.factors += inside.factors
            self.openings += (*inside.openings, part)
        else:
            self.factors.append(part)

    def multiplies(self, operator: Operator) -> bool:
        """Tell whether an operator is the multiplication of this product."""
        return operator.distributes and self.operator in (None, operator)

    def may_open(self, expr: Expr) -> bool:
        """Tell whether factors of an expression may be factors of the product without wrapping."""
        return not sum_wraps_alone(expression_dtype(expr, self.dtypes), self.dtype)

    def may_take(self, factor: _Part, opening: _Part) -> bool:
        """Tell whether a factor has all indices of a divisor and keeps the type of the product."""
        call = opening.expr
        assert isinstance(call, Call)
        indices = {index for other in call.args[1:] for index in free_indices(other)}
        if not indices <= {*free_indices(factor.expr)}:
            return False
        if any(factor.binders.get(i) != opening.binders.get(i) for i in indices):
            return False
        try:
            dtype = expression_dtype(_done_to(call, factor.expr), self.dtypes)
        except OperandTypeError:
            return False  # as -b is not defined for booleans, which b / c is of
        return dtype == self.dtype and negates(dtype)

    def divide_in_turn(self, opening: _Part) -> Expr | None:
        """Return a quotient by a product as divisions by each factor in turn; None where none
        applies.
        """
        call = opening.expr
        assert isinstance(call, Call)
        quotient = call.args[0]
        divisors = [part for other in call.args[1:] for part in self.divisors(opening, other)]
        for divisor in divisors:
            quotient = replace(call, args=(quotient, divisor))
        return quotient if divisors else None

    def divisors(self, opening: _Part, divisor: Expr) -> tuple[Expr, ...]:
        """Return the factors of a divisor if each of them has a factor to divide; else none."""
        call = opening.expr
        assert isinstance(call, Call)
        quotient = replace(opening, expr=replace(call, args=(call.args[0], divisor)))
        if any(self.may_take(factor, quotient) for factor in self.factors):
            return (divisor,)
        if not (isinstance(divisor, Call) and self.multiplies(divisor.operator)):
            return ()
        parts = [self.divisors(opening, part) for part in divisor.args]
        return (
            tuple(part for part_divisors in parts for part in part_divisors) if all(parts) else ()
        )


def _below(part: _Part, place: int, binders: Binders) -> _Part:
    return _Part(children(part.expr)[place], (*part.path, place), binders)


def _done_to(call: Call, factor: Expr) -> Call:
    """Return the same operation on one factor."""
    return replace(call, args=(factor, *call.args[1:]))


def _at(expr: Expr, path: Path) -> Expr:
    for place in path:
        expr = children(expr)[place]
    return expr


def _placed(expr: Expr, path: Path, new: Expr) -> Expr:
    """Return `expr` with another expression at a path."""
    if not path:
        return new
    part = _placed(children(expr)[path[0]], path[1:], new)
    if isinstance(expr, Reduce):
        return replace(expr, body=part)
    assert isinstance(expr, Call)
    return replace(expr, args=(*expr.args[: path[0]], part, *expr.args[path[0] + 1 :]))

"""Reduce over what operands store, and take what is absent into account at once.

    s = sum(i, cos(a[i]))                                                              a in s
    → s = sum(i, filled(cos(a[i]), 0)) + 1.0 * (size_i - sum(i, float64(1) * stored(a[i])))

What operands do not store has one value, the fill value of what is reduced, wherever no entry is.
Any number of them are one in a maximum: m[i] = max(j, A[i,j]) is max(t, 0) in rows with fewer
entries than columns, where t is that of the entries, and t in full ones. Loops then go through
entries, and not through all coordinates.

    n[i] = sum(j, where(filled(S[i,j], -inf) == m[i], 1, 0))                           S in ds
    → n[i] = sum(j, kept(where(…), stored(S[i,j])))
             + where(-inf == m[i], 1, 0) * (size_j - sum(j, float64(1) * stored(S[i,j])))

What is chosen of two numbers may depend on indices that are not reduced over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import reduce

import numpy as np

from codegen.names import Names
from codegen.records import dataclass
from taco_py.compiler.concrete.terms import summed
from taco_py.language.legal.absent import (
    absorbs,
    arg_fill,
    differing,
    fill_of,
    is_number,
    operator_of,
    reduced_fill,
    same,
)
from taco_py.language.legal.stored import is_full
from taco_py.language.legal.types import computes_exactly
from taco_py.language.notation.checks import accesses, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.functions.function_table import LESS, NOT_EQUAL, WHERE
from taco_py.language.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import (
    ADD,
    FILLED,
    KEEP,
    MUL,
    SELECTED,
    STORED,
    SUB,
    Number,
    Operator,
)
from taco_py.language.notation.tree import map_children, peel_reductions
from taco_py.planner.context import Context
from taco_py.planner.ir.index_sizes import Sizes
from taco_py.planner.ir.program import Program
from taco_py.planner.rules.base import Numbers, Outcome, Phase, Rewrite, Rule, Site, result

COUNT = np.dtype(np.int64)
REASON = "what is not stored is reduced once, for it is the same everywhere"


def apply(program: Program, site: Site, context: Context) -> Outcome:
    """Reduce only entries where all absent elements have one value."""
    sizes = Sizes.of(program.last, program.facts, Names(program.facts), context.goal.sized)
    value = _Reductions(sizes).of(program.last.value)
    if value is program.last.value:
        return None
    extended = program.before(program.result, tuple(sizes.steps.values()), sizes.operands)
    return Rewrite(extended.with_assignment(replace(program.last, value=value)), REASON)


@dataclass(frozen=True, slots=True)
class _Reductions:
    """The reductions of an assignment, each over entries alone where that is possible."""

    sizes: Sizes

    def of(self, expr: Expr) -> Expr:
        """Return an expression with its reductions over entries, the innermost first."""
        if not isinstance(expr, Reduce):
            return map_children(expr, self.of)
        indices, body = peel_reductions(expr, expr.operator)
        inside = self.of(body)
        reduced = self._over_entries(expr, indices, inside)
        if reduced is not None:
            return reduced
        return expr if inside is body else _reduced(expr, indices, inside)

    def _over_entries(self, expr: Reduce, indices: tuple[str, ...], body: Expr) -> Expr | None:
        operator, fill = expr.operator, self._fill_of(body)
        dtype = expression_dtype(body, self.sizes.dtypes)
        if fill is None:
            return self._choices(expr, indices, body, dtype)
        nothing = operator.identity_of(dtype)
        if nothing is None or same(fill, nothing):
            return None
        counts_absent = not absorbs(operator, fill)
        if counts_absent and (
            operator != ADD or not (dtype == COUNT or self._counts(indices, dtype))
        ):
            return None
        if not any(set(indices) & set(access.indices) for access in self._sparse(body)):
            return None
        entries = _reduced(expr, indices, Call(FILLED, (body, Literal(nothing))))
        exact = dtype if counts_absent else COUNT
        mask: Expr = Call(MUL, (Literal(1, dtype=exact.name), self._stored(body)))
        present = [index for index in indices if index in free_indices(mask)]
        if not present:
            return None
        stored, all_ = summed(mask, present), self.sizes.product(present, exact)
        remaining = [index for index in indices if index not in present]
        if counts_absent:
            missing: Expr = Call(SUB, (all_, stored))
            if remaining:
                missing = Call(MUL, (missing, self.sizes.product(remaining, exact)))
            absent = Call(MUL, (Literal(fill), missing))
            return Call(ADD, (entries, absent))
        with_absent = _beside_absent(operator, entries, fill)
        counts: list[Expr] = [stored, all_]
        if remaining:  # of which there may be no values, and then nothing is reduced
            times = self.sizes.product(remaining, exact)
            counts = [Call(MUL, (count, times)) for count in counts]
        value = Call(WHERE, (Call(LESS, tuple(counts)), with_absent, entries))
        return _absent_alone(value, Call(NOT_EQUAL, (stored, Literal(0))), operator, fill, dtype)

    def _choices(
        self, expr: Reduce, indices: tuple[str, ...], body: Expr, dtype: np.dtype[np.generic]
    ) -> Expr | None:
        """Return a sum of one of two numbers as a sum over present and absent elements.

        Of one sparse operand, over indices that nothing else has.
        """
        exact = dtype == COUNT or self._counts(indices, dtype)
        if expr.operator != ADD or not exact or not _chooses_number(body):
            return None
        sparse = {*self._sparse(body)}
        if len(sparse) != 1:
            return None
        (access,) = sparse
        absent = _without(body, access)
        if not {*indices} <= {*access.indices} or not {*indices}.isdisjoint(free_indices(absent)):
            return None
        entries = _reduced(expr, indices, Call(KEEP, (body, Call(STORED, (access,)))))
        present = Call(MUL, (Literal(1, dtype=dtype.name), Call(STORED, (access,))))
        missing = Call(SUB, (self.sizes.product(indices, dtype), summed(present, indices)))
        return Call(ADD, (entries, Call(MUL, (absent, missing))))

    def _stored(self, expr: Expr) -> Expr:
        """Return the condition that an expression is stored: A alone of A[i,j] * x[j]."""
        if not isinstance(expr, Call):
            return Call(STORED, (expr,))
        if expr.operator == FILLED:
            return self._stored(expr.args[0])
        fills = [arg_fill(expr.operator, arg, self._fill_of(arg)) for arg in expr.args]
        groups = [
            [arg for place in group if not is_number(arg := expr.args[place])]
            for group in differing(operator_of(expr), fills)
        ]
        parts = [part for group in groups for part in group]
        if not parts or any(isinstance(part, Reduce) for part in parts):
            return Call(STORED, (expr,))
        unions = [_fold(ADD, map(self._stored, group)) for group in groups if group]
        if expr.operator.condition is not None:
            unions.append(expr.args[expr.operator.condition])
        return _fold(MUL, unions)

    def _counts(self, indices: tuple[str, ...], dtype: np.dtype[np.generic]) -> bool:
        """Tell whether a type represents every count of elements along some indices."""
        return not computes_exactly(dtype) and self.sizes.are_exact(indices, dtype)

    def _fill_of(self, expr: Expr) -> Number | None:
        return fill_of(expr, self._fill, self.sizes.dtypes)

    def _fill(self, access: Access) -> Number | None:
        return None if is_full(self.sizes.operands[access.tensor].type.format) else 0

    def _sparse(self, expr: Expr) -> Iterator[Access]:
        return (a for a in accesses(expr) if self._fill(a) is not None)


def _absent_alone(
    value: Expr, some: Expr, operator: Operator, fill: Number, dtype: np.dtype[np.generic]
) -> Expr:
    """Make a reduction absent where none of its elements is stored.

    some  whether one is stored
    """
    number = reduced_fill(operator, fill)
    if number is None:
        return value
    if same(number, 0):
        return Call(KEEP, (value, some))
    nothing = Literal(number, dtype=dtype.name)
    return Call(FILLED, (Call(SELECTED, (some, value, nothing)), nothing))


def _beside_absent(operator: Operator, entries: Expr, fill: Number) -> Expr:
    """Return the reduction of entries with one fill: the fill itself where it annihilates."""
    wins = operator.annihilated(1, fill) is not None
    return Literal(fill) if wins else Call(operator, (entries, Literal(fill)))


def _chooses_number(expr: Expr) -> bool:
    """Tell whether an expression selects one of two finite numbers."""
    if not isinstance(expr, Call) or not expr.operator.chooses:
        return False
    numbers = [fill_of(arg, lambda access: None) for arg in expr.args[1:]]
    return all(number is not None and bool(np.isfinite(number)) for number in numbers)


def _without(expr: Expr, access: Access) -> Expr:
    """Return an expression for elements where one access stores nothing."""
    if expr == access:
        return Literal(0)
    match expr:
        case Call(operator, (inside, number)) if operator == FILLED and inside == access:
            return number
        case _:
            return map_children(expr, lambda child: _without(child, access))


def _fold(operator: Operator, parts: Iterable[Expr]) -> Expr:
    return reduce(lambda one, other: Call(operator, (one, other)), parts)


def _reduced(expr: Reduce, indices: tuple[str, ...], body: Expr) -> Expr:
    for index in reversed(indices):
        body = Reduce(expr.operator, index, body)
    return body


RULE = Rule("count_absent", Phase.NECESSARY, apply, result, Numbers.ROUNDS)

"""Products multiplied out: `distribute`.

    y[i] = sum(j, (A[i,j] - B[i,j]) * x[j])  →  y[i] = sum(j, A[i,j] * x[j]) - sum(j, B[i,j] * x[j])

Where one loop merged A and B, each term then has separate loops, in separate orders; `loopfuse`
fuses some of them. Sums in the numerator of a quotient are separated as well.

Integers wrap as before, for all parts are computed in one type. Real numbers are rounded elsewhere,
and infinite or too large ones may result in another infinity, or NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from taco_py.compiler.concrete.terms import Term, map_terms, split_terms, summed
from taco_py.compiler.schedule.commands import Distribute
from taco_py.compiler.schedule.refused import refused
from taco_py.language.notation.checks import MAX_DEPTH, free_indices
from taco_py.language.notation.dtypes import expression_dtype
from taco_py.language.notation.nodes import Assignment, Call, Expr
from taco_py.language.notation.operators import ADD, NEG, SUB
from taco_py.language.notation.printer import to_text
from taco_py.language.notation.tree import is_additive, is_sum, walk

Dtypes = Mapping[str, np.dtype[Any]]
Signed = tuple[bool, Expr]
"""A term, and whether it is subtracted."""


def multiply_out(assignment: Assignment, command: Distribute) -> Assignment:
    """Return `assignment` with one of its terms multiplied out. Raises ScheduleError."""
    every = split_terms(assignment.value)
    terms = [term for term in every if term.body == command.expression]
    count = count_terms(command.expression)
    if count < 2:
        raise refused(command, "there is no sum in it", "name a product with a sum in it")
    if not terms:
        names = ", ".join(to_text(term.body) for term in every)
        reason = f"it is no term of {to_text(assignment)}"
        raise refused(command, reason, f"the terms are {names}")
    check_count(command, len(every) - len(terms) + len(terms) * count)
    for part, index in _repeated(command.expression, [i for term in terms for i in term.reduced]):
        reason = f"{to_text(part)} would be added up for each {index}, which it has not"
        raise refused(command, reason, "leave the sum whole")
    return replace(assignment, value=map_terms(assignment.value, partial(_expand, command)))


def is_taken(term: Term) -> bool:
    """Tell whether `multiply_out` accepts the command for this term."""
    return count_terms(term.body) > 1 and not any(_repeated(term.body, term.reduced))


def _repeated(expr: Expr, summed_over: Iterable[str]) -> Iterator[tuple[Expr, str]]:
    """Yield the parts of `expr` that lack one of these indices, and that index."""
    parts = multiplied(expr)
    for index in dict.fromkeys(summed_over):
        yield from ((part, index) for _, part in parts if index not in free_indices(part))


def check_count(command: Distribute, count: int) -> None:
    """Raise ScheduleError where the expression would have more terms than its depth allows.

    Each added term is one more level, and a product of n sums has 2^n terms.
    """
    if count > MAX_DEPTH:
        raise refused(
            command,
            f"the expression would have {count} terms, and can have {MAX_DEPTH}",
            "compute some of the sums first and use the results as operands",
        )


def check_types(command: Distribute, dtypes: Dtypes) -> None:
    """Raise ScheduleError unless all parts are computed in the type of the full expression.

    In a narrower type they would wrap, or be rounded, where the full expression does not.
    """
    full_dtype = expression_dtype(command.expression, dtypes)
    sums = [n for n, _ in walk(command.expression) if is_additive(n)]
    for part in (*sums, *(part for _, part in multiplied(command.expression))):
        dtype = expression_dtype(part, dtypes)
        if dtype != full_dtype:
            raise refused(
                command,
                f"{to_text(part)} is computed in {dtype}, and the whole in {full_dtype}",
                f"convert the operands to {full_dtype}",
            )


def count_terms(expr: Expr) -> int:
    """Count the terms that `multiplied` returns, without computing them.

    (a - b) * (c + d)  →  4
    """
    if not isinstance(expr, Call):
        return 1
    counts = [count_terms(arg) for arg in expr.args]
    if expr.operator.additive:
        return sum(counts)
    linear = zip(counts, expr.operator.linear[: len(counts)], strict=True)
    return prod(count for count, is_linear in linear if is_linear)


def multiplied(expr: Expr) -> tuple[Signed, ...]:
    """Return the terms whose sum `expr` is, as far as its operators are linear.

    (a - b) * (c + d)  →  + a * c, + a * d, - b * c, - b * d
    """
    if not isinstance(expr, Call):
        return ((False, expr),)
    operator = expr.operator
    if operator.additive:
        return tuple(
            (negative != (sign < 0), part)
            for arg, sign in zip(expr.args, operator.signs, strict=True)
            for negative, part in multiplied(arg)
        )
    choices = [
        multiplied(arg) if linear else ((False, arg),)
        for arg, linear in zip(expr.args, operator.linear[: len(expr.args)], strict=True)
    ]
    terms = []
    for choice in product(*choices):
        negative = sum(minus for minus, _ in choice) % 2 == 1
        terms.append((negative, replace(expr, args=tuple(part for _, part in choice))))
    return tuple(terms)


def _expand(command: Distribute, expr: Expr) -> Expr:
    """Return one term with its sums; the command's term as a sum of terms, each with its sums."""
    reduced, body = [], expr
    while is_sum(body):
        reduced.append(body.index)
        body = body.body
    if body != command.expression:
        return expr
    (negative, first), *rest = multiplied(body)
    total = summed(first, reduced)
    if negative:
        total = Call(NEG, (total,))
    for negative, part in rest:
        total = Call(SUB if negative else ADD, (total, summed(part, reduced)))
    return total

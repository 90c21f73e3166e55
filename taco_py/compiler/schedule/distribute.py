"""Products multiplied out: `distribute`.

    y[i] = sum(j, (A[i,j] - B[i,j]) * x[j])  →  y[i] = sum(j, A[i,j] * x[j]) - sum(j, B[i,j] * x[j])

Where one loop met A and B together, each term then has loops of its own, which run in orders of
their own; `loopfuse` puts one around several of them. Sums in the numerator of a quotient are taken
apart as well.

Integers wrap as they did, for all of it is computed in one type. Real numbers are rounded at other
places, and what is infinite or too large may give another infinity, or NaN.
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
    made = count_terms(command.expression)
    if made < 2:
        raise refused(command, "there is no sum in it", "name a product with a sum in it")
    if not terms:
        known = ", ".join(to_text(term.body) for term in every)
        reason = f"it is no term of {to_text(assignment)}"
        raise refused(command, reason, f"the terms are {known}")
    check_count(command, len(every) - len(terms) + len(terms) * made)
    for part, index in _repeated(command.expression, [i for term in terms for i in term.reduced]):
        reason = f"{to_text(part)} would be added up for each {index}, which it has not"
        raise refused(command, reason, "leave the sum whole")
    return replace(assignment, value=map_terms(assignment.value, partial(_apart, command)))


def is_taken(term: Term) -> bool:
    """Tell whether `multiply_out` takes the command for this term."""
    return count_terms(term.body) > 1 and not any(_repeated(term.body, term.reduced))


def _repeated(expr: Expr, summed_over: Iterable[str]) -> Iterator[tuple[Expr, str]]:
    """Yield the parts of `expr` without one of these indices, and that index."""
    parts = multiplied(expr)
    for index in dict.fromkeys(summed_over):
        yield from ((part, index) for _, part in parts if index not in free_indices(part))


def check_count(command: Distribute, count: int) -> None:
    """Raise ScheduleError where there would be more terms than an expression is nested deep.

    Each added term is a level of its own, and a product of n sums has 2^n terms.
    """
    if count > MAX_DEPTH:
        raise refused(
            command,
            f"the expression would have {count} terms, and can have {MAX_DEPTH}",
            "compute some of the sums first and use the results as operands",
        )


def check_types(command: Distribute, dtypes: Dtypes) -> None:
    """Raise ScheduleError unless the parts are computed in the type of the whole.

    In a narrower one they would wrap, or be rounded, where the whole does not.
    """
    whole = expression_dtype(command.expression, dtypes)
    sums = [n for n, _ in walk(command.expression) if is_additive(n)]
    for part in (*sums, *(part for _, part in multiplied(command.expression))):
        found = expression_dtype(part, dtypes)
        if found != whole:
            raise refused(
                command,
                f"{to_text(part)} is computed in {found}, and the whole in {whole}",
                f"convert the operands to {whole}",
            )


def count_terms(expr: Expr) -> int:
    """Count how many terms `multiplied` finds, without making them.

    (a - b) * (c + d)  →  4
    """
    if not isinstance(expr, Call):
        return 1
    counts = [count_terms(arg) for arg in expr.args]
    if expr.operator.additive:
        return sum(counts)
    linear = zip(counts, expr.operator.linear[: len(counts)], strict=True)
    return prod(count for count, each in linear if each)


def multiplied(expr: Expr) -> tuple[Signed, ...]:
    """Return the terms that `expr` is the sum of, as far as its operators are linear.

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
    found = []
    for choice in product(*choices):
        negative = sum(minus for minus, _ in choice) % 2 == 1
        found.append((negative, replace(expr, args=tuple(part for _, part in choice))))
    return tuple(found)


def _apart(command: Distribute, expr: Expr) -> Expr:
    """Return one term with its sums: where it is the command's, a sum of terms with sums of their
    own."""
    reduced, body = [], expr
    while is_sum(body):
        reduced.append(body.index)
        body = body.body
    if body != command.expression:
        return expr
    (negative, first), *others = multiplied(body)
    whole = summed(first, reduced)
    if negative:
        whole = Call(NEG, (whole,))
    for negative, part in others:
        whole = Call(SUB if negative else ADD, (whole, summed(part, reduced)))
    return whole

"""What tensors store: every coordinate or some, and where an expression of them has a value.

    full    every coordinate is stored: all levels are dense
    sparse  some level leaves coordinates out

>>> from taco_py.formats import CSR, dense
>>> is_full(dense(2)), is_sparse(CSR), count_lists(CSR), all_full([])
(True, True, 1, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import assert_never

from taco_py.formats import Format
from taco_py.notation.nodes import Access, Call, Expr, Literal, Reduce
from taco_py.problem import Problem, TensorType


def is_full(form: Format) -> bool:
    """Tell whether a tensor in a format stores every coordinate."""
    return form.is_dense


def is_sparse(form: Format) -> bool:
    """Tell whether a tensor in a format leaves coordinates out."""
    return not form.is_dense


def all_full(types: Iterable[TensorType]) -> bool:
    """Tell whether all of several tensors store every coordinate."""
    return all(type.format.is_dense for type in types)


def is_full_problem(problem: Problem) -> bool:
    """Tell whether all operands and the result of a problem store every coordinate."""
    return problem.result.format.is_dense and all_full(type for _, type in problem.operands)


def count_lists(form: Format) -> int:
    """Count the levels of a format that leave coordinates out: 2 of DCSR, 1 of CSR."""
    return sum(not level.full for level in form.levels)


# ---------------------------------------------------------------- expressions


def restricts(expr: Expr, part: Expr) -> bool:
    """Tell whether an expression is zero wherever a part of it, as an access, is not stored.

    A[i,j] * x[j] / d[i] is zero without A[i,j], by the annihilators of its operators; A[i,j] + b[i]
    is not.
    """
    if expr == part:
        return True
    match expr:
        case Call(operator, args):
            return any(
                annihilator is not None and annihilator == 0 and restricts(arg, part)
                for arg, annihilator in zip(args, operator.annihilators, strict=False)
            )
        case Reduce(_, _, body):
            return restricts(body, part)
    return False


def differs_where_absent(expr: Expr, part: Expr, makes_special: Callable[[Call], bool]) -> bool:
    """Tell whether an expression has another value where a part is absent than where it is 0.

    A[i] / d[i] is 0 where A stores nothing, and 0 / 0 where A stores a zero and d is 0; so with
    infinity for a factor. -A[i] and 2 * A[i] are zero either way, and so is A[i] * A[i].

    makes_special  whether an operation may make another number than 0 of 0 and what it meets
    """
    if isinstance(expr, Reduce):
        return differs_where_absent(expr.body, part, makes_special)
    if not isinstance(expr, Call):
        return False
    if restricts(expr, part) and makes_special(expr):
        others = [arg for arg in expr.args if not restricts(arg, part)]
        if not all(map(is_nonzero_number, others)):
            return True
    return any(differs_where_absent(arg, part, makes_special) for arg in expr.args)


def divides(expr: Call) -> bool:
    """Tell whether an operation divides, which makes NaN of 0 over 0."""
    return expr.operator.true_division


def is_nonzero_number(expr: Expr) -> bool:
    """Tell whether an expression is a literal other than 0."""
    return isinstance(expr, Literal) and expr.value != 0


def is_everywhere(expr: Expr, tensor_is_full: Callable[[str], bool]) -> bool:
    """Tell whether an expression has a value for every coordinate, whatever sparse operands store.

    A product has where all of its factors have, a sum where one of its terms has.

    tensor_is_full  whether a tensor stores every coordinate, by its name
    """
    match expr:
        case Access(name):
            return tensor_is_full(name)
        case Literal(value):
            return value != 0
        case Reduce(_, _, body):
            return is_everywhere(body, tensor_is_full)
        case Call(operator, args):
            there = [is_everywhere(arg, tensor_is_full) for arg in args]
            zeros = zip(there, operator.annihilators, strict=False)
            needed = [each for each, zero in zeros if zero is not None and zero == 0]
            return all(needed) if needed else any(there)
        case _:
            assert_never(expr)

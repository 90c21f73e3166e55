"""The contraction order that a call asks for: pairs of operands in einsum's numbering.

    y[i] = A[i,j] * B[j,k] * x[k],  path=[(1, 2), (0, 1)]   →   B·x first, then A by that

Each contraction takes operands out of the list of those that are left and appends their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from taco_py.arguments.option_checks import integer
from taco_py.arguments.options import CallOptions
from taco_py.language.diagnostics.errors import NotationError
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Literal, Reduce
from taco_py.language.notation.operators import MUL


def with_checked_path(options: CallOptions, assignment: Assignment) -> CallOptions:
    """Check the contraction order of an assignment that a call asks for, if it asks for one.

    Raises NotationError where the assignment is no product, or the order none of its tensors.
    """
    if options.path is None:
        return options
    if not is_product(assignment.value):
        raise NotationError(
            "Expected a product of tensors where path= gives its contraction order, found another "
            "expression",
            assignment.span,
            hint="leave path= away, or compute the product by itself",
        )
    path = steps_of(options.path)
    if path is None:
        raise NotationError(
            f"Expected path to be a list of pairs, found {options.path!r}",
            hint="each pair takes two operands out and appends their product: [(1, 2), (0, 1)]; "
            "numpy.einsum_path(…)[0] is such a list",
        )
    count = sum(bool(access.indices) for access in accesses(assignment))
    return replace(options, path=checked_path(path, count, "path"))


def steps_of(path: Any) -> Sequence[Sequence[Any]] | None:
    """Take the contractions out of a path, with or without NumPy's mark; None where it is none.

    >>> steps_of(["einsum_path", (1, 2), (0, 1)])
    [(1, 2), (0, 1)]
    """
    if not isinstance(path, list | tuple):
        return None
    steps = path[1:] if path and isinstance(path[0], str) and path[0] == "einsum_path" else path
    return steps if all(isinstance(step, list | tuple) for step in steps) else None


def is_product(value: Expr) -> bool:
    """Tell whether a value is a sum of products of tensors and numbers alone."""
    pending = [value]
    while pending:
        match pending.pop():
            case Call(operator, args) if operator == MUL:
                pending.extend(args)
            case Reduce(operator, _, body) if operator.additive:
                pending.append(body)
            case Access() | Literal():
                pass
            case _:
                return False
    return True


def checked_path(
    steps: Sequence[Sequence[Any]], count: int, option: str
) -> tuple[tuple[int, ...], ...]:
    """Return contractions of `count` operands: each takes some out and appends one, until one is
    left.

    option  the argument that they come from

    Raises NotationError naming the one that is wrong.
    """
    path: list[tuple[int, ...]] = []
    left = count
    for step in steps:
        places = [integer(place) for place in step]
        valid = tuple(place for place in places if place is not None and 0 <= place < left)
        if not valid or len(set(valid)) != len(places):
            raise NotationError(
                f"Expected different operand numbers from 0 to {left - 1} in contraction "
                f"{len(path)} of {option}, where {left} operands are left, found {step!r}",
                hint="each contraction takes its operands out and appends the product at the end",
            )
        left -= len(valid) - 1
        path.append(valid)
    if left != 1:
        raise NotationError(
            f"Expected contractions in {option} that leave one of {count} operands, found {left} "
            "left",
            hint="numpy.einsum_path makes complete paths",
        )
    return tuple(path)

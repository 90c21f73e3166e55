"""The product that a text says of a matrix and dense operands.

C[i,k] = A[i,j] * X[j,k], A the matrix, X of 500 by 32   →   A times 32 columns
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.calls.statements.read_text import EVERY_NAME, statements_of
from taco_py.language.diagnostics.errors import OperandError
from taco_py.language.notation.checks import accesses, with_linearity
from taco_py.language.notation.nodes import Access, Assignment, Call, Expr, Reduce
from taco_py.language.notation.operators import MUL


@dataclass(frozen=True, slots=True)
class TextProduct:
    """What a text computes of a matrix.

    matrix   the name of the matrix
    columns  of the dense operand; 0 where the text is no product over the matrix's columns
    order    modes of the result
    reason   why it is no such product, "" where it is one
    plain    whether the matrix is multiplied by one operand and nothing else
    """

    matrix: str
    columns: int
    order: int
    reason: str = ""
    plain: bool = False


def text_product(text: str, operands: Mapping[str, Any]) -> TextProduct:
    """Return the product that a text says. Raises what parsing raises, and OperandError.

    operands  of the text, all but the matrix
    """
    if "" in operands or not all(isinstance(name, str) for name in operands):
        raise OperandError(f"Expected operands by their names, found {operands!r:.80}")
    assignments = tuple(one.assignment for one in statements_of(text, EVERY_NAME))
    targets = {assignment.target.tensor for assignment in assignments}
    names = [access.tensor for assignment in assignments for access in accesses(assignment)]
    missing = [
        name for name in dict.fromkeys(names) if name not in operands and name not in targets
    ]
    if len(missing) != 1:
        names_left = ", ".join(missing) or "none"
        raise OperandError(
            f"Expected one tensor of the text without an operand, the matrix, found {names_left}",
            hint="as in tp.choose_format(A, 'y[i] = A[i,j] * x[j]', x=x)",
        )
    unread = [name for name in operands if name not in names]
    if unread:
        raise OperandError(
            f"Expected operands of the text, found {unread[0]}, which it does not read",
            hint="options are calls=, threads=, price= and finite=",
        )
    target = assignments[-1].target
    reason = _difference(assignments, missing[0], operands)
    columns = 0 if reason else _columns(assignments[0], missing[0], operands)
    plain = not reason and _is_plain(assignments[0].value, missing[0])
    return TextProduct(missing[0], columns, len(target.indices), reason, plain)


def _difference(
    assignments: tuple[Assignment, ...], matrix: str, operands: Mapping[str, Any]
) -> str:
    """Return why a text is no product over the columns of the matrix, "" where it is one."""
    if len(assignments) != 1:
        return "the text has several statements"
    assignment = assignments[0]
    linear = [is_linear for a, is_linear in with_linearity(assignment.value) if a.tensor == matrix]
    if assignment.operator is not None:
        return "the text adds to its result"
    if linear != [True]:
        return f"the text is not linear in {matrix}"
    access = _access(assignment, matrix)
    if access.subscripts or len(set(access.indices)) != 2:
        return f"{matrix} has no two indices"
    row, column = access.indices
    if row not in assignment.target.indices or column in assignment.target.indices:
        return f"the text does not sum over the columns of {matrix} alone"
    sparse = [name for name, operand in operands.items() if not isinstance(operand, np.ndarray)]
    return f"{sparse[0]} is no NumPy array" if sparse else ""


def _is_plain(value: Expr, matrix: str) -> bool:
    """Tell whether an expression is a sum of products of the matrix and one operand.

    A[i,j] * X[j,k]   not A[i,j] / x[j], and not A[i,j] * exp(x[j]), which may be infinite
    """
    match value:
        case Reduce(operator, _, body):
            return operator.additive and _is_plain(body, matrix)
        case Call(operator, (Access() as one, Access() as other)):
            return operator == MUL and matrix in (one.tensor, other.tensor)
    return False


def _access(assignment: Assignment, matrix: str) -> Access:
    return next(access for access in accesses(assignment) if access.tensor == matrix)


def _columns(assignment: Assignment, matrix: str, operands: Mapping[str, Any]) -> int:
    """Return the elements of the result in each row of the matrix."""
    extents: dict[str, int] = {}
    for access in accesses(assignment):
        if access.tensor in operands:
            extents.update(zip(access.indices, np.shape(operands[access.tensor]), strict=False))
    row = _access(assignment, matrix).indices[0]
    return prod(extents.get(index, 1) for index in assignment.target.indices if index != row)

"""`program`: statements in sequence and under loops, on arrays that they change in place."""

from __future__ import annotations

from taco_py.calls.programs.program_call import Program
from taco_py.compiler.affine.nest import to_nest
from taco_py.compiler.affine.parser import parse_program
from taco_py.compiler.affine.statements import place, size_names, tensor_names
from taco_py.language.diagnostics.errors import OperandError


def program(text: str) -> Program:
    """Parse a program: statements and loops, to be called with its arrays by name.

    >>> smooth = tp.program("for t in T: B[i] = 0.5 * (A[i-1] + A[i+1]); A[i] = B[i]")
    >>> a, b = np.array([0.0, 0.0, 4.0, 0.0, 0.0]), np.zeros(5)
    >>> smooth(A=a, B=b, T=1)
    >>> a
    array([0., 2., 0., 2., 0.])
    >>> tp.program("y[i] += x[i-1]").operands
    ('y', 'x')

    Returns a `Program`. Statements are index notation with offsets in subscripts, in sequence and
    under loops, which indentation or a line holds together:

        for t in T:
            B[i,j] = 0.2 * (A[i,j] + A[i,j-1] + A[i,j+1] + A[i+1,j] + A[i-1,j])
            A[i,j] = B[i,j]

    They run one after the other and change arrays in place. An index without a `for` takes, in
    ascending order, all values at which every access is inside its array. `for k in a..b` runs from
    a to b - 1, `for k in n` from 0; an end left out is where accesses end. The terms of `+=` and
    `-=` may be added up in any order.

    text  the program

    Raises NotationError or OperandError with carets under the place, and OperandTypeError where
    `text` is not a string.
    """
    parsed = parse_program(text)
    statements = place(parsed)
    sizes = size_names(parsed)
    lowered = to_nest(statements, sizes)
    result = Program(text, parsed, statements, lowered, tensor_names(statements), sizes)
    for name in result.operands:
        if name in ("threads", "tiles", "memory_limit"):
            raise OperandError(
                f"Expected other names for operands than what a call says besides, found {name}",
                hint=f"call it {name}_, for instance",
            )
    return result

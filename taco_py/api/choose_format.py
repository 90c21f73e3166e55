"""`choose_format`: the format of a matrix that is used many times, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taco_py.arguments.learned_price import LEARNED

if TYPE_CHECKING:
    from taco_py.tuning.formats.choose_format import Choice, FormatPrice


MOST_CALLS = 1 << 53
"""As many calls as are counted."""


def choose_format(
    A: Any,  # noqa: N803 - the field's name
    text: str | None = None,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    calls: int = 100,
    threads: int | None = None,
    price: FormatPrice = LEARNED,
    finite: bool = False,
    **more: Any,
) -> Choice:
    """Choose a format for a matrix that products read many times; `format="auto"` stores it so.

    >>> A = sp.kron(sp.eye_array(5000), np.ones((6, 6))).tocsr()
    >>> tp.choose_format(A, calls=1000).format.name
    'BSR(6,6)'
    >>> choice = tp.choose_format(A, "C[i,k] = A[i,j] * X[j,k]", X=np.ones((30000, 8)))
    >>> choice.plan.splitlines()[-1]
    'return C'

    A         a matrix of any kind; other tensors keep their format
    text      of the call that reads it, over `operands` and one other tensor, the matrix; None, the
              default, is a product with a vector
    calls     how many calls read the matrix: the conversion is paid once
    threads   of the calls; None for all cores
    price     "learned", "analytic", or a model of formats
    finite    whether the other operands have neither infinities nor NaN: formats with padding, such
              as blocks that are not full, are candidates then, where the text only multiplies
    operands, more  of the text, NumPy arrays by name: as a mapping, or as keywords

    Returns the format, the reason, and what each other one is expected to gain over CSR, with
    quartiles; of a text also its plan and the matrix in the format. What is stored is counted in a
    sample of the rows, which takes tens of milliseconds as a rule; of blocks, in all. Nothing is
    timed.

    Raises OperandError, OperandTypeError, and with a text what its call raises.
    """
    from taco_py.arguments.option_checks import check_threads, integer
    from taco_py.language.diagnostics.errors import OperandError
    from taco_py.tuning.formats.choose_format import Use
    from taco_py.tuning.formats.chosen_tensor import choose_for, choose_for_text

    count = integer(calls)
    if count is None or count < 1:
        raise OperandError(
            f"Expected a positive number of calls, found {calls!r}", hint="calls=100 is the default"
        )
    if operands is not None and not isinstance(operands, Mapping):
        raise OperandError(f"Expected operands by their names, found {operands!r:.80}")
    if not isinstance(finite, bool):
        raise OperandError(f"Expected finite to be True or False, found {finite!r:.80}")
    operands = {**(operands or {}), **more}
    use = Use(calls=min(count, MOST_CALLS), threads=check_threads(threads), finite=finite)
    if text is None:
        if operands:
            raise OperandError(
                f"Expected a text for the operand {next(iter(operands))}, found none",
                hint="as in tp.choose_format(A, 'y[i] = A[i,j] * x[j]', x=x)",
            )
        return choose_for(A, use, price)
    return choose_for_text(A, text, operands, use, price)

"""`tp.vjp` and `tp.jvp`: derivatives of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from taco_py.arguments.option_checks import merged
from taco_py.arguments.semiring_mask import SemiringMask, semiring_mask_of
from taco_py.calls.call.derivatives.differentiated_text import read_text
from taco_py.calls.call.derivatives.pullback import Pullback, pullback_of
from taco_py.calls.call.derivatives.pushforward import Pushforward, pushforward_of
from taco_py.data.tensors.byte_counts import check_memory_limit
from taco_py.language.notation.rewrites.semirings import Semiring

Shape = int | Sequence[int] | Mapping[str, int | Sequence[int]] | None


def vjp(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    wrt: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    shape: Shape = None,
    border: str = "error",
    semiring: Semiring | str | None = None,
    mask: Any = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    **named: Any,
) -> Pullback:
    """Return the function from the cotangent of a result to the cotangents of operands: v ↦ vᵀ J.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> pullback = tp.vjp("y[i] = A[i,j] * x[j]", A=A, x=np.ones(2))
    >>> d_A, d_x = pullback(np.array([1.0, 10.0]))
    >>> d_A.toarray()
    array([[ 1.,  0.],
           [ 0., 10.]])
    >>> print(pullback.text)
    d_A[i_2,j_2] = stored(A[i_2,j_2]) * (d_y[i_2] * x[j_2])
    d_x[j_3] = sum(i, A[i,j_3] * d_y[i])

    text     statements in index notation
    operands, named  as `tp.evaluate` has them
    wrt      names of operands, or one name, for which one array is returned; by default all of real
             or complex numbers that the text reads, in the order of the call
    outputs  the names that are differentiated of several statements; by default the last one's
    shape    of what a statement scatters to, as `tp.evaluate` has it, or shapes by name, where a
             later statement reads it
    border, semiring, mask  as `tp.evaluate` has them; of a text without subscripts that are more
             than indices. What a mask leaves out has no derivative.
    threads  to use at most
    memory_limit  bytes that a call of what is returned may take at once, as in `tp.evaluate`

    Sparse operands have cotangents with their own pattern, in their own format. Equal values share
    the cotangent of their minimum or maximum. Complex values have
    ∂L/∂Re + i ∂L/∂Im. Raises DerivativeError where there is no derivative, with the place, and what
    `tp.evaluate` raises for texts and operands.
    """
    over = read_over(semiring, mask)
    source = read_text(text, merged(operands, named), wrt, outputs, shape, border, over)
    return pullback_of(source, threads, check_memory_limit(memory_limit))


def jvp(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    wrt: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    shape: Shape = None,
    border: str = "error",
    semiring: Semiring | str | None = None,
    mask: Any = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    **named: Any,
) -> Pushforward:
    """Return the function from the tangents of operands to the tangent of a result: v ↦ J v.

    >>> x = np.array([1.0, 2.0])
    >>> pushforward = tp.jvp("y[i] = x[i] * x[i]", x=x)
    >>> pushforward(x=np.array([1.0, 1.0]))
    array([2., 4.])
    >>> tp.jvp("s = x[i] * x[i]", {"x": x})({"x": np.array([0.0, 1.0])})
    np.float64(4.0)

    text     statements in index notation
    operands, named  as `tp.evaluate` has them
    wrt      names of the operands that have tangents, or one name; by default all of real or
             complex numbers that the text reads
    outputs  the names whose tangents are computed of several statements; by default the last one's
    shape    of what a statement scatters to, as `tp.evaluate` has it, or shapes by name
    border, semiring, mask, threads, memory_limit  as in `tp.vjp`

    Raises what `tp.vjp` raises.
    """
    over = read_over(semiring, mask)
    source = read_text(text, merged(operands, named), wrt, outputs, shape, border, over)
    return pushforward_of(source, threads, check_memory_limit(memory_limit))


def read_over(semiring: Any, mask: Any) -> SemiringMask | None:
    """Read the semiring and the mask; None where a call leaves both out."""
    return None if semiring is None and mask is None else semiring_mask_of(semiring, mask, False)

"""`tp.vjp`: derivatives of texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from taco_py.values.settings import merged

if TYPE_CHECKING:
    from taco_py.call.derivatives.pullback import Pullback
    from taco_py.call.derivatives.pushforward import Pushforward


def vjp(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    wrt: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    threads: int | None = None,
    **named: Any,
) -> Pullback:
    """Return what computes the cotangents of operands, from that of a text's result: v ↦ vᵀ J.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> pullback = tp.vjp("y[i] = A[i,j] * x[j]", A=A, x=np.ones(2))
    >>> d_A, d_x = pullback(np.array([1.0, 10.0]))
    >>> d_A.toarray()
    array([[ 1.,  0.],
           [ 0., 10.]])
    >>> print(pullback.text)
    d_A[i_2,j_2] = stored(A[i_2,j_2]) * (d_y[i_2] * x[j_2])
    d_x[j_3] = sum(i, A[i,j_3] * d_y[i])
    """
    from taco_py.call.derivatives.pullback import pullback_of
    from taco_py.call.derivatives.wanted import read_text

    return pullback_of(read_text(text, merged(operands, named), wrt, outputs), _options(threads))


def jvp(
    text: str,
    operands: Mapping[str, Any] | None = None,
    /,
    *,
    wrt: str | Iterable[str] | None = None,
    outputs: str | Iterable[str] | None = None,
    threads: int | None = None,
    **named: Any,
) -> Pushforward:
    """Return what computes the tangent of a text's result, from those of operands: v ↦ J v."""
    from taco_py.call.derivatives.pushforward import pushforward_of
    from taco_py.call.derivatives.wanted import read_text

    return pushforward_of(read_text(text, merged(operands, named), wrt, outputs), _options(threads))


def _options(threads: int | None) -> tuple[Any, ...]:
    """What `settings_of` takes, but for the format."""
    return (None, threads, None, "safe", None, True, None, (), (), "c")

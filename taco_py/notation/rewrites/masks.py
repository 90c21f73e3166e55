"""Masks: where a result is computed."""

from __future__ import annotations

from typing import Any

from codegen.records import dataclass
from taco_py.diagnostics.errors import OperandTypeError


@dataclass(frozen=True, slots=True, eq=False)
class Mask:
    """A tensor that says where a result is computed.

    by_value    where its elements are not 0; else where it stores something
    complement  everywhere else
    """

    array: Any
    by_value: bool = False
    complement: bool = False


def complement(mask: Any) -> Mask:
    """Make the mask that allows what another does not.

    >>> A = sp.csr_array([[1.0, 0.0], [0.0, 3.0]])
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.complement(A))
    array([[0., 1.],
           [1., 0.]])

    mask  a sparse or dense tensor, or `by_value` of one
    """
    found = mask_of(mask)
    return Mask(found.array, found.by_value, not found.complement)


def by_value(mask: Any) -> Mask:
    """Make the mask that allows what is not 0 in a tensor, whether or not it is stored.

    >>> A = sp.csr_array((np.array([1.0, 0.0]), ([0, 1], [0, 1])), shape=(2, 2))
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.by_value(A)).toarray()
    array([[1., 0.],
           [0., 0.]])

    mask  a sparse tensor, whose stored zeros it leaves out; a dense one is meant by value anyway
    """
    found = mask_of(mask)
    return Mask(found.array, True, found.complement)


def mask_of(given: Any) -> Mask:
    """Return a mask itself, or the one that a tensor is meant as. Raises OperandTypeError."""
    if isinstance(given, Mask):
        return given
    if given is None or isinstance(given, str):
        raise OperandTypeError(
            f"Expected a tensor for a mask, found {given!r}",
            hint="pass an array, a scipy.sparse array or a Tensor of the result's shape",
        )
    return Mask(given)

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

    mask  a sparse or dense tensor, for `compile` a format or its name, or `by_value` of one
    """
    found = _mask_or_name(mask)
    return Mask(found.array, found.by_value, not found.complement)


def by_value(mask: Any) -> Mask:
    """Make the mask that allows what is not 0 in a tensor, whether or not it is stored.

    >>> A = sp.csr_array((np.array([1.0, 0.0]), ([0, 1], [0, 1])), shape=(2, 2))
    >>> tp.einsum("i,j->ij", np.ones(2), np.ones(2), mask=tp.by_value(A)).toarray()
    array([[1., 0.],
           [0., 0.]])

    mask  a sparse tensor, whose stored zeros it leaves out; a dense one is meant by value anyway;
          for `compile` a format or its name
    """
    found = _mask_or_name(mask)
    return Mask(found.array, True, found.complement)


def mask_of(given: Any) -> Mask:
    """Return a mask itself, or the one that a tensor is meant as. Raises OperandTypeError."""
    found = _mask_or_name(given)
    if isinstance(found.array, str):
        raise _no_tensor(found.array)
    return found


def _mask_or_name(given: Any) -> Mask:
    """Return a mask, maybe of a format's name. Raises OperandTypeError for None."""
    if given is None:
        raise _no_tensor(given)
    return given if isinstance(given, Mask) else Mask(given)


def _no_tensor(found: Any) -> OperandTypeError:
    return OperandTypeError(
        f"Expected a tensor for a mask, found {found!r}",
        hint="pass an array, a scipy.sparse array or a Tensor of the result's shape",
    )

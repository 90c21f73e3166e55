"""Operands with their modes in another order, or one of their diagonals, in their own arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from taco_py.data.storage.tensor_data import Array
from taco_py.data.tensors.hand_out import handed_out
from taco_py.language.diagnostics.errors import TacoError
from taco_py.language.formats import Format


def show_array(
    array: Array, *, pairs: tuple[tuple[int, int], ...], axes: tuple[int, ...] | None
) -> Array | None:
    """Show the diagonals of an array, its modes in the order `axes`; None where modes on one of
    them differ in size.

    pairs  of modes to take the diagonal of, one after the other: the diagonal becomes the last mode
    axes   None for the modes as they are
    """
    found = array.view()
    for one, other in pairs:
        shape = found.shape
        if shape[one] != shape[other]:
            return None
        found = found.diagonal(0, one, other)
    if axes is not None:
        found = found.transpose(axes)
    if found.flags.writeable != array.flags.writeable:  # diagonals are read-only
        found.setflags(write=array.flags.writeable)
    return found


def show_sparse(operand: Any, *, axes: tuple[int, ...], form: Format, kind: str) -> Any:
    """Show a Tensor or a scipy.sparse operand with its modes in the order `axes`; None where its
    arrays do not fit together.

    form, kind  of what is shown: its format, and what `handed_out` makes of it
    """
    from taco_py.data.interop.scipy_arrays import from_scipy, is_scipy_sparse

    try:
        data = from_scipy(operand) if is_scipy_sparse(operand) else operand.data
    except TacoError:
        return None
    shape = tuple(data.shape[axis] for axis in axes)
    return handed_out(replace(data, format=form, shape=shape), kind)

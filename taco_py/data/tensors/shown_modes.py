"""Operands with permuted modes, or one of their diagonals, without a copy."""

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
    """Return a view of diagonals of an array with permuted modes; None for diagonals of unequal
    sizes.

    pairs  of modes whose diagonals are taken in turn; a diagonal becomes the last mode
    axes   the permutation of the modes, None for none
    """
    view = array.view()
    for one, other in pairs:
        shape = view.shape
        if shape[one] != shape[other]:
            return None
        view = view.diagonal(0, one, other)
    if axes is not None:
        view = view.transpose(axes)
    if view.flags.writeable != array.flags.writeable:  # diagonals are read-only
        view.setflags(write=array.flags.writeable)
    return view


def show_sparse(operand: Any, *, axes: tuple[int, ...], form: Format, kind: str) -> Any:
    """Return a Tensor or scipy.sparse operand with permuted modes; None for inconsistent arrays.

    form, kind  of the result: its format, and its kind for `handed_out`
    """
    from taco_py.data.interop.scipy_arrays import from_scipy, is_scipy_sparse

    try:
        data = from_scipy(operand) if is_scipy_sparse(operand) else operand.data
    except TacoError:
        return None
    shape = tuple(data.shape[axis] for axis in axes)
    return handed_out(replace(data, format=form, shape=shape), kind)

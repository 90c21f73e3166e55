"""`hybrid`: a matrix as a sum of two, each in the format that suits its entries."""

from __future__ import annotations

from numbers import Real
from typing import Any

from taco_py.data.convert.convert import convert
from taco_py.data.convert.full_units import least_fill, parted
from taco_py.data.convert.remap import in_order
from taco_py.data.tensors.remapped_tensor import in_format
from taco_py.data.tensors.tensor import Tensor, as_data
from taco_py.language.diagnostics.errors import FormatError, OperandError
from taco_py.language.formats import CSR, RemappedFormat, remapped


def hybrid(
    A: Any,  # noqa: N803 - the field's name
    format: RemappedFormat | str,
    fill: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Split a matrix into entries that suit a format of blocks or diagonals, and the rest in CSR.

    >>> A = sp.diags_array([np.ones(7), np.ones(8)], offsets=[1, 0]).tolil()
    >>> A[7, 0] = 5.0
    >>> D, R = tp.hybrid(A, tp.DIA)
    >>> D.format.name, R.nnz
    ('DIA', 1)
    >>> tp.evaluate("y[i] = D[i,j] * x[j] + R[i,j] * x[j]", D=D, R=R, x=np.ones(8))
    array([2., 2., 2., 2., 2., 2., 2., 6.])

    A       a matrix of any kind, whose fill value is 0
    format  of the first part: "sdia(8)", tp.BSR((3, 3)), "ell" …
    fill    the share of its places that are taken, in each block, diagonal or slot of the first
            part; None, the default, takes the share from which on it needs no more bytes than CSR

    Returns two Tensors whose sum is A; each entry is in one of them. A sum over both is one kernel.
    Raises FormatError where A is no matrix or the format has no such units, OperandError for a
    share that is not from 0 to 1.
    """
    target = remapped(format)
    if target is None or target.order != 2:
        raise FormatError(
            f"Expected a format of blocks, diagonals or slots of matrices, found {str(format)!r}",
            hint='as in tp.hybrid(A, "sdia(8)")',
        )
    if fill is not None and not (isinstance(fill, Real) and 0 <= fill <= 1):
        raise OperandError(
            f"Expected a share from 0 to 1 as fill, found {fill!r}",
            hint="0.5 takes units of which half of the places are taken",
        )
    data = as_data(A)
    if len(data.shape) != 2 or data.fill:
        what = f"a tensor of shape {data.shape}" if len(data.shape) != 2 else "another fill value"
        raise FormatError(
            f"Expected a matrix whose fill value is 0, found {what}",
            hint="parts of other tensors are taken by masks and subscripts",
        )
    rows = in_order(convert(data, CSR))
    first, rest = parted(rows, target, least_fill(rows) if fill is None else fill)
    return in_format(Tensor(first), target), Tensor(rest)

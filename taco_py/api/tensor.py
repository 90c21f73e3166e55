"""`tensor`: a stored tensor from anything that holds numbers."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from taco_py.formats import Format
from taco_py.storage.sizes import with_index_dtype
from taco_py.values.tensor import Tensor, as_data, stored_as


def tensor(
    obj: Any, format: Format | str | None = None, index_dtype: DTypeLike | None = None
) -> Tensor:
    """Make a Tensor of anything: a Tensor, scipy.sparse array, NumPy array, number or list.

    >>> tp.tensor(sp.csr_array([[1.0, 0.0], [0.0, 3.0]]))
    Tensor(shape=(2, 2), format='ds', nnz=2, dtype=float64, density=0.5)
    >>> tp.tensor([[1.0, 0.0], [0.0, 3.0]], format=tp.COO(2)).nnz
    2

    Where nothing has to be converted, the Tensor is around the arrays of `obj` itself. Writing to
    its values then changes the Tensor; its coordinates must stay as they are, for their order is
    known to the Tensor and not looked at again.

    obj          what is to be a Tensor
    format       a Format or its letters, as in `tensor(A, format="ds:1,0")`; None, the default,
                 keeps the format that `obj` has
    index_dtype  int32 or int64, of the index arrays; None, the default, keeps the one that `obj`
                 has

    Raises OperandTypeError or FormatError, and IndexOverflowError where int32 cannot hold a size or
    the number of values.
    """
    data = stored_as(as_data(obj), format)
    return Tensor(data if index_dtype is None else with_index_dtype(data, index_dtype))

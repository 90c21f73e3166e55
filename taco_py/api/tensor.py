"""`tensor`: a stored tensor from anything that holds numbers."""

from __future__ import annotations

from typing import Any

from numpy.typing import DTypeLike

from taco_py.formats import Format
from taco_py.storage.sizes import with_index_dtype
from taco_py.values.byte_counts import limited
from taco_py.values.tensor import Tensor, as_data, stored_as, with_fill


def tensor(
    obj: Any,
    format: Format | str | None = None,
    index_dtype: DTypeLike | None = None,
    *,
    fill_value: complex | None = None,
    memory_limit: int | str | None = None,
) -> Tensor:
    """Make a Tensor of anything: a Tensor, scipy.sparse array, NumPy array, number or list.

    >>> tp.tensor(sp.csr_array([[1.0, 0.0], [0.0, 3.0]]))
    Tensor(shape=(2, 2), format='ds', nnz=2, dtype=float64, density=0.5)
    >>> tp.tensor([[1.0, 0.0], [0.0, 3.0]], format=tp.COO(2)).nnz
    2
    >>> tp.tensor(sp.csr_array([[1.0, 0.0], [0.0, 3.0]]), fill_value=-np.inf).to_numpy()
    array([[  1., -inf],
           [-inf,   3.]])

    Where nothing has to be converted, the Tensor is around the arrays of `obj` itself. Writing to
    its values then changes the Tensor; its coordinates must stay as they are, for their order is
    known to the Tensor and not looked at again.

    obj          what is to be a Tensor
    format       a Format or its letters, as in `tensor(A, format="ds:1,0")`; None, the default,
                 keeps the format that `obj` has
    index_dtype  int32 or int64, of the index arrays; None, the default, keeps the one that `obj`
                 has
    fill_value   of the elements that `obj` does not store, a number that the dtype holds; None, the
                 default, keeps the one that a Tensor has, and is 0 for others. Of an array, which
                 stores all elements, a sparse `format` leaves out those that have it

    memory_limit  bytes that converting it may take, as in `evaluate`

    Raises OperandTypeError or FormatError, NumberOverflowError for a fill value that the dtype does
    not hold, and IndexOverflowError where int32 cannot hold a size or the number of values.
    """
    if memory_limit is not None:
        return limited(tensor, locals())
    data = stored_as(with_fill(as_data(obj), fill_value), format)
    return Tensor(data if index_dtype is None else with_index_dtype(data, index_dtype))

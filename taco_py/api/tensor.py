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
    """A Tensor from anything: a Tensor, scipy.sparse array, NumPy array, number or nested list of
    numbers.

    format       a Format or its letters, as in `tensor(A, format="ds:1,0")`; None keeps what `obj`
                 has
    index_dtype  int32 or int64, of the index arrays; None keeps what `obj` has. IndexOverflowError
                 where int32 cannot hold a size or the number of values.

    Where nothing has to be converted, the Tensor is around the arrays of `obj` itself. Writing to
    its values then changes the Tensor; its coordinates must stay as they are, for their order is
    known to the Tensor and not looked at again.
    """
    data = stored_as(as_data(obj), format)
    return Tensor(data if index_dtype is None else with_index_dtype(data, index_dtype))

"""`tensor`: a stored tensor from anything that holds numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import DTypeLike

from taco_py.data.convert.remap import plain_format
from taco_py.data.interop.scipy_remapped import is_remapped
from taco_py.data.storage.containers.columns import with_shape
from taco_py.data.storage.sizes import with_index_dtype
from taco_py.data.tensors.byte_counts import limited
from taco_py.data.tensors.remapped_tensor import (
    RemappedTensor,
    blocks_of,
    in_format,
)
from taco_py.data.tensors.tensor import Tensor, as_data, asks_choice, stored_as, with_fill
from taco_py.language.formats import Format, RemappedFormat, remapped


def tensor(
    obj: Any,
    format: Format | RemappedFormat | str | None = None,
    index_dtype: DTypeLike | None = None,
    *,
    fill_value: complex | None = None,
    shape: Sequence[int] | int | None = None,
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

    obj          what is to be a Tensor; of torch, JAX, pandas, Arrow and other libraries too
    format       a Format, its letters or its name, as in `tensor(A, format="ds:1,0")` or
                 `tensor(A, format=tp.BSR((3, 3)))`; "auto" chooses one for a matrix that products
                 read many times (`tp.choose_format` says why); None, the default, keeps the format
                 that `obj` has
    index_dtype  int32 or int64, of the index arrays; None, the default, keeps the one that `obj`
                 has
    fill_value   of the elements that `obj` does not store, a number that the dtype holds; None, the
                 default, keeps the one that a Tensor has, and is 0 for others. Of an array, which
                 stores all elements, a sparse `format` leaves out those that have it
    shape        the sizes of the modes of a list of coordinates that does not tell them, as a table
                 of polars; None, the default, takes the largest coordinates there

    memory_limit  bytes that converting it may take, as in `evaluate`

    Raises OperandTypeError, FormatError or DimensionError, NumberOverflowError for a fill value
    that the dtype does not hold, and IndexOverflowError where int32 cannot hold a size or the
    number of values.
    """
    if memory_limit is not None:
        return limited(tensor, locals())
    if asks_choice(format):
        from taco_py.tuning.formats.chosen_tensor import stored_as_chosen  # many never choose

        return stored_as_chosen(tensor(obj, None, index_dtype, fill_value=fill_value, shape=shape))
    form = remapped(format)
    keeps_format = format is None and (is_remapped(obj) or isinstance(obj, RemappedTensor))
    if form is not None or keeps_format:
        return _remapped(obj, form, index_dtype, fill_value)
    data = as_data(obj)
    if shape is not None:
        data = with_shape(data, shape)
    data = stored_as(with_fill(data, fill_value), format)
    return Tensor(data if index_dtype is None else with_index_dtype(data, index_dtype))


def _remapped(
    obj: Any, format: RemappedFormat | None, index_dtype: DTypeLike | None, fill_value: Any
) -> Tensor:
    """Return a Tensor in a remapped format: the one asked for, or the own one of `obj`."""
    blocks = blocks_of(obj)
    if blocks is not None and fill_value is None:
        result = blocks if format is None else blocks.to_format(format)
    else:
        plain = as_data(obj if blocks is None else blocks.to_format(plain_format(blocks.order)))
        target = format or (blocks.format if blocks is not None else None)
        assert target is not None
        result = in_format(Tensor(with_fill(plain, fill_value)), target)
    if index_dtype is None or not isinstance(result, RemappedTensor):
        return result
    stored = Tensor(with_index_dtype(result.stored.data, index_dtype))
    return RemappedTensor(stored, result.format, result.shape)

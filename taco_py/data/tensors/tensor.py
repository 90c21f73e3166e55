"""The public `Tensor`: a stored tensor of any order and format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from taco_py.data.convert import convert
from taco_py.data.interop.in_order import with_order
from taco_py.data.interop.numpy_arrays import from_numpy
from taco_py.data.interop.partners.scipy_and_numpy import write_sparse
from taco_py.data.interop.scipy_arrays import from_scipy, is_operand_of_scipy, is_scipy_sparse
from taco_py.data.kernels import KERNELS
from taco_py.data.storage import check as structure
from taco_py.data.storage.borrow import as_dtype
from taco_py.data.storage.pack import canonical, is_sorted, is_unique, pack_coo, to_dense, unpack
from taco_py.data.storage.room import room
from taco_py.data.storage.size_classes import size_classes
from taco_py.data.storage.tensor_data import (
    Array,
    LevelArrays,
    TensorData,
    stores_all,
    with_values,
)
from taco_py.data.tensors.array_methods import ArrayMethods
from taco_py.data.tensors.behaviour import BEHAVIOUR
from taco_py.data.tensors.byte_counts import limited
from taco_py.data.tensors.coordinate_table import (
    coordinate_columns,
    exact_numbers,
    numbers,
    one_of,
    require_given,
)
from taco_py.data.tensors.exchange_methods import ExchangeMethods
from taco_py.data.tensors.keys import of_array
from taco_py.data.tensors.picture import html
from taco_py.data.tensors.stored_facts import StoredFacts
from taco_py.language.diagnostics.errors import (
    FormatError,
    OperandTypeError,
)
from taco_py.language.fill import fill_of
from taco_py.language.formats import CSF, Format, RemappedFormat, format_named, remapped


class Tensor(StoredFacts, ArrayMethods, ExchangeMethods):
    """An immutable tensor in one of the formats: sizes, index arrays of each level, values.

    >>> T = tp.Tensor.from_coo(([0, 1], [2, 0]), [5.0, 6.0], (2, 3))
    >>> T
    Tensor(shape=(2, 3), format='ss', nnz=2, dtype=float64, density=0.333)
    >>> T.to_numpy()
    array([[0., 0., 5.],
           [6., 0., 0.]])

    data  the arrays; `tp.tensor(…)` converts anything else to a Tensor
    """

    __slots__ = ("_data", "_signature")

    def __init__(self, data: TensorData) -> None:
        if not isinstance(data, TensorData):
            raise OperandTypeError(
                f"Expected the arrays of a stored tensor, found {type(data).__name__}",
                hint="tp.tensor(…) makes a Tensor from anything",
            )
        self._data = data
        self._signature: tuple[object, ...] | None = None

    @classmethod
    def from_coo(
        cls,
        coords: ArrayLike | Sequence[ArrayLike] | None = None,
        values: ArrayLike | None = None,
        shape: Sequence[int] | int | None = None,
        format: Format | RemappedFormat | str | None = None,
        dtype: DTypeLike | None = None,
        index_dtype: DTypeLike | None = None,
        *,
        axis: int | None = None,
        indices: ArrayLike | Sequence[ArrayLike] | None = None,
        fill_value: complex | None = None,
    ) -> Tensor:
        """Build a tensor from coordinates and values; duplicates are summed.

        >>> tp.Tensor.from_coo([np.array([0, 1]), np.array([2, 0])], [5.0, 6.0], (2, 3)).to_numpy()
        array([[0., 0., 5.],
               [6., 0., 0.]])

        coords  one array a mode, as in (rows, columns): a tuple, or a list of NumPy arrays. Or a
                table of shape (order, nnz), as of pydata/sparse and torch, or (nnz, order)
        values  one for each coordinate
        shape   the size of each mode
        format  a Format or its letters; by default compressed sparse fibres (CSF)
        dtype   of the values, which it must hold exactly, up to rounding to float32
        index_dtype  int32 or int64; by default int32 where it suffices
        axis    of the table that runs over the modes: 0 for (order, nnz), 1 for (nnz, order); by
                default the one whose length is the order, and an error where both are
        indices another name of coords, as in torch and JAX; only one of the two may be passed
        fill_value  of the elements without coordinates, a number that the dtype holds; by default 0

        The arrays are copied. Raises OperandError, OperandTypeError, DimensionError, StructureError
        or FormatError before any work when they do not describe a tensor.
        """
        coords = one_of(coords, indices)
        require_given(coords, values, shape)
        assert values is not None  # checked with the others
        sizes = structure.check_shape(shape)
        vector = np.atleast_1d(exact_numbers(values, dtype))
        columns = coordinate_columns(coords, len(sizes), len(vector), axis)
        structure.check_coordinates(columns, vector, sizes)
        form = remapped(format)
        target = (None if form else as_format(format, len(sizes))) or CSF(len(sizes))
        native = vector.astype(vector.dtype.newbyteorder("="), copy=False)
        fill = "" if fill_value is None else fill_of(fill_value, native.dtype)
        with room("a tensor of coordinates and values", native.nbytes):
            data = pack_coo(integer_columns(columns), native, sizes, target, index_dtype, fill)
        tensor = cls(copy_shared(data, (vector, *columns)))
        return tensor if form is None else tensor.to_format(form)

    @classmethod
    def from_numpy(
        cls,
        array: ArrayLike,
        format: Format | RemappedFormat | str | None = None,
        *,
        fill_value: complex | None = None,
    ) -> Tensor:
        """Build a tensor around a dense array's memory, or from its nonzeros in a sparse format.

        array   anything that NumPy converts to an array
        format  a Format or its letters; by default dense
        fill_value  the value that a sparse format leaves out instead of zeros
        """
        values = array if isinstance(array, np.ndarray) else numbers(array, None)
        return cls(with_fill(from_numpy(values), fill_value))._in(format)

    @classmethod
    def from_scipy(
        cls,
        A: Any,  # noqa: N803
        format: Format | RemappedFormat | str | None = None,
        *,
        fill_value: complex | None = None,
    ) -> Tensor:
        """Build a tensor around a scipy.sparse array's own arrays, or convert it to a format.

        A       a scipy.sparse array or matrix
        format  a Format or its letters; by default that of `A`
        fill_value  of the elements that `A` does not store; by default 0
        """
        return cls(with_fill(from_scipy(A), fill_value))._in(format)

    @property
    def data(self) -> TensorData:
        """Return the arrays."""
        return self._data

    @property
    def order(self) -> int:
        """Return the number of modes."""
        return len(self._data.shape)

    def examined(self) -> TensorData:
        """Return the arrays with the order of their coordinates, which is determined once."""
        data = with_order(self._data)
        if data.sorted is None:
            data = replace(data, sorted=is_sorted(data))
        if data.sorted and data.unique is None:
            data = replace(data, unique=is_unique(data))  # for unordered ones it costs a sort
        self._data = data
        return data

    def signature(self) -> tuple[object, ...]:
        """Return the facts that plans for this tensor depend on."""
        if self._signature is None:
            data = self._data
            arrays = [a for level in data.levels for a in (level.pos, level.crd)]
            self._signature = (
                Tensor,
                str(data.format),
                tuple(level.ordered for level in data.format.levels),
                of_array(data.values),
                stores_all(data).fill,
                *(a.dtype for a in arrays if a is not None),
                *size_classes(data.shape),
            )
        return self._signature

    def to_numpy(self, *, memory_limit: int | str | None = None) -> Array:
        """Return the n-D array: a new one, except for a dense tensor, which returns its own.

        memory_limit  bytes that it may take, as in `evaluate`

        Unstored elements have the fill value.
        """
        if memory_limit is not None:
            return limited(Tensor.to_numpy, locals())
        return to_dense(self._data)

    def to_dense(self, *, memory_limit: int | str | None = None) -> Tensor:
        """Return the same tensor in the dense format; itself where it is dense already.

        memory_limit  bytes that it may take, as in `evaluate`
        """
        if memory_limit is not None:
            return limited(Tensor.to_dense, locals())
        return self if self.format.is_dense else Tensor(from_numpy(self.to_numpy()))

    def to_scipy(self, kind: str | None = None) -> Any:
        """Return a scipy.sparse array: csr_array for CSR, csc_array for CSC, coo_array otherwise.

        kind  the class to convert to, "csr_array", "csc_matrix" …; arrays are shared where it has
              the format of the class

        Raises FormatError for a scalar, another kind, and a fill value other than 0.
        """
        if kind is not None and not isinstance(kind, str):
            raise FormatError(
                f"Expected the name of a scipy.sparse class, found {kind!r}",
                hint='as in .to_scipy("csr_array")',
            )
        return write_sparse(self._data, kind or "")

    def to_coo(self) -> tuple[Array, Array]:
        """Return an (nnz, order) array of coordinates, and the values, in storage order.

        `from_coo` reads them back with axis=1, and with the fill value as fill_value=.

        Of a tensor whose last level is dense, elements with the fill value, usually 0, are omitted.
        """
        size = self._data.values.nbytes + 8 * self.nnz * self.order if KERNELS.memory.on else 0
        with room("coordinates and values of a tensor", size):
            coords, values = unpack(self._data, drop_fill=True)
            if not coords:
                return np.zeros((len(values), 0), dtype=np.int64), values.copy()
            return np.stack(coords, axis=1), values.copy()

    def to_format(
        self, format: Format | RemappedFormat | str, *, memory_limit: int | str | None = None
    ) -> Tensor:
        """Return the same tensor in another format; itself where it already has it.

        format  a Format, its letters or its name, as in "bsr(3,3)"; "auto" chooses one for a matrix
                that products read many times (`tp.choose_format` says why)
        memory_limit  bytes that it may take, as in `evaluate`

        The fill value is preserved. From a dense to a sparse format, elements with it are left out.
        """
        if memory_limit is not None:
            return limited(Tensor.to_format, locals())
        if asks_choice(format):
            tensor: Tensor = BEHAVIOUR.find("in_chosen_format")(self)
            return tensor
        form = remapped(format)
        if form is not None:
            stored: Tensor = BEHAVIOUR.find("in_remapped_format")(self, form)
            return stored
        data = stored_as(self._data, format)
        return self if data is self._data else Tensor(data)

    def _in(self, format: Format | RemappedFormat | str | None) -> Tensor:
        """Convert the tensor to a format, unless it is None."""
        return self if format is None else self.to_format(format)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Tensor:
        """Return a tensor of the same pattern with values converted as in NumPy.

        dtype  of the values
        copy   whether a tensor of the same type is copied

        Entries with equal coordinates are summed first. The fill value is converted too. Raises
        NumberOverflowError where it is infinite or NaN and `dtype` is an integer type.
        """
        target = as_dtype(dtype, "dtype")
        if not copy and target == self.dtype:
            return self
        data = self._data if target == self.dtype else canonical(self.examined())
        with room(f"values of {target}", data.values.size * target.itemsize):
            return Tensor(with_values(data, data.values.astype(target)))

    @property
    def fill(self) -> str:
        """Return the fill value as text, "" for 0."""
        return self._data.fill

    def copy(self) -> Tensor:
        """Return a tensor that shares no memory with this one."""
        with room("a copy of a tensor", self._data.values.nbytes):
            return Tensor(copied(self._data))

    def __repr__(self) -> str:
        size = prod(self.shape)
        density = self.nnz / size if size else 0.0
        fill = f", fill_value={self.fill_value}" if self.fill else ""
        return (
            f"Tensor(shape={self.shape}, format={str(self.format)!r}, nnz={self.nnz}, "
            f"dtype={self.dtype}, density={density:.3g}{fill})"
        )

    def _repr_html_(self) -> str:
        """Show properties and a picture of the entries in a notebook."""
        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays, without cached facts."""
        return Tensor, (self._data,)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Refuse the conversion, so that no tensor becomes a dense array by accident.

        An operator of scipy.sparse gets an object array, and leaves the operation to the Tensor.
        """
        if is_operand_of_scipy(sys._getframe(1)):
            wrapper = np.empty((), object)
            wrapper[()] = self
            return wrapper
        raise OperandTypeError(
            "Expected an array, found a Tensor, which is not made dense silently",
            hint="call .to_scipy() to keep it sparse, or .to_numpy() if the dense array fits",
        )


def as_data(obj: Any) -> TensorData:
    """Return the arrays of anything that `tensor` accepts, borrowed where possible."""
    if isinstance(obj, Tensor):
        return obj.data
    if isinstance(obj, TensorData):
        return obj
    if is_scipy_sparse(obj):
        return from_scipy(obj)
    if isinstance(obj, list | tuple):
        return from_numpy(numbers(obj, None))
    if isinstance(obj, np.ndarray | np.generic | int | float | complex):
        return from_numpy(obj)
    from taco_py.data.interop.foreign import foreign_data

    converted_object = foreign_data(obj)
    return (
        converted_object if isinstance(converted_object, TensorData) else as_data(converted_object)
    )


def operand_data(obj: Any) -> TensorData:
    """Return the arrays of an operand of a kernel, without a dense tensor's fill value."""
    return stores_all(as_data(obj))


def with_fill(data: TensorData, fill_value: Any) -> TensorData:
    """Set the value of the elements that are not stored, sharing the arrays.

    fill_value  a number that the dtype holds; None for no change

    Raises OperandTypeError, NumberOverflowError.
    """
    return data if fill_value is None else replace(data, fill=fill_of(fill_value, data.dtype))


def stored_as(data: TensorData, format: Format | RemappedFormat | str | None) -> TensorData:
    """Convert `data` to `format`, unless it is None."""
    target = as_format(format, data.format.order)
    return data if target is None else convert(data, target)


def asks_choice(format: Any) -> bool:
    """Tell whether a user requests an automatic choice of the format."""
    return isinstance(format, str) and format.strip().lower() == "auto"


def as_format(format: Format | RemappedFormat | str | None, order: int) -> Format | None:
    """Return the Format of a user's argument. Raises FormatError unless it has `order` levels."""
    form = remapped(format)
    if form is not None:
        raise FormatError(
            f"Expected a format of levels over the modes themselves here, found {form}",
            hint="calls of one assignment over indices alone take it; here say a plain format, as "
            f"tp.CSR, and convert the result: .to_format({str(form)!r})",
        )
    parsed = format_named(format, order) if isinstance(format, str) else format
    if parsed is not None and not isinstance(parsed, Format):
        raise FormatError(
            f"Expected a Format or its letters, found {parsed!r}",
            hint='formats are CSR, CSF(3), "ds:1,0" …',
        )
    if parsed is not None and parsed.order != order:
        raise FormatError(
            f"Expected a format of {order} levels for a tensor of order {order}, found "
            f"{str(parsed)!r} of {parsed.order}",
            hint="write one level letter a mode",
        )
    return parsed


def integer_columns(columns: Sequence[Array]) -> tuple[Array, ...]:
    """Convert coordinates to int32 or int64 in native byte order."""
    index_types = (np.dtype(np.int32), np.dtype(np.int64))
    return tuple(
        column if column.dtype in index_types else column.astype(np.int64) for column in columns
    )


def copy_shared(data: TensorData, inputs: Sequence[Array]) -> TensorData:
    """Return the same tensor sharing no memory with the user's arrays."""
    arrays = [data.values, *(array for level in data.levels for array in arrays_of(level))]
    shared = any(np.may_share_memory(a, b) for a in arrays for b in inputs)
    return copied(data) if shared else data


def copied(data: TensorData) -> TensorData:
    """Return the same tensor in new arrays."""
    levels = tuple(
        LevelArrays(*(None if a is None else a.copy() for a in (level.pos, level.crd)))
        for level in data.levels
    )
    return replace(data, levels=levels, values=data.values.copy(order="K"))


def arrays_of(level: LevelArrays) -> list[Array]:
    """Return the arrays of a level."""
    return [array for array in (level.pos, level.crd) if array is not None]

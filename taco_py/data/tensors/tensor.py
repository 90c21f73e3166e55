"""The public `Tensor`: a stored tensor of any order and format, made from whatever the user has."""

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
from taco_py.language.formats import CSF, Format, RemappedFormat, named, remapped


class Tensor(StoredFacts, ArrayMethods, ExchangeMethods):
    """Hold an immutable tensor in one of the formats: sizes, index arrays of each level, values.

    >>> T = tp.Tensor.from_coo(([0, 1], [2, 0]), [5.0, 6.0], (2, 3))
    >>> T
    Tensor(shape=(2, 3), format='ss', nnz=2, dtype=float64, density=0.333)
    >>> T.to_numpy()
    array([[0., 0., 5.],
           [6., 0., 0.]])

    data  the arrays; `tp.tensor(…)` makes a Tensor of anything else
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
        """Make a tensor of coordinates and values; duplicates are added up.

        >>> tp.Tensor.from_coo([np.array([0, 1]), np.array([2, 0])], [5.0, 6.0], (2, 3)).to_numpy()
        array([[0., 0., 5.],
               [6., 0., 0.]])

        coords  one array a mode, as in (rows, columns): a tuple, or a list of NumPy arrays. Or a
                table of shape (order, nnz), as of pydata/sparse and torch, or (nnz, order)
        values  one for each coordinate
        shape   the size of each mode
        format  a Format or its letters; compressed sparse fibres (CSF) where not given
        dtype   of the values, which must be numbers that it holds, but for rounding to float32
        index_dtype  int32 or int64; int32 where it suffices if not given
        axis    of the table that runs over the modes: 0 for (order, nnz), 1 for (nnz, order); where
                not given, the one whose length is the order, and an error where both are
        indices another name of coords, as torch and JAX have it; one of the two is given
        fill_value  of the elements that have no coordinates, a number that the dtype holds; 0 where
                    not given

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
        wanted = (None if form else as_format(format, len(sizes))) or CSF(len(sizes))
        native = vector.astype(vector.dtype.newbyteorder("="), copy=False)
        fill = "" if fill_value is None else fill_of(fill_value, native.dtype)
        with room("a tensor of coordinates and values", native.nbytes):
            data = pack_coo(integer_columns(columns), native, sizes, wanted, index_dtype, fill)
        found = cls(own(data, (vector, *columns)))
        return found if form is None else found.to_format(form)

    @classmethod
    def from_numpy(
        cls,
        array: ArrayLike,
        format: Format | RemappedFormat | str | None = None,
        *,
        fill_value: complex | None = None,
    ) -> Tensor:
        """Make a tensor around a dense array's memory, or of its nonzeros in a sparse format.

        array   anything that NumPy makes an array of
        format  a Format or its letters; dense where not given
        fill_value  what is left out in a sparse format in the place of zeros
        """
        given = array if isinstance(array, np.ndarray) else numbers(array, None)
        return cls(with_fill(from_numpy(given), fill_value))._in(format)

    @classmethod
    def from_scipy(
        cls,
        A: Any,  # noqa: N803
        format: Format | RemappedFormat | str | None = None,
        *,
        fill_value: complex | None = None,
    ) -> Tensor:
        """Make a tensor around a scipy.sparse array's own arrays, or converted to a format.

        A       a scipy.sparse array or matrix
        format  a Format or its letters; that of `A` where not given
        fill_value  of the elements that `A` does not store; 0 where not given
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
        """Return the arrays with the order of their coordinates, which is looked up once."""
        data = with_order(self._data)
        if data.sorted is None:
            data = replace(data, sorted=is_sorted(data))
        if data.sorted and data.unique is None:
            data = replace(data, unique=is_unique(data))  # of unordered ones it costs a sort
        self._data = data
        return data

    def signature(self) -> tuple[object, ...]:
        """Return the facts by which plans are found for this tensor and others like it."""
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
        """Return the n-D array: a fresh one, except of a dense tensor, whose own it is.

        memory_limit  bytes that it may take, as in `evaluate`

        Where nothing is stored it has the fill value.
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

        kind  "csr_array", "csc_matrix" …: converted to that one. Arrays are shared where the format
              is that kind's own.

        Raises FormatError for a scalar, another kind, and a fill value that is not 0.
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

        Of a tensor whose last level is dense, only what has not the fill value, as a rule 0.
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
        """Return the same tensor in another format; itself where it has that format already.

        format  a Format, its letters or its name, as in "bsr(3,3)"; "auto" chooses one for a matrix
                that products read many times (`tp.choose_format` says why)
        memory_limit  bytes that it may take, as in `evaluate`

        The fill value stays. From a dense format to a sparse one, what has it is left out.
        """
        if memory_limit is not None:
            return limited(Tensor.to_format, locals())
        if asks_choice(format):
            found: Tensor = BEHAVIOUR.find("in_chosen_format")(self)
            return found
        form = remapped(format)
        if form is not None:
            stored: Tensor = BEHAVIOUR.find("in_remapped_format")(self, form)
            return stored
        data = stored_as(self._data, format)
        return self if data is self._data else Tensor(data)

    def _in(self, format: Format | RemappedFormat | str | None) -> Tensor:
        """Return the same tensor in a format, where one is given."""
        return self if format is None else self.to_format(format)

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Tensor:
        """Return a tensor of the same pattern with values converted as NumPy does.

        dtype  of the values
        copy   whether a tensor of this type is copied

        Entries with equal coordinates are added before. The fill value is converted too.
        Raises NumberOverflowError where that is infinite or NaN
        and `dtype` one of integers.
        """
        wanted = as_dtype(dtype, "dtype")
        if not copy and wanted == self.dtype:
            return self
        data = self._data if wanted == self.dtype else canonical(self.examined())
        with room(f"values of {wanted}", data.values.size * wanted.itemsize):
            return Tensor(with_values(data, data.values.astype(wanted)))

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
        """Show it in a notebook: what it is, and where its entries are."""
        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays, without what was looked up about them for calls."""
        return Tensor, (self._data,)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        """Refused, so that no tensor becomes a dense array by accident.

        An operator of scipy.sparse gets an object of NumPy, and leaves the operation to the Tensor.
        """
        if is_operand_of_scipy(sys._getframe(1)):
            found = np.empty((), object)
            found[()] = self
            return found
        raise OperandTypeError(
            "Expected an array, found a Tensor, which is not made dense silently",
            hint="call .to_scipy() to keep it sparse, or .to_numpy() if the dense array fits",
        )


def as_data(obj: Any) -> TensorData:
    """Return the arrays of anything `tensor` accepts, borrowed where possible."""
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

    found = foreign_data(obj)
    return found if isinstance(found, TensorData) else as_data(found)


def operand_data(obj: Any) -> TensorData:
    """Return `as_data` of what kernels read, to which a dense tensor's fill value means nothing."""
    return stores_all(as_data(obj))


def with_fill(data: TensorData, fill_value: Any) -> TensorData:
    """Return the tensor in the same arrays, whose elements that are not stored have this value.

    fill_value  a number that the dtype holds; None leaves all as it is

    Raises OperandTypeError, NumberOverflowError.
    """
    return data if fill_value is None else replace(data, fill=fill_of(fill_value, data.dtype))


def stored_as(data: TensorData, format: Format | RemappedFormat | str | None) -> TensorData:
    """Return `data` in `format`, or as it is."""
    wanted = as_format(format, data.format.order)
    return data if wanted is None else convert(data, wanted)


def asks_choice(format: Any) -> bool:
    """Tell whether a user leaves the format to be chosen."""
    return isinstance(format, str) and format.strip().lower() == "auto"


def as_format(format: Format | RemappedFormat | str | None, order: int) -> Format | None:
    """Return the Format of a user's format argument; FormatError unless it has `order` levels."""
    form = remapped(format)
    if form is not None:
        raise FormatError(
            f"Expected a format of levels over the modes themselves here, found {form}",
            hint="calls of one assignment over indices alone take it; here say a plain format, as "
            f"tp.CSR, and convert the result: .to_format({str(form)!r})",
        )
    parsed = named(format, order) if isinstance(format, str) else format
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
    """Return coordinates in the machine's byte order (and of integer type where there are none)."""
    kept = (np.dtype(np.int32), np.dtype(np.int64))
    return tuple(each if each.dtype in kept else each.astype(np.int64) for each in columns)


def own(data: TensorData, inputs: Sequence[Array]) -> TensorData:
    """Return the same tensor sharing no memory with the user's arrays."""
    held = [data.values, *(array for level in data.levels for array in arrays_of(level))]
    shared = any(np.may_share_memory(a, b) for a in held for b in inputs)
    return copied(data) if shared else data


def copied(data: TensorData) -> TensorData:
    """Return the same tensor in fresh arrays."""
    levels = tuple(
        LevelArrays(*(None if a is None else a.copy() for a in (level.pos, level.crd)))
        for level in data.levels
    )
    return replace(data, levels=levels, values=data.values.copy(order="K"))


def arrays_of(level: LevelArrays) -> list[Array]:
    """Return the arrays a level owns."""
    return [array for array in (level.pos, level.crd) if array is not None]

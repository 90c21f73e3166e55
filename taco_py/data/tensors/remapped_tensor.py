"""Tensors that are stored over modes derived from their own: blocks of matrices, diagonals.

tp.tensor(A, format=tp.BSR((3, 3)))   holds a plain tensor of order 4 and the shape of A
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from taco_py.data.convert.remap import blocks_to_dense, inside, plain_format, remap, unmap
from taco_py.data.interop.scipy_blocks import to_bsr
from taco_py.data.interop.scipy_remapped import from_remapped, is_remapped
from taco_py.data.storage.by_level.level_tree import fills_up, is_usual
from taco_py.data.storage.pack import unpack
from taco_py.data.storage.size_classes import size_classes
from taco_py.data.storage.tensor_data import Array, TensorData
from taco_py.data.tensors.behaviour import BEHAVIOUR
from taco_py.data.tensors.byte_counts import limited
from taco_py.data.tensors.tensor import Tensor, as_format, asks_choice
from taco_py.language.formats import CSF, Format, RemappedFormat, remapped

BSR_CLASSES = ("bsr_array", "bsr_matrix")


class RemappedTensor(Tensor):
    """A tensor in a remapped format, held as a plain tensor `stored`.

    >>> T = tp.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 0.0]], format=tp.BSR((2, 2)))
    >>> T
    Tensor(shape=(2, 3), format='BSR(2,2)', nnz=3, dtype=float64, density=0.5)

    stored  the tensor over the stored modes
    format  the mapping from the modes of this tensor to its modes
    shape   of this tensor

    reason  for the format, where it was chosen automatically

    `data` is the same tensor in a plain format, CSR for a matrix; it is built at its first use and
    cached.
    """

    __slots__ = ("_as_plain", "_entry_count", "_format", "_plain", "_shape", "reason", "stored")

    def __init__(
        self,
        stored: Tensor | TensorData,
        format: RemappedFormat,
        shape: tuple[int, ...],
        reason: str = "",
    ) -> None:
        self.stored = stored if isinstance(stored, Tensor) else Tensor(stored)
        self._format, self._shape = format, shape
        self.reason = reason
        self._plain: TensorData | None = None
        self._as_plain: Tensor | None = None
        self._signature = None
        self._entry_count: int | None = None

    @property
    def _data(self) -> TensorData:
        if self._plain is None:
            drop = not self._format.is_blocked  # zeros of blocks are stored, as in scipy
            self._plain = unmap(self.stored.data, self._format, self._shape, drop_fill=drop)
        return self._plain

    @_data.setter
    def _data(self, data: TensorData) -> None:
        self._plain = data

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the size of each mode."""
        return self._shape

    @property
    def ndim(self) -> int:
        """Return the number of modes."""
        return len(self._shape)

    @property
    def order(self) -> int:
        """Return the number of modes."""
        return len(self._shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the values."""
        return self.stored.dtype

    @property
    def format(self) -> RemappedFormat:  # type: ignore[override]
        """Return the format."""
        return self._format

    @property
    def nnz(self) -> int:
        """Return the number of entries, the same in every format: as many as `to_coo` returns.

        Zeros of blocks and of diagonals do not count: they are indistinguishable from padding.
        """
        if self._format.is_blocked and self._fills_blocks() and is_usual(self.stored.format):
            return self.stored.nnz  # no block reaches beyond the shape
        if self._entry_count is not None:
            return self._entry_count
        coordinates, values = unpack(self.stored.data, drop_fill=True)
        _, entries = inside(self._format.logical(coordinates, self._shape), values, self._shape)
        if not fills_up(self.stored.format):
            self._entry_count = len(entries)  # no value can change it
        return len(entries)

    @property
    def value_count(self) -> int:
        """Return the number of values in memory: of entries, and of padding."""
        return self.stored.value_count

    @property
    def fill_value(self) -> Any:
        """Return the value of the elements that are not stored, a NumPy number of the dtype."""
        return self.stored.fill_value

    @property
    def fill(self) -> str:
        """Return the fill value as text, "" for 0."""
        return self.stored.data.fill

    def signature(self) -> tuple[object, ...]:
        """Return the facts that plans for this tensor depend on."""
        if self._signature is None:
            prefix = RemappedTensor, str(self._format), size_classes(self._shape)
            self._signature = (*prefix, *self.stored.signature())
        return self._signature

    def plain(self) -> Tensor:
        """Return the same tensor in a plain format, with the zeros of blocks; it is cached."""
        if self._as_plain is None:
            self._as_plain = Tensor(self.data)
        return self._as_plain

    def to_numpy(self, *, memory_limit: int | str | None = None) -> Array:
        """Return the n-D array, a new one.

        memory_limit  bytes that it may take, as in `evaluate`
        """
        if memory_limit is not None:
            return limited(RemappedTensor.to_numpy, locals())
        if self._format.is_blocked:
            return blocks_to_dense(self.stored.data, self._format, self._shape)
        return super().to_numpy()

    def to_dense(self, *, memory_limit: int | str | None = None) -> Tensor:
        """Return the same tensor in the dense format.

        memory_limit  bytes that it may take, as in `evaluate`
        """
        return Tensor.from_numpy(self.to_numpy(memory_limit=memory_limit))

    def to_scipy(self, kind: str | None = None) -> Any:
        """Return a bsr_array around the same arrays for BSR, else as Tensors do.

        kind  the class to convert to, "bsr_array", "csr_array" …; classes other than bsr omit zeros
              of blocks

        Raises FormatError for another kind, blocks that do not fill the shape, and a fill value
        other than 0.
        """
        if kind is None and self._fills_bsr():
            kind = "bsr_array"
        kind = "bsr_array" if kind == "bsr" else kind
        if kind in BSR_CLASSES:
            return to_bsr(self.stored.data, self._format, self._shape, kind)
        return self._entries(plain_format(self.order)).to_scipy(kind)

    def _fills_bsr(self) -> bool:
        return self._format.is_bsr and not self.fill and self._fills_blocks()

    def _fills_blocks(self) -> bool:
        """Tell whether blocks divide the shape evenly."""
        return not any(c and n % c for n, c in zip(self._shape, self._format.cuts, strict=True))

    def to_coo(self) -> tuple[Array, Array]:
        """Return an (nnz, order) array of coordinates and the values, without zeros of blocks."""
        return self._entries(CSF(self.order)).to_coo()

    def to_format(
        self, format: Format | RemappedFormat | str, *, memory_limit: int | str | None = None
    ) -> Tensor:
        """Return the same tensor in another format; itself where it already has it.

        format  a Format, its letters or its name; "auto" chooses one, as in `tp.tensor`
        memory_limit  bytes that it may take, as in `evaluate`

        The fill value is preserved. Formats without blocks omit zeros of blocks.
        """
        if memory_limit is not None:
            return limited(RemappedTensor.to_format, locals())
        if asks_choice(format):
            tensor: Tensor = BEHAVIOUR.find("in_chosen_format")(self)
            return tensor
        target = remapped(format)
        if target == self._format:
            return self
        if target is not None:
            return in_format(self._entries(plain_format(self.order)), target)
        plain = as_format(format, self.order)
        assert plain is not None
        if plain.is_dense:
            return self.to_dense().to_format(plain)
        return self._entries(plain)

    def _entries(self, target: Format) -> Tensor:
        """Return the entries other than the fill value in a plain format."""
        return Tensor(unmap(self.stored.data, self._format, self._shape, target, drop_fill=True))

    def astype(self, dtype: DTypeLike, *, copy: bool = True) -> Tensor:
        """Return a tensor of the same pattern with values converted as in NumPy.

        dtype  of the values
        copy   whether a tensor of the same type is copied
        """
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return self._over(self.stored.astype(dtype))

    def copy(self) -> Tensor:
        """Return a tensor that shares no memory with this one."""
        return self._over(self.stored.copy())

    def _over(self, stored: Tensor) -> RemappedTensor:
        """Return a tensor with other values in the same format."""
        return RemappedTensor(stored, self._format, self._shape, self.reason)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays, without cached facts."""
        return RemappedTensor, (self.stored, self._format, self._shape, self.reason)


def in_format(tensor: Tensor, format: RemappedFormat) -> Tensor:
    """Return a tensor in a remapped format; itself where it already has it.

    Raises FormatError where the orders differ.
    """
    if isinstance(tensor, RemappedTensor):
        return tensor.to_format(format)
    return RemappedTensor(remap(tensor.data, format), format, tensor.shape)


def blocks_of(obj: Any) -> RemappedTensor | None:
    """Return a remapped tensor itself, or a bsr or dia array of scipy around its arrays; else
    None."""
    if isinstance(obj, RemappedTensor):
        return obj
    if not is_remapped(obj):
        return None
    stored, format = from_remapped(obj)
    return RemappedTensor(stored, format, obj.shape)

"""Conversion of a Tensor to objects of other libraries, and protocols by which they read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.byte_counts import limited_result
from taco_py.language.diagnostics.errors import FormatError, SparseBufferError

if TYPE_CHECKING:
    from taco_py.data.storage.tensor_data import TensorData


class ExchangeMethods:
    """Methods of a Tensor that other libraries use."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def data(self) -> TensorData: ...

    def to(self, library: str, kind: str | None = None) -> Any:
        """Return the tensor as an object of another library, in the same memory where possible.

        >>> tp.tensor(sp.csr_array([[1.0, 0.0], [0.0, 3.0]])).to("scipy", "csc_array").format
        'csc'

        library  "numpy", "scipy", "torch", "jax", "sparse", "cupy", "pandas", "polars" or "pyarrow"
        kind     the library's name of a class or layout, as "sparse_csr" of torch; by default the
                 one that fits the format

        `tp.tensor` and calls accept such objects. Raises MissingExtraError where the library is not
        installed, FormatError for tensors that the kind cannot hold, OperandTypeError for such
        values.
        """
        from taco_py.data.interop.partners.partners import written_to

        if kind is not None and not isinstance(kind, str):
            raise FormatError(
                f"Expected the name of a class or layout of {library}, found {kind!r}",
                hint='as in T.to("torch", "sparse_csr")',
            )
        if KERNELS.memory.on:
            return limited_result(f"to {library}", written_to, self.data, library, kind or "")
        return written_to(self.data, library, kind or "")

    def __dlpack__(self, **options: Any) -> Any:
        """Share the memory of a dense tensor with another library.

        Raises SparseBufferError for a sparse tensor, which has several arrays.
        """
        return self._lent().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return the device of a dense tensor: DLPack's number of the host."""
        device: tuple[int, int] = self._lent().__dlpack_device__()
        return device

    def _lent(self) -> Any:
        """Return the array of a dense tensor. Raises SparseBufferError."""
        if not self.data.format.is_dense:
            raise SparseBufferError(
                f"Expected a dense tensor for DLPack, found {self!r}; a sparse one is several "
                "arrays",
                hint='T.to("torch") and others keep it sparse; T.to_dense() has all elements',
            )
        return self.data.values

    def __dask_tokenize__(self) -> tuple[Any, ...]:
        """Return the identity of a tensor for dask: its arrays and its format."""
        data, names = self.data, ("pos", "crd")
        arrays = [getattr(level, name) for level in data.levels for name in names]
        return "taco_py.Tensor", str(data.format), data.shape, data.fill, data.values, arrays

    def __binsparse_descriptor__(self) -> dict[str, Any]:
        """Describe the storage of the tensor as in binsparse: a dictionary for JSON."""
        from taco_py.data.storage.containers.binsparse import describe

        return describe(self.data)[0]

    def __binsparse__(self, descriptor: Any = None) -> dict[str, Any]:
        """Return the arrays that the descriptor names, by their names.

        descriptor  the requested descriptor; None, or the tensor's own
        """
        from taco_py.data.storage.containers.binsparse import describe

        expected, arrays = describe(self.data)
        if descriptor is not None and descriptor != expected:
            raise FormatError(
                f"Expected the tensor's own descriptor, of {expected['binsparse']['format']}, "
                "found another one",
                hint="convert the tensor first: T.to_format(…)",
            )
        return arrays

"""A Tensor as an object of other libraries, and the protocols by which they take it themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.byte_counts import limited_result
from taco_py.language.diagnostics.errors import FormatError, SparseBufferError

if TYPE_CHECKING:
    from taco_py.data.storage.tensor_data import TensorData


class ExchangeMethods:
    """What other libraries ask of a Tensor."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def data(self) -> TensorData: ...

    def to(self, library: str, kind: str | None = None) -> Any:
        """Return the tensor as an object of another library, in the same memory where it can be.

        >>> tp.tensor(sp.csr_array([[1.0, 0.0], [0.0, 3.0]])).to("scipy", "csc_array").format
        'csc'

        library  "numpy", "scipy", "torch", "jax", "sparse", "cupy", "pandas", "polars" or "pyarrow"
        kind     the library's own name of a class or layout, as "sparse_csr" of torch; that which
                 fits the format where not given

        `tp.tensor` and calls take such objects back. Raises MissingExtraError where the library is
        not installed, FormatError for what the kind cannot hold, OperandTypeError for its values.
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
        """Lend the memory of a dense tensor to another library.

        Raises SparseBufferError for a sparse tensor, which is several arrays.
        """
        return self._lent().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return where a dense tensor is: DLPack's number of the host."""
        found: tuple[int, int] = self._lent().__dlpack_device__()
        return found

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
        """Return what tells tensors apart, for dask: their arrays and how they are stored."""
        data, kept = self.data, ("pos", "crd")
        arrays = [getattr(level, name) for level in data.levels for name in kept]
        return "taco_py.Tensor", str(data.format), data.shape, data.fill, data.values, arrays

    def __binsparse_descriptor__(self) -> dict[str, Any]:
        """Describe how the tensor is stored, as binsparse does: a dictionary for JSON."""
        from taco_py.data.storage.containers.binsparse import describe

        return describe(self.data)[0]

    def __binsparse__(self, descriptor: Any = None) -> dict[str, Any]:
        """Return the arrays that the descriptor names, by these names.

        descriptor  the one that is wanted; None, or the tensor's own
        """
        from taco_py.data.storage.containers.binsparse import describe

        own, arrays = describe(self.data)
        if descriptor is not None and descriptor != own:
            raise FormatError(
                f"Expected the tensor's own descriptor, of {own['binsparse']['format']}, found "
                "another one",
                hint="convert the tensor first: T.to_format(…)",
            )
        return arrays

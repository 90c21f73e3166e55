"""A Tensor behind the methods that scipy's own tests of sparse arrays call."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.sparse as sp

import taco_py as tp

ELEMENTS = (
    "sin", "tan", "arcsin", "arctan", "sinh", "tanh", "arcsinh", "arctanh", "expm1", "log1p",
    "deg2rad", "rad2deg", "sqrt", "sign", "rint", "floor", "ceil", "trunc",
)  # fmt: skip
"""Methods of scipy's that are functions of NumPy's here."""
WRAPPED = (
    "copy", "astype", "conj", "conjugate", "reshape", "max", "min", "argmax", "argmin", "dot",
    "nonzero",
)  # fmt: skip
"""Methods that Tensors have."""
SUMMED = ("sum", "mean")
"""Methods whose result is dense in scipy."""
BINARY = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul",
    "eq", "ne", "lt", "le", "gt", "ge",
)  # fmt: skip
OPERANDS = (np.ndarray, list, tuple, tp.Tensor)
"""What may stand beside one in a function of NumPy's."""
UNARY = ("neg", "pos", "abs")


class Adapted:
    """A Tensor under scipy's names of methods; every operation is that of the Tensor."""

    __array_priority__ = 200.0
    __hash__ = object.__hash__
    format = "tensor"

    def __init__(self, given: Any, copy: bool = False) -> None:
        tensor = bare(given)
        self.tensor = tensor.copy() if copy else tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each mode."""
        return self.tensor.shape

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        operands = [each for each in inputs if not isinstance(each, Adapted)]
        if any(not isinstance(each, OPERANDS) and not np.isscalar(each) for each in operands):
            return NotImplemented
        found = getattr(ufunc, method)(*map(bare, inputs), **options)
        return self if found is self.tensor else wrapped(found, *operands)

    def __getattr__(self, name: str) -> Any:
        if name in ELEMENTS:
            return lambda: wrapped(getattr(np, name)(self.tensor))
        if name in WRAPPED:
            return lambda *args, **options: self._called(name, *args, **options)
        if name in SUMMED:
            return lambda *args, **options: summed(getattr(self.tensor, name), args, options)
        if name.startswith("to") and name[2:] in ("csr", "csc", "coo", "bsr", "dia", "lil", "dok"):
            return lambda *_, **__: getattr(self.tensor.to_scipy(), name)()
        if name in ("ndim", "dtype", "nnz", "size"):
            return getattr(self.tensor, name)
        if name in ("T", "real", "imag", "mT"):
            return wrapped(getattr(self.tensor, name))
        raise AttributeError(name)

    def _called(self, name: str, *args: Any, **options: Any) -> Any:
        """What a method returns; itself where that is the Tensor itself."""
        found = getattr(self.tensor, name)(*map(bare, args), **options)
        return self if found is self.tensor else wrapped(found, *args)

    def diagonal(self, k: int = 0) -> Any:
        """The diagonal as an array."""
        return self.tensor.diagonal(k).to_numpy()

    def trace(self, offset: int = 0) -> Any:
        """The sum of a diagonal."""
        return self.tensor.trace(offset)

    def transpose(self, axes: Any = None, copy: bool = False) -> Any:
        """The transposed."""
        found = self.tensor.transpose() if axes is None else self.tensor.transpose(axes)
        return wrapped(found.copy() if copy else found)

    def __round__(self, ndigits: int = 0) -> Any:
        return wrapped(round(self.tensor, ndigits))

    def __getitem__(self, key: Any) -> Any:
        keys = tuple(map(bare, key)) if isinstance(key, tuple) else bare(key)
        return wrapped(self.tensor[keys])

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Any:
        return map(wrapped, self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def toarray(self, order: Any = None, out: Any = None) -> Any:
        """The elements as an array, in `out` where there is one."""
        found = np.array(self.tensor.to_numpy(), order=order or "C")
        if out is None:
            return found
        if out.shape != found.shape or out.dtype != found.dtype:
            raise ValueError("out is another array")
        out[...] = found
        return out

    todense = toarray

    def totensor(self, copy: bool = False) -> Any:
        """Itself, or a copy."""
        return Adapted(self, copy=True) if copy else self

    def asformat(self, format: str, copy: bool = False) -> Any:
        """An array of scipy's."""
        return self.tensor.to_scipy().asformat(format)

    def multiply(self, other: Any) -> Any:
        """The product of elements."""
        return self * other

    def power(self, n: Any, dtype: Any = None) -> Any:
        """The power of elements."""
        return self.astype(dtype) ** n if dtype else self**n

    def maximum(self, other: Any) -> Any:
        """The larger elements."""
        return wrapped(np.maximum(self.tensor, bare(other)), other)

    def minimum(self, other: Any) -> Any:
        """The smaller elements."""
        return wrapped(np.minimum(self.tensor, bare(other)), other)

    def count_nonzero(self, axis: Any = None) -> Any:
        """How many elements are not 0."""
        return summed((self.tensor != 0).sum, (axis,), {})


def _binary(name: str, reflected: bool) -> Any:
    operate = getattr(operator, name)

    def of_two(self: Adapted, other: Any) -> Any:
        pair = (bare(other), self.tensor) if reflected else (self.tensor, bare(other))
        return wrapped(operate(*pair), other)

    return of_two


def _unary(name: str) -> Any:
    operate = getattr(operator, name)
    return lambda self: wrapped(operate(self.tensor))


for _name in BINARY:
    setattr(Adapted, f"__{_name}__", _binary(_name, False))
    setattr(Adapted, f"__r{_name}__", _binary(_name, True))
for _name in UNARY:
    setattr(Adapted, f"__{_name}__", _unary(_name))


def bare(obj: Any) -> Any:
    """The Tensor behind an operand; others as they are."""
    return obj.tensor if isinstance(obj, Adapted) else obj


def wrapped(found: Any, *beside: Any) -> Any:
    """A result under scipy's names; a dense one beside dense operands is an array there."""
    if not isinstance(found, tp.Tensor):
        return found
    if found.format.is_dense and any(isinstance(each, np.ndarray | list) for each in beside):
        return found.to_numpy()
    return Adapted(found)


def summed(method: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """A reduction as scipy returns it: dense, in `out` where there is one."""
    out = options.pop("out", None)
    found = method(*args, **options)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else found
    if out is None:
        return found
    if np.shape(out) != np.shape(found):
        raise ValueError("dimensions do not match")
    out[...] = found
    return out


def made(given: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> Adapted:
    """What scipy's tests make their arrays by: of arrays as tp.tensor, of parts as scipy does."""
    given = bare(given)
    if shape is None and isinstance(given, tp.Tensor | np.ndarray | list):
        tensor = tp.tensor(np.asarray(given)) if isinstance(given, list) else tp.tensor(given)
        tensor = tensor.to_format("csr") if tensor.order == 2 else tensor
        return Adapted(tensor if dtype is None else tensor.astype(dtype), copy)
    return Adapted(tp.tensor(sp.csr_array(given, shape=shape, dtype=dtype, copy=copy)))

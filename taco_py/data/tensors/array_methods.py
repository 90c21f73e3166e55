"""Array behaviour of a Tensor: Python's operators by a table, and methods.

Each calls a function of `taco_py.arrays` by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from taco_py.data.storage.room import room
from taco_py.data.tensors.behaviour import BEHAVIOUR
from taco_py.language.diagnostics.errors import DimensionError, OperandError, OperandTypeError

if TYPE_CHECKING:
    Axis = int | Sequence[int] | None

NUMBER_BYTES = 8 + 24
"""Bytes of a Python number in a list: its reference and itself."""
BINARY: Mapping[str, str] = MappingProxyType({
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide",
    "floordiv": "floor_divide", "mod": "remainder", "pow": "power", "and": "bitwise_and",
    "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
})  # fmt: skip
"""Python's names of operators that have a reflected form, with NumPy's."""

COMPARE: Mapping[str, str] = MappingProxyType({
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
})  # fmt: skip
UNARY: Mapping[str, str] = MappingProxyType({
    "neg": "negative", "pos": "positive", "abs": "abs", "invert": "invert"
})  # fmt: skip


class ArrayMethods:
    """Operators, subscripts, NumPy's functions and array methods of a Tensor."""

    __slots__ = ()
    __array_priority__ = 100.0
    __hash__ = object.__hash__

    if TYPE_CHECKING:

        @property
        def shape(self) -> tuple[int, ...]: ...
        def to_numpy(self) -> Any: ...

        def __operator__(self, other: Any, /) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __operator__
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __operator__
        __mod__ = __rmod__ = __pow__ = __rpow__ = __operator__
        __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __operator__
        __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = __operator__
        __lt__ = __le__ = __gt__ = __ge__ = __operator__

        def __eq__(self, other: object, /) -> Any: ...
        def __ne__(self, other: object, /) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute a ufunc of NumPy that index notation has."""
        return BEHAVIOUR.find("ufunc")(ufunc, method, inputs, options)

    def __array_function__(
        self, function: Any, types: Any, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """Compute an array function of NumPy that Tensors have."""
        return BEHAVIOUR.find("array_function")(function, args, options)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        """Return the module with the functions of the array API standard."""
        return BEHAVIOUR.find("namespace")(api_version)

    def __matmul__(self, other: Any, /) -> Any:
        """Multiply matrices and vectors, or stacks of them, as NumPy does."""
        return BEHAVIOUR.find("matmul")(self, other)

    def __rmatmul__(self, other: Any, /) -> Any:
        """Multiply from the right of an array."""
        return BEHAVIOUR.find("matmul")(other, self)

    def __divmod__(self, other: Any, /) -> tuple[Any, Any]:
        """Return the quotients of floor division, and the remainders."""
        return self // other, self % other

    def __getitem__(self, key: Any, /) -> Any:
        """Select elements, as of a NumPy array: integers, slices, None, …, masks, arrays.

        >>> T = tp.tensor(np.array([[0.0, 5.0], [7.0, 0.0]]), format="csr")
        >>> T[1, 0], T[:, 1].to_numpy(), T[T > 5].to_numpy()
        (np.float64(7.0), array([5., 0.]), array([7.]))

        Returns a Tensor, sparse where this one is, or a number. Raises PositionError for positions
        outside.
        """
        return BEHAVIOUR.find("subscript")(self, key)

    def __len__(self) -> int:
        """Return the size of the first mode."""
        if not self.shape:
            raise OperandTypeError(
                "Expected a Tensor of order 1 or more for len, found a scalar",
                hint="it has one element",
            )
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Iterate over T[0], T[1] … in order."""
        return iter([self[place] for place in range(len(self))])

    def __bool__(self) -> bool:
        """Return the truth of a Tensor of one element. Raises DimensionError for others."""
        if any(size != 1 for size in self.shape):
            raise DimensionError(
                f"Expected a Tensor of one element for a truth, found one of shape {self.shape}",
                hint="ask T.any() or T.all()",
            )
        return bool(one_number(self, "a truth", "ask T.any() or T.all()"))

    def __float__(self) -> float:
        """Return the number of a Tensor of one element."""
        return float(one_number(self, "a number", "reduce it, as by .sum()"))

    def __int__(self) -> int:
        """Return the integer of a Tensor of one element."""
        return int(one_number(self, "a number", "reduce it, as by .sum()"))

    def __complex__(self) -> complex:
        """Return the complex number of a Tensor of one element."""
        return complex(one_number(self, "a number", "reduce it, as by .sum()"))

    def __round__(self, ndigits: int = 0) -> Any:
        """Round the elements, halves to even."""
        return BEHAVIOUR.find("round")(self, ndigits)

    def __index__(self) -> int:
        """Return the integer of a Tensor of one element of an integer type."""
        number = one_number(self, "an index", "reduce it, as by .argmax()")
        if number.dtype.kind not in "iu":
            raise OperandTypeError(
                f"Expected a whole number for an index, found one of {number.dtype}", hint="int(T)"
            )
        return int(number)

    @property
    def device(self) -> str:
        """Return "cpu"; `tp.device` moves tensors to a GPU."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Any:
        """Return the tensor itself for "cpu". Raises OperandError for another device."""
        if device != "cpu" or stream is not None:
            raise OperandError(
                f'Expected the device "cpu" and no stream, found {device!r}',
                hint="tp.device(T) moves a tensor to a GPU",
            )
        return self

    def sum(self, axis: Axis = None, *, keepdims: bool = False, dtype: Any = None) -> Any:
        """Sum over modes, all where axis is None; small integers in 64 bits, as in NumPy."""
        return BEHAVIOUR.find("reduced")("sum", self, axis, keepdims, dtype)

    def prod(self, axis: Axis = None, *, keepdims: bool = False, dtype: Any = None) -> Any:
        """Multiply over modes, all where axis is None."""
        return BEHAVIOUR.find("reduced")("prod", self, axis, keepdims, dtype)

    def mean(self, axis: Axis = None, *, keepdims: bool = False, dtype: Any = None) -> Any:
        """Return the mean over modes, of all elements where axis is None."""
        return BEHAVIOUR.find("reduced")("mean", self, axis, keepdims, dtype)

    def min(self, axis: Axis = None, *, keepdims: bool = False) -> Any:
        """Return the minimum over modes; NaN if any element is NaN."""
        return BEHAVIOUR.find("reduced")("min", self, axis, keepdims)

    def max(self, axis: Axis = None, *, keepdims: bool = False) -> Any:
        """Return the maximum over modes; NaN if any element is NaN."""
        return BEHAVIOUR.find("reduced")("max", self, axis, keepdims)

    def any(self, axis: Axis = None, *, keepdims: bool = False) -> Any:
        """Tell whether any element is nonzero, over modes."""
        return BEHAVIOUR.find("reduced")("any", self, axis, keepdims)

    def all(self, axis: Axis = None, *, keepdims: bool = False) -> Any:
        """Tell whether all elements are nonzero, over modes."""
        return BEHAVIOUR.find("reduced")("all", self, axis, keepdims)

    def var(
        self, axis: Axis = None, *, keepdims: bool = False, correction: float = 0, ddof: float = 0
    ) -> Any:
        """Return the variance over modes; the divisor is the number of values minus correction."""
        return BEHAVIOUR.find("var")(self, axis, keepdims, correction or ddof)

    def std(
        self, axis: Axis = None, *, keepdims: bool = False, correction: float = 0, ddof: float = 0
    ) -> Any:
        """Return the square root of the variance."""
        return BEHAVIOUR.find("std")(self, axis, keepdims, correction or ddof)

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Return the first place of the minimum, of all elements where axis is None."""
        return BEHAVIOUR.find("place_of_extremum")("argmin", self, axis, keepdims)

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Any:
        """Return the first place of the maximum, of all elements where axis is None."""
        return BEHAVIOUR.find("place_of_extremum")("argmax", self, axis, keepdims)

    def cumsum(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return cumulative sums along a mode, of all elements in row-major order where axis is
        None."""
        return BEHAVIOUR.find("cumulative")("sum", self, axis, dtype)

    def cumprod(self, axis: int | None = None, dtype: Any = None) -> Any:
        """Return cumulative products along a mode, of all elements in row-major order by
        default."""
        return BEHAVIOUR.find("cumulative")("prod", self, axis, dtype)

    def sort(self, axis: int | None = -1, *, descending: bool = False) -> Any:
        """Return a sorted copy along a mode."""
        return BEHAVIOUR.find("sort")(self, axis, descending)

    def argsort(self, axis: int | None = -1, *, descending: bool = False) -> Any:
        """Return the positions that sort a dense tensor along a mode."""
        return BEHAVIOUR.find("argsort")(self, axis, descending)

    def unique(self) -> Any:
        """Return the distinct elements in ascending order, NaN once, as a dense vector."""
        return BEHAVIOUR.find("distinct_values")(self, True)

    def take(self, indices: Any, axis: int | None = None) -> Any:
        """Select elements at positions along a mode, of all in row-major order without axis."""
        return BEHAVIOUR.find("take")(self, indices, axis)

    def repeat(self, repeats: Any, axis: int | None = None) -> Any:
        """Repeat each element along a mode, by one count or a count for each."""
        return BEHAVIOUR.find("repeat")(self, repeats, axis)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
        """Return the diagonal of two modes as the last mode of the result."""
        return BEHAVIOUR.find("diagonal")(self, offset, axis1, axis2)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
        """Sum the diagonal of two modes."""
        return self.diagonal(offset, axis1, axis2).sum(-1, dtype=dtype)

    def swapaxes(self, axis1: int, axis2: int) -> Any:
        """Exchange two modes without a copy."""
        return BEHAVIOUR.find("swapaxes")(self, axis1, axis2)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
        """Return the elements in another shape, in row-major order; one size may be -1.

        order  "F" for column-major order, the first mode fastest
        copy   whether the result must not share memory with this tensor
        """
        sizes = shape[0] if len(shape) == 1 else shape
        if order not in ("C", "F"):
            raise OperandTypeError(
                f'Expected the order "C" or "F", found {order!r}', hint='order="C" is row-major'
            )
        if order == "F":
            requested = tuple(sizes) if isinstance(sizes, Sequence) else (sizes,)
            reshaped = BEHAVIOUR.find("reshape")(self.T, requested[::-1]).T
        else:
            reshaped = BEHAVIOUR.find("reshape")(self, sizes)
        return reshaped.copy() if copy else reshaped

    def ravel(self) -> Any:
        """Return all elements along one mode, in row-major order."""
        return BEHAVIOUR.find("reshape")(self, -1)

    def flatten(self) -> Any:
        """Return all elements along one mode, in row-major order."""
        return BEHAVIOUR.find("reshape")(self, -1)

    @property
    def T(self) -> Any:  # noqa: N802
        """Return the tensor with its modes in reverse order, without a copy."""
        return BEHAVIOUR.find("permute")(self)

    @property
    def mT(self) -> Any:  # noqa: N802
        """Return the tensor with its last two modes exchanged, without a copy."""
        return BEHAVIOUR.find("matrix_transpose")(self)

    def transpose(self, *axes: Any) -> Any:
        """Reorder the modes without a copy; by default reverse them."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return BEHAVIOUR.find("permute")(self, order)

    def squeeze(self, axis: Axis = None) -> Any:
        """Remove modes of size 1: all, or those in axis."""
        return BEHAVIOUR.find("squeeze")(self, axis)

    def dot(self, other: Any) -> Any:
        """Sum products over the last mode and the last but one of the other, as NumPy."""
        return BEHAVIOUR.find("dot")(self, other)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Clip the elements to an interval."""
        return BEHAVIOUR.find("clip")(self, min, max)

    def round(self, decimals: int = 0) -> Any:
        """Round to integers, halves to even, or to a number of decimals."""
        return BEHAVIOUR.find("round")(self, decimals)

    def conj(self) -> Any:
        """Return the complex conjugate."""
        return BEHAVIOUR.find("conj")(self)

    def conjugate(self) -> Any:
        """Return the complex conjugate."""
        return self.conj()

    @property
    def real(self) -> Any:
        """Return the real parts."""
        return BEHAVIOUR.find("real")(self)

    @property
    def imag(self) -> Any:
        """Return the imaginary parts."""
        return BEHAVIOUR.find("imag")(self)

    def nonzero(self) -> Any:
        """Return the coordinates of the nonzero elements, an array a mode, in order."""
        return BEHAVIOUR.find("nonzero")(self)

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return one_number(self, "a number", "reduce it, as by .sum()").item()

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        with room("nested lists of the elements", NUMBER_BYTES * self.size):
            return self.to_numpy().tolist()

    @property
    def size(self) -> int:
        """Return the number of elements, stored or not."""
        return prod(self.shape)


def one_number(T: Any, what: str, hint: str) -> Any:  # noqa: N803
    """Return the only element of a Tensor. Raises OperandTypeError for other numbers of
    elements."""
    if any(size != 1 for size in T.shape):
        raise OperandTypeError(
            f"Expected a Tensor of one element for {what}, found one of shape {T.shape}", hint=hint
        )
    return T.to_numpy().reshape(())[()]


def _binary(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    find = BEHAVIOUR.find

    def operate(self: Any, other: Any) -> Any:
        return find("elementwise")(name, self, other)

    def operate_reflected(self: Any, other: Any) -> Any:
        return find("elementwise")(name, other, self)

    return operate_reflected if reflected else operate


def _unary(name: str) -> Callable[[Any], Any]:
    def operate(self: Any) -> Any:
        return BEHAVIOUR.find("elementwise")(name, self)

    return operate


for _name, _operation in BINARY.items():
    setattr(ArrayMethods, f"__{_name}__", _binary(_operation, False))
    setattr(ArrayMethods, f"__r{_name}__", _binary(_operation, True))
for _name, _operation in COMPARE.items():
    setattr(ArrayMethods, f"__{_name}__", _binary(_operation, False))
for _name, _operation in UNARY.items():
    setattr(ArrayMethods, f"__{_name}__", _unary(_operation))

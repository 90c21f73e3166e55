"""What a Tensor does as an array: Python's operators by a table, and methods.

Each is a function of `taco_py.arrays`, found by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from taco_py.diagnostics.errors import OperandTypeError
from taco_py.values.behaviour import BEHAVIOUR

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
    """Operators, subscripts, NumPy's functions and methods of arrays, for a Tensor."""

    __slots__ = ()
    __array_priority__ = 100.0
    __hash__ = object.__hash__

    if TYPE_CHECKING:
        shape: tuple[int, ...]

        def __operator__(self, other: Any, /) -> Any: ...

        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __operator__
        __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __operator__
        __mod__ = __rmod__ = __pow__ = __rpow__ = __matmul__ = __rmatmul__ = __operator__
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
        """Compute one of NumPy's functions of elements, where index notation has it."""
        return BEHAVIOUR.find("ufunc")(ufunc, method, inputs, options)

    def __bool__(self) -> bool:
        """Return the truth of a Tensor of one element. Raises OperandTypeError for others."""
        return bool(one_number(self, "a truth", "ask T.any() or T.all()"))

    def __float__(self) -> float:
        """Return the number of a Tensor of one element."""
        return float(one_number(self, "a number", "reduce it, as by .sum()"))

    def __int__(self) -> int:
        """Return the whole number of a Tensor of one element."""
        return int(one_number(self, "a number", "reduce it, as by .sum()"))

    def __complex__(self) -> complex:
        """Return the complex number of a Tensor of one element."""
        return complex(one_number(self, "a number", "reduce it, as by .sum()"))


def one_number(T: Any, what: str, hint: str) -> Any:  # noqa: N803
    """Return the one element of a Tensor. Raises OperandTypeError for another number of them."""
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

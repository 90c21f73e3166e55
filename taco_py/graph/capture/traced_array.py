"""Arrays that stand for operands while a function is traced.

S = Q @ K       notes an operation; S.shape, S.dtype are known, elements are not
if S.sum() > 0  is refused, with the line and what to write instead
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, NoReturn

import numpy as np

from taco_py.data.interop.scipy_arrays import function_of_scipy, is_operand_of_scipy
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.traced_line import call_with_line, refuse
from taco_py.graph.extents import product
from taco_py.graph.nodes import Fact

FIRST = ("a", "x", "m", "arr", "array", "arrays", "condition")
"""What NumPy calls the first argument of its functions."""

PARTS_OF_NUMPY = ("linalg", "fft")
"""Modules of NumPy whose functions go by the module's name too."""

MOST_PARTS = 256
"""Parts of an array that a traced function may loop over."""

OF_NETWORKS = ("softmax", "log_softmax", "logsumexp")
"""Functions of scipy.special that `tp.nn` has."""

NO_VALUES = "its elements are not known while the function is traced"


class TracedArray:
    """An array of a trace: its shape, its type, and the operations that NumPy's arrays have.

    owned  whether the function made it, so that a program may change it
    """

    __slots__ = ("name", "owned", "recorder")
    __array_priority__ = 200.0
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, recorder: Recorder, name: str, owned: bool = False) -> None:
        self.recorder = recorder
        self.name = name
        self.owned = owned

    @property
    def fact(self) -> Fact:
        """Return the facts of the traced value."""
        return self.recorder.facts[self.name]

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the sizes: numbers of each call."""
        return tuple(map(self.recorder.size, self.fact.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the type of the elements."""
        return np.dtype(self.fact.dtype)

    @property
    def ndim(self) -> int:
        """Return the number of modes."""
        return self.fact.order

    @property
    def size(self) -> Any:
        """Return the number of elements."""
        return self.recorder.size(product(self.fact.shape))

    @property
    def T(self) -> Any:  # noqa: N802
        """Return the array with its modes in reverse order."""
        return self._call("transpose")

    @property
    def mT(self) -> Any:  # noqa: N802
        """Return the array with its last two modes exchanged."""
        return self._call("matrix_transpose")

    @property
    def real(self) -> Any:
        """Return the real parts."""
        return self._call("real")

    @property
    def imag(self) -> Any:
        """Return the imaginary parts."""
        return self._call("imag")

    def __repr__(self) -> str:
        """Write the name and the type."""
        return f"traced {self.name}: {self.fact}"

    def _call(self, function: str, *args: Any, **options: Any) -> Any:
        operation = self.recorder.operations[function]
        return self._checked(f".{function}", operation, (self, *args), options)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Note one of NumPy's functions of elements."""
        return self.recorder.ufunc(function, method, inputs, options)

    def __array_function__(
        self, function: Any, types: Any, args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """Note one of NumPy's functions of arrays. Raises OperandTypeError for others."""
        module = function.__module__.removeprefix("numpy").lstrip(".")
        name = f"{module}.{function.__name__}" if module in PARTS_OF_NUMPY else function.__name__
        return self.__taco_function__(f"np.{name}", args, options)

    def __taco_function__(self, name: str, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        """Note a function of arrays by its name, as "np.sum" or "tp.einsum"."""
        table = self.recorder.operations
        spelled = (name, name.removeprefix("np."), name.removeprefix("np.linalg."))
        operation = next((table[spelling] for spelling in spelled if spelling in table), None)
        if operation is None:
            refuse(
                f"Expected a function that can be traced, found {name}",
                "compute it before the function is called and pass the result, or in parts: "
                "docs/graphs.md lists the functions",
            )
        keywords = dict(options)
        first = next((key for key in FIRST if key in keywords), None)
        if not args and first is not None:
            args = (keywords.pop(first),)
        return self._checked(name, operation, args, keywords)

    def _checked(
        self, name: str, operation: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        """Call an operation. Raises OperandTypeError for arguments that it does not have."""
        try:
            signature(operation).bind(self.recorder, *args, **options)
        except TypeError as error:
            refuse(
                f"Expected arguments of {name} that can be traced, found others: {error}",
                "docs/graphs.md lists the functions; compute what they lack in parts",
            )
        return call_with_line(operation, self.recorder, *args, **options)

    def __taco_operand__(self, obj: Any) -> Any:
        """Note an array or a number that is no traced one, as a constant."""
        return self.recorder.traced(self.recorder.name_of(obj))

    def __getitem__(self, key: Any) -> Any:
        """Note subscripts: integers, slices, None, …, and arrays that are no traced ones."""
        return self._call("subscript", key)

    def __getattr__(self, name: str) -> Any:
        """Refuse attributes that traced arrays lack, with the line."""
        if name.startswith("__"):
            raise AttributeError(name)
        return refuse(
            f"Expected an attribute that traced arrays have, found .{name}",
            "docs/graphs.md lists them",
        )

    # ------------------------------------------------------------ what asks for values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Refuse, but for scipy.sparse, which then leaves its operator to this array."""
        if is_operand_of_scipy(sys._getframe(1)):
            holder = np.empty((), object)
            holder[()] = self
            return holder
        name = function_of_scipy(sys._getframe(1))
        plain = "leave np.asarray away; a function that calls it, write by those of docs/graphs.md"
        network_hint = f"write tp.nn.{name}, for scipy.special.{name} makes an array of NumPy's"
        return self._refuse(
            "an array of its elements",
            network_hint if name in OF_NETWORKS else plain,
        )

    def __bool__(self) -> bool:
        """Refuse: values do not decide what is computed."""
        return self._refuse("a truth", "write np.where(condition, one, other)")

    def __float__(self) -> float:
        """Refuse: values are not known."""
        return self._refuse("a number", "compute with the array of no modes itself")

    def __int__(self) -> int:
        """Refuse: values are not known."""
        return self._refuse("a number", "compute with the array of no modes itself")

    def __complex__(self) -> complex:
        """Refuse: values are not known."""
        return self._refuse("a number", "compute with the array of no modes itself")

    def __index__(self) -> int:
        """Refuse: values are not known."""
        return self._refuse("an index", "pass positions as an array that is not traced")

    def __iter__(self) -> Any:
        """Iterate over the parts along the first mode; the trace then holds for their number.

        Raises OperandTypeError for more than `MOST_PARTS`: each is an operator of the graph.
        """
        if self.ndim and int(self.recorder.value(self.fact.shape[0])) > MOST_PARTS:
            self._refuse(
                f"at most {MOST_PARTS} parts to loop over",
                "compute with whole arrays",
                f"it has {self.shape[0]}, and each round would be noted",
            )
        return (self[place] for place in range(len(self)))

    def __contains__(self, item: Any) -> bool:
        """Refuse: values are not known."""
        return self._refuse("something to search", "write (x == item).any()")

    def __setitem__(self, key: Any, value: Any) -> None:
        """Refuse: arrays are not changed."""
        self._refuse(
            "an array to change", "write x = np.where(mask, value, x)", "it is not changed"
        )

    def item(self) -> Any:
        """Refuse: values are not known."""
        return self._refuse("a number", "compute with the array of no modes itself")

    def tolist(self) -> Any:
        """Refuse: values are not known."""
        return self._refuse("a list of its elements", "compute with the array itself")

    def _refuse(self, what: str, hint: str, reason: str = NO_VALUES) -> NoReturn:
        refuse(f"Expected {what}, found a traced array: {reason}", hint)

    def __len__(self) -> int:
        """Return the size of the first mode, for which the trace then holds."""
        if not self.ndim:
            self._refuse(
                "an array of one mode or more for len", "it has one element", "it has none"
            )
        return int(self.shape[0])

    def __pow__(self, other: Any) -> Any:
        """Note a power; that of 2 is a square, as in NumPy also for its type."""
        plain_number = type(other) is int or (type(other) is float and self.dtype.kind in "fc")
        truth = not self.ndim and self.dtype.kind == "b"  # of a scalar, NumPy has no square
        if plain_number and other == 2 and not truth:
            return self.recorder.ufunc(np.square, "__call__", (self,), {})
        return self.recorder.ufunc(np.power, "__call__", (self, other), {})

    def __rpow__(self, other: Any) -> Any:
        """Note a power with an array as the exponent."""
        return self.recorder.ufunc(np.power, "__call__", (other, self), {})

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        """Note quotients without remainders, and these."""
        return self // other, self % other


def _binary(function: np.ufunc, reflected: bool) -> Callable[[Any, Any], Any]:
    def operate(self: TracedArray, other: Any) -> Any:
        inputs = (other, self) if reflected else (self, other)
        return self.recorder.ufunc(function, "__call__", inputs, {})

    return operate


def _unary(function: np.ufunc) -> Callable[[Any], Any]:
    return lambda self: self.recorder.ufunc(function, "__call__", (self,), {})


def _method(name: str) -> Callable[..., Any]:
    def call(self: TracedArray, *args: Any, **options: Any) -> Any:
        return self._call(name, *args, **options)

    return call


BINARY: tuple[tuple[str, np.ufunc], ...] = (
    ("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", np.divide),
    ("floordiv", np.floor_divide), ("mod", np.remainder),
    ("matmul", np.matmul), ("and", np.bitwise_and), ("or", np.bitwise_or),
    ("xor", np.bitwise_xor), ("lshift", np.left_shift), ("rshift", np.right_shift),
)  # fmt: skip
COMPARE: tuple[tuple[str, np.ufunc], ...] = (
    ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal),
    ("gt", np.greater), ("ge", np.greater_equal),
)  # fmt: skip
UNARY: tuple[tuple[str, np.ufunc], ...] = (
    ("neg", np.negative), ("pos", np.positive), ("invert", np.invert), ("abs", np.absolute),
)  # fmt: skip
for _name, _function in (*BINARY, *COMPARE):
    setattr(TracedArray, f"__{_name}__", _binary(_function, False))
for _name, _function in BINARY:
    setattr(TracedArray, f"__r{_name}__", _binary(_function, True))
for _name, _function in UNARY:
    setattr(TracedArray, f"__{_name}__", _unary(_function))
METHODS = (
    "sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "argmin", "argmax", "cumsum",
    "cumprod", "argsort", "reshape", "ravel", "flatten", "transpose", "swapaxes",
    "squeeze", "astype", "dot", "clip", "round", "conj", "conjugate", "copy", "take", "trace",
    "diagonal", "repeat", "multiply", "toarray", "todense", "tocsr", "tocsc", "tocoo", "power",
)  # fmt: skip
"""Methods of NumPy's and scipy.sparse's arrays, each traced by the function of its name."""
for _name in METHODS:
    setattr(TracedArray, _name, _method(_name))

"""`tp.lazy`: operations noted instead of computed, without a function.

with tp.lazy() as later:
    C = later(A) @ B + D        notes operations
C.compute()                     computes all of them as a whole
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

import numpy as np

from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.arguments.options import CallOptions
from taco_py.data.tensors.behaviour import BEHAVIOUR
from taco_py.data.tensors.tensor import Tensor
from taco_py.graph.backends.registered import NONE, Preference, preference_of
from taco_py.graph.capture.free_variables import FreeVariables
from taco_py.graph.capture.recorder import Recorder, is_operand
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_table import operations
from taco_py.graph.graph_call import GraphCall, call_of
from taco_py.graph.nodes import Output
from taco_py.graph.run.graph_program import ONE_CALL
from taco_py.graph.selection.strategies import DEFAULT, check_strategy
from taco_py.graph.traced_graph import TracedGraph
from taco_py.language.diagnostics.errors import OperandTypeError


class LazyRecorder(Recorder):
    """What a block notes, and how kernels are chosen for what is computed of it."""

    optimize = DEFAULT
    preferred = NONE
    options = ONE_CALL

    def call(self, name: str) -> tuple[GraphCall, list[Any]]:
        """Choose the program for one of the arrays, and return it with its operands."""
        graph = self.graph((name,))
        self.closed = False
        trace = Trace(graph, Output(0), None, (), (), FreeVariables((), ()))
        operands = [self.operands[leaf.name] for leaf in graph.inputs]
        call = call_of(trace, operands, self.optimize, self.preferred, options=self.options)
        return call, operands


class LazyArray(TracedArray):
    """An array whose operations are noted, until it is computed."""

    __slots__ = ()
    recorder: LazyRecorder

    def compute(self) -> Any:
        """Compute the array and the values it depends on."""
        call, operands = self.recorder.call(self.name)
        return call.run(operands)

    def graph(self) -> TracedGraph:
        """Return the graph that computes the array, to explain and to save."""
        call, operands = self.recorder.call(self.name)
        return TracedGraph(call, operands, self.name)


class Lazy:
    """A context in which operations of Tensors, and of arrays that it is called with, are noted.

    >>> A, x = np.eye(3), np.ones(3)
    >>> with tp.lazy() as later:
    ...     y = later(A) @ x + 1
    >>> y.compute()
    array([2., 2., 2.])
    """

    def __init__(
        self,
        optimize: str = DEFAULT,
        preferred: Preference = NONE,
        options: CallOptions = ONE_CALL,
    ) -> None:
        table = {**operations(frozenset()), "traced": LazyArray, "TracedArray": LazyArray}
        self.recorder = LazyRecorder({}, table)
        self.recorder.optimize = check_strategy(optimize)
        self.recorder.preferred = preferred
        self.recorder.options = options
        self.names: dict[int, str] = {}
        self.before: Callable[[str], Any] | None = None

    def __call__(self, array: Any) -> LazyArray:
        """Return the stand-in of an array, whose operations are noted."""
        if isinstance(array, LazyArray):
            return array
        if not is_operand(array):
            raise OperandTypeError(
                f"Expected an array, found {type(array).__name__}",
                hint="NumPy and scipy.sparse arrays and Tensors are computed with later",
            )
        if id(array) not in self.names:
            name = f"a{len(self.names)}"
            self.names[id(array)] = name
            self.recorder.operands[name] = array
            self.recorder.add_input(name, array)
        return LazyArray(self.recorder, self.names[id(array)])

    def __enter__(self) -> Lazy:
        """Begin to note the operations of Tensors in this thread."""
        self.before = BEHAVIOUR.taken.get(get_ident())
        BEHAVIOUR.taken[get_ident()] = self._operation
        return self

    def __exit__(self, *error: object) -> None:
        """End it."""
        del BEHAVIOUR.taken[get_ident()]
        if self.before is not None:
            BEHAVIOUR.taken[get_ident()] = self.before

    def _operation(self, name: str) -> Callable[..., Any]:
        """Return the function that Tensors call under a name while operations are noted."""
        if name == "elementwise":
            return self._elementwise
        if name == "matmul":
            return lambda a, b: self._noted("matmul", a, b)
        if name == "reduced":
            return self._reduced
        if name == "ufunc":
            return lambda function, method, inputs, options: self.recorder.ufunc(
                function, method, self._stand_ins(inputs), options
            )
        if name == "array_function":
            return lambda function, args, options: self._noted(function.__name__, *args, **options)
        if name in ("subscript", "reshape", "squeeze", "clip", "take", "dot"):
            return lambda *args, **options: self._noted(name, *args, **options)
        if name == "permute":
            return lambda array, axes=None: self._noted("transpose", array, axes)
        return BEHAVIOUR.function_named(name)

    def _stand_ins(self, values: Sequence[Any]) -> list[Any]:
        return [self(value) if isinstance(value, Tensor) else value for value in values]

    def _noted(self, function: str, *args: Any, **options: Any) -> Any:
        operation = self.recorder.operations.get(function)
        if operation is None:
            return BEHAVIOUR.function_named("array_function")(getattr(np, function), args, options)
        return operation(self.recorder, *self._stand_ins(args), **options)

    def _elementwise(self, name: str, *args: Any, dtype: Any = None) -> Any:
        options = {} if dtype is None else {"dtype": dtype}
        return self.recorder.ufunc(getattr(np, name), "__call__", self._stand_ins(args), options)

    def _reduced(
        self, name: str, array: Any, axis: Any = None, keepdims: bool = False, dtype: Any = None
    ) -> Any:
        return self._noted(name, array, axis, dtype=dtype, keepdims=keepdims)


def lazy(optimize: str = DEFAULT, backends: Sequence[str] = (), price: Price = ANALYTIC) -> Lazy:
    """Note operations of arrays instead of computing them, until `.compute()` of a result.

    >>> with tp.lazy() as later:
    ...     y = np.exp(later(np.zeros(2))) + 1
    >>> y.compute()
    array([2., 2.])
    >>> with tp.lazy(backends=("blas",)) as later:
    ...     y = later(np.eye(2)) @ np.ones((2, 2))
    >>> y.compute()
    array([[1., 1.],
           [1., 1.]])

    optimize  how kernels are chosen, as `tp.fuse` has it: anew for each `.compute()`
    backends  names of code generators that may compute parts of it, as `tp.fuse` has them
    price     by which plans are compared, as `tp.fuse` has it

    Raises ScheduleError for another `optimize`, and for unknown backends, OperandTypeError for
    another price.
    """
    preferred = preference_of(backends) if backends else NONE
    return Lazy(optimize, preferred, ONE_CALL.with_price(price))

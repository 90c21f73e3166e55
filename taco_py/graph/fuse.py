"""`tp.fuse`: a function of arrays, traced once for each kinds of operands, computed as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from inspect import signature
from types import CellType, FunctionType
from typing import Any, overload

from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.arguments.options import CallOptions
from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.keys import call_key
from taco_py.graph.backends.registered import NONE, Preference, Regions, preference_of
from taco_py.graph.capture.free_variables import FUSED_PREFIX, global_values
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.signature_of_call import Leaves, leaves_of
from taco_py.graph.capture.trace_function import Trace, trace_function
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.graph_call import GraphCall, call_of
from taco_py.graph.passes import ALL
from taco_py.graph.run.graph_program import MANY_CALLS
from taco_py.graph.selection.strategies import DEFAULT, check_strategy
from taco_py.graph.short_route import short_route
from taco_py.graph.traced_graph import TracedGraph

Route = Callable[..., Any]

MOST_TRACES = 64
"""Traces of a function that are kept for operands of the same kinds."""

MOST_KINDS = 256
"""Kinds of operands whose traces are kept: those that came first go."""

MOST_ROUTES = 4
"""Short ways that are kept for calls that differ in sizes alone, as of traces for a size each."""


MOST_HELD = 64
"""Elements of a container in a closure that are looked at for traced arrays."""


class BoundFunction:
    """What an object keeps of a traced method: its copies, and what is pickled, have none."""

    __slots__ = ("fused",)

    def __init__(self, fused: FusedFunction | None = None) -> None:
        self.fused = fused

    def __reduce__(self) -> Any:
        """Leave traces out."""
        return BoundFunction, ()


class FusedFunction:
    """A function of arrays that is computed as a whole.

    >>> @tp.fuse
    ... def softmax(x):
    ...     e = np.exp(x - x.max(-1, keepdims=True))
    ...     return e / e.sum(-1, keepdims=True)
    >>> softmax(np.zeros((2, 4)))[0]
    array([0.25, 0.25, 0.25, 0.25])
    """

    def __init__(
        self,
        function: Callable[..., Any],
        optimize: str = DEFAULT,
        preferred: Preference = NONE,
        options: CallOptions = MANY_CALLS,
    ) -> None:
        self.function = function
        self.optimize = optimize
        self.preferred = preferred
        self.options = options
        self.passes = ALL
        self.signature = signature(function)
        self.traces: dict[tuple[object, ...], list[GraphCall]] = {}
        self.routes: dict[tuple[object, ...], tuple[Route, ...]] = {}
        update_wrapper(self, function)
        KERNELS.derived.add(self)

    def clear(self) -> None:
        """Forget the short ways, which hold a number of threads."""
        self.routes = {}

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """Compute the function, as a call of the function itself would."""
        values = (*args, *keywords.values()) if keywords else args
        key = call_key((*keywords,), values) if self._is_in_order(len(args), keywords) else None
        if key is not None:
            for route in () if KERNELS.memory.on else self.routes.get(key, ()):
                result_of_route = route(*values)
                if result_of_route is not None:
                    return result_of_route
        recorder = trace_of(values)
        if recorder is not None:
            return self._inside(recorder, args, keywords)
        arguments = self._bound(args, keywords)
        leaves = leaves_of(arguments)
        call = self._existing_call(leaves)
        if call is None:
            recorder = trace_around(self.function)
            if recorder is not None:
                return self._inside(recorder, args, keywords)
            call = self._new(arguments, leaves)
        operands = leaves.values
        result = call.run(operands)
        if key is not None and len(operands) == len(values):
            fast_route = short_route(call, operands, values)
            if fast_route is not None:
                self.routes[key] = (fast_route, *self.routes.get(key, ())[: MOST_ROUTES - 1])
        return result

    def _inside(self, recorder: Recorder, args: Any, keywords: Any) -> Any:
        """Note the function's operations in another trace."""
        return self.function(*args, **keywords)

    def _is_in_order(self, count: int, keywords: Mapping[str, Any]) -> bool:
        """Tell whether arguments by name come as the function has them, after so many others."""
        return (
            not keywords
            or [*keywords] == [*self.signature.parameters][count : count + len(keywords)]
        )

    def graph(self, *args: Any, **keywords: Any) -> TracedGraph:
        """Return the graph of a call with such arguments, which computes nothing."""
        arguments = self._bound(args, keywords)
        leaves = leaves_of(arguments)
        call = self._call(arguments, leaves)
        name = getattr(self.function, "__name__", "function")
        return TracedGraph(call, leaves.values, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind it as a method, whose instance is read while it is traced."""
        if instance is None:
            return self
        attributes = getattr(instance, "__dict__", {})
        name = f"{FUSED_PREFIX}{getattr(self.function, '__name__', '')}"
        bound: BoundFunction | None = attributes.get(name)
        fused = None if bound is None else bound.fused
        inner: Any = None if fused is None else fused.function
        if inner is None or inner.__func__ is not self.function or inner.__self__ is not instance:
            method = self.function.__get__(instance, owner)
            fused = FusedFunction(method, self.optimize, self.preferred, self.options)
            fused.passes = self.passes
            attributes[name] = BoundFunction(fused)
        return fused

    def _bound(self, args: Any, keywords: Any) -> dict[str, Any]:
        bound = self.signature.bind(*args, **keywords)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _call(self, arguments: dict[str, Any], leaves: Leaves) -> GraphCall:
        return self._existing_call(leaves) or self._new(arguments, leaves)

    def _existing_call(self, leaves: Leaves) -> GraphCall | None:
        """Return the call for such arguments, None where they were not traced before."""
        calls = self.traces.get(leaves.kinds, ())
        return next((call for call in calls if call.trace.holds(leaves.values)), None)

    def _new(self, arguments: dict[str, Any], leaves: Leaves) -> GraphCall:
        """Trace the function for such arguments, and choose the program that runs."""
        calls = self.traces.setdefault(leaves.kinds, [])
        while len(self.traces) > MOST_KINDS:
            self.traces.pop(next(iter(self.traces)), None)
        while len(self.routes) > MOST_KINDS:
            self.routes.pop(next(iter(self.routes)), None)
        call = self._planned(self._trace(arguments, leaves), arguments, leaves.values)
        calls.append(call)
        del calls[:-MOST_TRACES]
        return call

    def _planned(
        self, trace: Trace, arguments: dict[str, Any], operands: tuple[Any, ...]
    ) -> GraphCall:
        """Choose the program that runs for a trace."""
        return call_of(
            trace,
            operands,
            self.optimize,
            self.preferred,
            passes=self.passes,
            options=self.options,
        )

    def _trace(self, arguments: dict[str, Any], leaves: Leaves) -> Trace:
        return trace_function(self.function, arguments, leaves, self._called)

    def _called(self, arguments: Mapping[str, Any]) -> Any:
        """Call the function itself with arguments by name."""
        bound = self.signature.bind_partial()
        bound.arguments.update(arguments)
        return self.function(*bound.args, **bound.kwargs)


def trace_of(value: Any) -> Recorder | None:
    """Return the trace of an array among arguments, None without one."""
    if isinstance(value, TracedArray):
        return value.recorder
    if isinstance(value, tuple | list):
        elements: Iterable[Any] = value
    elif isinstance(value, dict):
        elements = value.values()
    else:
        return None
    return next((trace for element in elements if (trace := trace_of(element)) is not None), None)


def trace_around(function: Any) -> Recorder | None:
    """Return the trace of an array that a function, or its callees, read by name."""
    waiting, visited = [function], set[int]()
    while waiting:
        fn = waiting.pop()
        fn = fn.function if isinstance(fn, FusedFunction) else getattr(fn, "__func__", fn)
        if not isinstance(fn, FunctionType) or id(fn) in visited:
            continue
        visited.add(id(fn))
        for value in (*map(_content, fn.__closure__ or ()), *global_values(fn)):
            is_long = isinstance(value, tuple | list | dict) and len(value) > MOST_HELD
            recorder = None if is_long else trace_of(value)
            if recorder is not None:
                return recorder
            waiting.append(value)
    return None


def _content(cell: CellType) -> Any:
    """Return the value of a closure's variable; None where it is bound later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def kernel_settings(
    function: Callable[..., Any], optimize: str | None, price: Price | None
) -> tuple[str, Preference, CallOptions]:
    """Return the strategy, the backends and the options of a function derived from another.

    What nobody says is as for the other function.

    Raises ScheduleError for another `optimize`, OperandTypeError for another price.
    """
    fused = function if isinstance(function, FusedFunction) else None
    options = MANY_CALLS if fused is None else fused.options
    strategy = optimize or (DEFAULT if fused is None else fused.optimize)
    preferred = NONE if fused is None else fused.preferred
    return (
        check_strategy(strategy), preferred, options if price is None else options.with_price(price)
    )  # fmt: skip


@overload
def fuse(
    function: Callable[..., Any],
    *,
    optimize: str = ...,
    backends: Sequence[str] = ...,
    regions: Regions | None = ...,
    price: Price = ...,
) -> FusedFunction: ...
@overload
def fuse(
    function: None = None,
    *,
    optimize: str = ...,
    backends: Sequence[str] = ...,
    regions: Regions | None = ...,
    price: Price = ...,
) -> Callable[[Callable[..., Any]], FusedFunction]: ...
def fuse(
    function: Callable[..., Any] | None = None,
    *,
    optimize: str = DEFAULT,
    backends: Sequence[str] = (),
    regions: Regions | None = None,
    price: Price = ANALYTIC,
) -> Any:
    """Trace a function of arrays once for each kinds of operands, and compute it as a whole.

    >>> @tp.fuse
    ... def normalized(x):
    ...     return x / np.sqrt((x * x).sum())
    >>> normalized(np.array([3.0, 4.0]))
    array([0.6, 0.8])

    function  of arrays, in NumPy's functions and operators, SciPy's arrays and functions of tp
    optimize  how its kernels are chosen: "stages", as many primitives as possible in one call, or
              "greedy", "partition", "orchestrate", "measure", "operators" or "none", as
              docs/graphs.md has them
    backends  names of code generators that may compute parts of it where that pays, the preferred
              ones first: "blas", "mkl", "jsonvm" and those of `tp.register_backend`; "own" is this
              compiler, which has what those behind it would compute in as long a time
    regions   the parts themselves, whatever they cost: {"blas": [("p0", "p1")]} by the names of
              primitives as `explain()` has them, or a function of the graph of primitives to that
    price     by which plans of its kernels are compared, and kernels where `optimize` has prices:
              "analytic", "learned" or a model, as in `tp.evaluate`

    Raises ScheduleError for another `optimize`, for unknown backends, and, where it is called, for
    regions that cannot each be one step; OperandTypeError for another price. Raises where it is
    called, with the line, what a trace cannot follow: branches on values, and functions that are
    not known.
    """
    strategy, options = check_strategy(optimize), MANY_CALLS.with_price(price)
    preferred = preference_of(backends, regions) if backends or regions else NONE
    if function is None:
        return lambda function: FusedFunction(function, strategy, preferred, options)
    return FusedFunction(function, strategy, preferred, options)

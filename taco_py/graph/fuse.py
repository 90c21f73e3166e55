"""`tp.fuse`: a function of arrays, traced once for each kinds of operands, computed as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from inspect import signature
from types import CellType, FunctionType
from typing import Any, overload

from taco_py.data.kernels import KERNELS
from taco_py.data.tensors.keys import call_key
from taco_py.graph.backends.registered import NONE, Preference, Regions, preference_of
from taco_py.graph.capture.free_variables import OWN, global_values
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.signature_of_call import Leaves, leaves_of
from taco_py.graph.capture.trace_function import Trace, trace_function
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.graph_call import GraphCall, call_of
from taco_py.graph.passes import ALL
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
        """Leave out what was traced."""
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
    ) -> None:
        self.function = function
        self.optimize = optimize
        self.preferred = preferred
        self.passes = ALL
        self.signature = signature(function)
        self.traces: dict[tuple[object, ...], list[GraphCall]] = {}
        self.routes: dict[tuple[object, ...], tuple[Route, ...]] = {}
        update_wrapper(self, function)
        KERNELS.derived.add(self)

    def clear(self) -> None:
        """Forget the short ways, which hold a number of threads."""
        self.routes = {}

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Compute the function, as a call of the function itself would."""
        values = (*args, *named.values()) if named else args
        key = call_key((*named,), values) if self._is_in_order(len(args), named) else None
        if key is not None:
            for route in () if KERNELS.memory.on else self.routes.get(key, ()):
                found = route(*values)
                if found is not None:
                    return found
        recorder = trace_of(values)
        if recorder is not None:
            return self._inside(recorder, args, named)
        arguments = self._bound(args, named)
        leaves = leaves_of(arguments)
        call = self._known(leaves)
        if call is None:
            recorder = trace_around(self.function)
            if recorder is not None:
                return self._inside(recorder, args, named)
            call = self._new(arguments, leaves)
        operands = leaves.values
        result = call.run(operands)
        if key is not None and len(operands) == len(values):
            made = short_route(call, operands, values)
            if made is not None:
                self.routes[key] = (made, *self.routes.get(key, ())[: MOST_ROUTES - 1])
        return result

    def _inside(self, recorder: Recorder, args: Any, named: Any) -> Any:
        """Note in another trace what the function computes."""
        return self.function(*args, **named)

    def _is_in_order(self, count: int, named: Mapping[str, Any]) -> bool:
        """Tell whether arguments by name come as the function has them, after so many others."""
        return not named or [*named] == [*self.signature.parameters][count : count + len(named)]

    def graph(self, *args: Any, **named: Any) -> TracedGraph:
        """Return the graph of a call with such arguments, which computes nothing."""
        arguments = self._bound(args, named)
        leaves = leaves_of(arguments)
        call = self._call(arguments, leaves)
        name = getattr(self.function, "__name__", "function")
        return TracedGraph(call, leaves.values, name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind it as a method, whose instance is read while it is traced."""
        if instance is None:
            return self
        kept = getattr(instance, "__dict__", {})
        name = f"{OWN}{getattr(self.function, '__name__', '')}"
        bound: BoundFunction | None = kept.get(name)
        found = None if bound is None else bound.fused
        own: Any = None if found is None else found.function
        if own is None or own.__func__ is not self.function or own.__self__ is not instance:
            method = self.function.__get__(instance, owner)
            found = FusedFunction(method, self.optimize, self.preferred)
            found.passes = self.passes
            kept[name] = BoundFunction(found)
        return found

    def _bound(self, args: Any, named: Any) -> dict[str, Any]:
        bound = self.signature.bind(*args, **named)
        bound.apply_defaults()
        return dict(bound.arguments)

    def _call(self, arguments: dict[str, Any], leaves: Leaves) -> GraphCall:
        return self._known(leaves) or self._new(arguments, leaves)

    def _known(self, leaves: Leaves) -> GraphCall | None:
        """Return what runs for such arguments, None where they were not traced before."""
        known = self.traces.get(leaves.kinds, ())
        return next((call for call in known if call.trace.holds(leaves.values)), None)

    def _new(self, arguments: dict[str, Any], leaves: Leaves) -> GraphCall:
        """Trace the function for such arguments, and choose what runs."""
        known = self.traces.setdefault(leaves.kinds, [])
        while len(self.traces) > MOST_KINDS:
            self.traces.pop(next(iter(self.traces)), None)
        while len(self.routes) > MOST_KINDS:
            self.routes.pop(next(iter(self.routes)), None)
        found = self._planned(self._trace(arguments, leaves), arguments, leaves.values)
        known.append(found)
        del known[:-MOST_TRACES]
        return found

    def _planned(
        self, trace: Trace, arguments: dict[str, Any], operands: tuple[Any, ...]
    ) -> GraphCall:
        """Choose what runs for a trace."""
        return call_of(trace, operands, self.optimize, self.preferred, passes=self.passes)

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
        within: Iterable[Any] = value
    elif isinstance(value, dict):
        within = value.values()
    else:
        return None
    return next((found for each in within if (found := trace_of(each)) is not None), None)


def trace_around(function: Any) -> Recorder | None:
    """Return the trace of an array that a function reads by name, or those that it calls do."""
    waiting, seen = [function], set[int]()
    while waiting:
        own = waiting.pop()
        own = own.function if isinstance(own, FusedFunction) else getattr(own, "__func__", own)
        if not isinstance(own, FunctionType) or id(own) in seen:
            continue
        seen.add(id(own))
        for value in (*map(_content, own.__closure__ or ()), *global_values(own)):
            many = isinstance(value, tuple | list | dict) and len(value) > MOST_HELD
            found = None if many else trace_of(value)
            if found is not None:
                return found
            waiting.append(value)
    return None


def _content(cell: CellType) -> Any:
    """What a variable of a closure stands for; None where it is bound later."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


@overload
def fuse(
    function: Callable[..., Any],
    *,
    optimize: str = ...,
    backends: Sequence[str] = ...,
    regions: Regions | None = ...,
) -> FusedFunction: ...
@overload
def fuse(
    function: None = None,
    *,
    optimize: str = ...,
    backends: Sequence[str] = ...,
    regions: Regions | None = ...,
) -> Callable[[Callable[..., Any]], FusedFunction]: ...
def fuse(
    function: Callable[..., Any] | None = None,
    *,
    optimize: str = DEFAULT,
    backends: Sequence[str] = (),
    regions: Regions | None = None,
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

    Raises ScheduleError for another `optimize`, for unknown backends, and, where it is called, for
    regions that cannot each be one step. Raises where it is called, with the line, what a trace
    cannot follow: branches on values, and functions that are not known.
    """
    strategy = check_strategy(optimize)
    preferred = preference_of(backends, regions) if backends or regions else NONE
    if function is None:
        return lambda function: FusedFunction(function, strategy, preferred)
    return FusedFunction(function, strategy, preferred)

"""`tp.grad` and `tp.value_and_grad`: gradients of functions, computed as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from taco_py.arguments.learned_price import Price
from taco_py.arguments.options import CallOptions
from taco_py.graph.backends.registered import NONE, Preference
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.signature_of_call import leaves_of, replaced
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.fuse import FusedFunction, kernel_settings
from taco_py.graph.gradients.gradient_graph import (
    is_read,
    with_dense_gradients,
    with_gradients,
    with_own_gradients,
)
from taco_py.graph.gradients.gradients_inside import gradients_inside
from taco_py.graph.graph_call import GraphCall, call_of
from taco_py.graph.nodes import Graph, Output
from taco_py.graph.rules.rewrite import rewritten, rules_of
from taco_py.graph.run.graph_program import MANY_CALLS
from taco_py.graph.selection.strategies import DEFAULT
from taco_py.graph.views.with_views import with_views
from taco_py.language.diagnostics.errors import DerivativeError
from taco_py.language.diagnostics.suggest import with_suggestion


class GradientFunction(FusedFunction):
    """A function that returns the gradients of another, and its value where that is asked for.

    >>> gradient = tp.grad(lambda x: (x * x).sum(), wrt="x")
    >>> gradient(np.array([1.0, 2.0]))
    array([2., 4.])
    """

    def __init__(
        self,
        function: Callable[..., Any],
        wrt: str | tuple[str, ...],
        value: bool,
        optimize: str = DEFAULT,
        preferred: Preference = NONE,
        options: CallOptions = MANY_CALLS,
    ) -> None:
        super().__init__(function, optimize, preferred, options)
        self.wrt = wrt
        self.value = value
        names = [*self.signature.parameters]
        for name in (wrt,) if isinstance(wrt, str) else wrt:
            if name not in names:
                raise DerivativeError(
                    f"Expected names of arguments in wrt=, found {name!r}",
                    hint=with_suggestion(f"the arguments are {', '.join(names)}", name, names),
                )

    def _inside(self, recorder: Recorder, args: Any, keywords: Any) -> Any:
        """Note the gradients, and the value, in another trace."""
        arguments = self._bound(args, keywords)
        names = (self.wrt,) if isinstance(self.wrt, str) else self.wrt
        value, by_name = gradients_inside(
            recorder,
            lambda stands: self._called({**arguments, **stands}),
            {name: arguments[name] for name in names},
            self.passes,
        )
        gradients = by_name[self.wrt] if isinstance(self.wrt, str) else tuple(by_name.values())
        return (value, gradients) if self.value else gradients

    def _planned(
        self, trace: Trace, arguments: dict[str, Any], operands: tuple[Any, ...]
    ) -> GraphCall:
        """Choose the program that runs for the gradients of a trace."""
        check_number(trace)
        names = (self.wrt,) if isinstance(self.wrt, str) else self.wrt
        leaves = names_of(arguments)
        for name in names:
            _check_arrays(trace, leaves[name])
            if not any(is_used(trace, leaf) for leaf in leaves[name]):
                raise DerivativeError(
                    f"Expected arguments that the function uses for gradients, found {name}, which "
                    "it does not",
                    hint="leave it out of wrt=: its gradient is 0",
                )
        targets = [leaf for name in names for leaf in leaves[name]]
        first = 1 - self._results(len(targets)).start
        places = iter(range(first, len(targets) + first))
        slots = replaced({name: arguments[name] for name in names}, lambda _: Output(next(places)))
        gradients = slots[self.wrt] if isinstance(self.wrt, str) else tuple(map(slots.get, names))
        template = (Output(0), gradients) if self.value else gradients
        derived = partial(self._derived, targets)
        trace = replace(trace, template=template)
        return call_of(
            trace,
            operands,
            self.optimize,
            self.preferred,
            derived,
            self.passes,
            self.options,
        )

    def _derived(self, targets: list[str], graph: Graph) -> Graph:
        """Return the primitives of the value and the gradients; the value is left out if nobody
        asks."""
        primitives = with_gradients(graph, targets)
        results = self._results(len(targets))
        if results.start:
            primitives = replace(primitives, outputs=primitives.outputs[results]).pruned
        rules = rules_of(self.passes)
        primitives = with_dense_gradients(rewritten(primitives, rules), targets)
        return with_own_gradients(with_views(primitives, rules))

    def _results(self, count: int) -> slice:
        """Return which of the value and the gradients are computed."""
        return slice(not self.value and self.passes.loss_elimination, 1 + count)


def is_used(trace: Trace, name: str) -> bool:
    """Tell whether a function reads an argument, be it only where its derivative is taken."""
    return is_read(trace.graph, name) or name in trace.differentiated


def check_number(trace: Trace) -> None:
    """Raise DerivativeError unless a function returns one number."""
    if trace.template != Output(0) or len(trace.graph.outputs) != 1:
        raise DerivativeError(
            "Expected a function that returns one number for its gradients, found several results",
            hint="return the loss alone",
        )
    name = trace.graph.outputs[0]
    fact = trace.graph.facts[name]
    if fact.order:
        node = trace.graph.by_name.get(name)
        raise DerivativeError(
            f"Expected a function that returns one number for its gradients, found {fact} of "
            f"{node.place if node else name}",
            hint="return its sum or mean, or use tp.vjp of a text with a cotangent",
        )
    if np.dtype(fact.dtype).kind == "c":
        node = trace.graph.by_name.get(name)
        raise DerivativeError(
            f"Expected a function that returns a real number for its gradients, found {fact.dtype} "
            f"of {node.place if node else name}",
            hint="return its .real, or the sum of np.abs(z)**2",
        )


def _check_arrays(trace: Trace, names: Iterable[str]) -> None:
    """Raise DerivativeError for Python's numbers: a trace has them as it has sizes."""
    for name in names:
        fact = trace.graph.facts[name]
        if fact.weak:
            raise DerivativeError(
                f"Expected arrays for gradients, found {name}, a number of Python",
                hint="pass np.array(…) of it, or np.float64(…)",
            )


def names_of(arguments: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the names of the arrays and numbers in each argument."""
    names = iter(leaves_of(arguments).operands)
    by_argument = {}
    for name, value in arguments.items():
        count = len(leaves_of({name: value}).values)
        by_argument[name] = [next(names) for _ in range(count)]
    return by_argument


def _gradients(
    function: Callable[..., Any],
    wrt: str | Iterable[str],
    value: bool,
    optimize: str | None,
    price: Price | None,
) -> GradientFunction:
    if not isinstance(wrt, Iterable):
        raise DerivativeError(
            f"Expected names of arguments in wrt=, found {wrt!r}",
            hint='as in wrt="x", or wrt=("x", "y")',
        )
    names = wrt if isinstance(wrt, str) else tuple(wrt)
    inner = function.function if isinstance(function, FusedFunction) else function
    return GradientFunction(inner, names, value, *kernel_settings(function, optimize, price))


def grad(
    function: Callable[..., Any],
    wrt: str | Iterable[str],
    *,
    optimize: str | None = None,
    price: Price | None = None,
) -> GradientFunction:
    """Return the function of the gradients of a function that returns one number.

    >>> def loss(w, X, y):
    ...     return ((X @ w - y) ** 2).sum()
    >>> gradient = tp.grad(loss, wrt="w")
    >>> gradient(np.zeros(2), np.eye(2), np.array([1.0, 2.0]))
    array([-2., -4.])

    The loss itself is not computed, unless its gradients need it.

    >>> A = sp.csr_array([[2.0, 0.0], [0.0, 3.0]])
    >>> tp.grad(lambda A, x: (A @ x).sum(), wrt="A")(A, np.array([1.0, 10.0])).toarray()
    array([[ 1.,  0.],
           [ 0., 10.]])

    function  of arrays, as `tp.fuse` takes it
    wrt       names of arguments, for which a tuple is returned, or one name; gradients are as the
              argument is: an array, a matrix of its own pattern, a tuple or dictionary of them
    optimize, price  how kernels are chosen and by which price, as `tp.fuse` has them; by default as
              of a fused function

    Raises DerivativeError for names of no arguments and, where it is called, for a function that
    returns several numbers, for operators without a derivative, with the line, and for arguments
    that are integers or that the function does not use.
    """
    return _gradients(function, wrt, False, optimize, price)


def value_and_grad(
    function: Callable[..., Any],
    wrt: str | Iterable[str],
    *,
    optimize: str | None = None,
    price: Price | None = None,
) -> GradientFunction:
    """Return the function of the value and the gradients of a function that returns one number.

    >>> value_and_gradient = tp.value_and_grad(lambda x: (x * x).sum(), wrt="x")
    >>> value, gradient = value_and_gradient(np.array([1.0, 2.0]))
    >>> value, gradient
    (np.float64(5.0), array([2., 4.]))

    function  of arrays, as `tp.fuse` takes it
    wrt       names of arguments, or one name, as `tp.grad` has them
    optimize, price  how kernels are chosen and by which price, as `tp.fuse` has them; by default as
              of a fused function

    Raises what `tp.grad` raises.
    """
    return _gradients(function, wrt, True, optimize, price)

"""`tp.train_step`: a loss, its gradients and the update of its parameters as one graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from itertools import combinations
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.learned_price import Price
from taco_py.arguments.options import CallOptions
from taco_py.graph.backends.registered import Preference
from taco_py.graph.capture.recorder import Recorder
from taco_py.graph.capture.trace_function import Trace
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_line import refuse
from taco_py.graph.extents import Extent
from taco_py.graph.fuse import FusedFunction, kernel_settings, trace_of
from taco_py.graph.gradients.element_gradients import build
from taco_py.graph.gradients.gradient_function import check_number, is_used, names_of
from taco_py.graph.gradients.gradient_graph import with_gradients, with_own_gradients
from taco_py.graph.gradients.gradients_inside import gradients_inside
from taco_py.graph.gradients.optimizers import Optimizer, optimizer_of, settings_of
from taco_py.graph.graph_builder import GraphBuilder, rebuilt
from taco_py.graph.graph_call import GraphCall, call_of
from taco_py.graph.nodes import Graph, Output
from taco_py.graph.rules.rewrite import rewritten, rules_of
from taco_py.graph.views.with_views import with_views
from taco_py.language.diagnostics.errors import (
    DerivativeError,
    InternalError,
    OperandError,
    OperandTypeError,
)
from taco_py.language.diagnostics.suggest import with_suggestion
from taco_py.language.notation.nodes import Access, Call, Expr, Literal
from taco_py.language.notation.parser import parse_assignment

PARAMETERS, STATE, NUMBERS = "parameters", "state", "numbers"


@dataclass(frozen=True, slots=True, eq=False)
class TrainState:
    """Hold parameters and what an optimiser keeps of them.

    >>> step = tp.train_step(lambda w: ((w - 3) ** 2).sum(), optimizer="sgd", rate=0.25)
    >>> state = step.begin(w=np.zeros(2))
    >>> state.parameters["w"], state.count
    (array([0., 0.]), 0)

    parameters  by the names of the loss's arguments
    moments     the optimiser's arrays, by its name for them and the parameter's
    count       the steps that were done
    """

    parameters: Mapping[str, Any]
    moments: Mapping[str, Mapping[str, Any]]
    count: int = 0


class TrainStep:
    """Compute a loss and its parameters after a step of an optimiser, as one graph.

    >>> step = tp.train_step(lambda w: ((w - 3) ** 2).sum(), optimizer="sgd", rate=0.25)
    >>> value, state = step(step.begin(w=np.zeros(2)))
    >>> value, state.parameters["w"]
    (np.float64(18.0), array([1.5, 1.5]))
    """

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: str,
        settings: Mapping[str, float],
        in_place: bool,
        value: bool,
        optimize: str | None,
        price: Price | None,
    ) -> None:
        self.loss = loss.function if isinstance(loss, FusedFunction) else loss
        self.optimizer = optimizer_of(optimizer)
        self.optimizer_name = optimizer
        self.settings = settings_of(self.optimizer, optimizer, settings)
        self.in_place = in_place
        self._signature = signature(self.loss)
        self.names = tuple(self._signature.parameters)
        settings_of_kernels = kernel_settings(loss, optimize, price)
        self.fused = _Updated(self.loss, self.optimizer, *settings_of_kernels)
        self.fused.value = value

    def begin(self, parameters: Mapping[str, Any] | None = None, /, **keywords: Any) -> TrainState:
        """Return the state before the first step: copies of the parameters, and zeros.

        parameters, keywords  dense arrays, by the names of the loss's arguments; others are data
        """
        arrays = {**(parameters or {}), **keywords}
        for name, array in arrays.items():
            if name not in self.names:
                raise OperandError(
                    f"Expected parameters among {', '.join(self.names)}, found {name}",
                    hint=with_suggestion("they are arguments of the loss", name, self.names),
                )
            if not isinstance(array, np.ndarray | TracedArray) or array.dtype.kind not in "fc":
                raise OperandError(
                    f"Expected parameters to be arrays of real or complex numbers, found {name} of "
                    f"{type(array).__name__}",
                    hint="sparse parameters are trained as their values, an array",
                )
        if not arrays:
            raise OperandError(
                "Expected a parameter at least, found none", hint="as in step.begin(W=W)"
            )
        if self.in_place and trace_of(arrays) is not None:
            refuse(
                "Expected parameters that can be changed in place, found traced arrays",
                "leave out in_place= of a step that is part of a traced function",
            )
        if self.in_place:
            _check_places(arrays)
        values = arrays if self.in_place else {name: array.copy() for name, array in arrays.items()}
        zeros = {
            kind: {name: np.zeros_like(array) for name, array in values.items()}
            for kind in self.optimizer.state
        }
        return TrainState(values, zeros)

    def __call__(self, state: TrainState, **data: Any) -> tuple[Any, TrainState]:
        """Return the loss at the parameters of a state, or None, and the state after a step.

        data  the arguments of the loss that are no parameters, by name
        """
        if not isinstance(state, TrainState):
            raise OperandTypeError(
                f"Expected the state of a training, found {type(state).__name__}",
                hint="as in step(step.begin(W=W), X=X), and the state that it returns after that",
            )
        self._check_names(state, data)
        count = state.count + 1
        numbers = self._numbers(count)
        value, parameters, moments = self.fused(
            dict(state.parameters), state.moments, numbers, data
        )
        if self.in_place:
            for name, array in parameters.items():
                np.copyto(state.parameters[name], array)
            parameters = state.parameters
        return value, TrainState(parameters, moments, count)

    def graph(self, state: TrainState, **data: Any) -> Any:
        """Return the graph of a step, to explain and to save."""
        self._check_names(state, data)
        numbers = self._numbers(state.count + 1)
        return self.fused.graph(dict(state.parameters), state.moments, numbers, data)

    def _check_names(self, state: TrainState, data: Mapping[str, Any]) -> None:
        """Raise OperandError unless state and data have the arguments of the loss, each once."""
        shared = sorted(state.parameters.keys() & data)
        if shared:
            raise OperandError(
                f"Expected data that are no parameters, found {shared[0]}, which is one",
                hint="the state of a training has it",
            )
        try:
            self._signature.bind(**state.parameters, **data)
        except TypeError as error:
            missing = [name for name in self.names if name not in state.parameters]
            raise OperandError(
                f"Expected the data {', '.join(missing) or 'of no name'} for a step, found "
                f"{', '.join(data) or 'none'}: {error}",
                hint="as in step(state, X=X, y=y), by the names of the loss's arguments",
            ) from None

    def _numbers(self, count: int) -> dict[str, float]:
        """Return the numbers that the optimizer reads in a step, by the current settings."""
        settings = settings_of(self.optimizer, self.optimizer_name, self.settings)
        return self.optimizer.numbers(settings, count)


def _check_places(parameters: Mapping[str, Any]) -> None:
    """Raise OperandError for arrays that no step can change in place, or that are one memory."""
    for name, array in parameters.items():
        if not array.flags.writeable:
            raise OperandError(
                f"Expected parameters that can be changed in place, found {name}, which is "
                "read-only",
                hint=f"pass {name}.copy(), or leave out in_place=",
            )
    for one, other in combinations(parameters, 2):
        if np.shares_memory(parameters[one], parameters[other]):
            raise OperandError(
                "Expected parameters with memory of their own to change in place, found "
                f"{one} and {other}, which share some",
                hint=f"pass {other}.copy(), or leave out in_place=",
            )


class _Updated(FusedFunction):
    """The loss of parameters and data, of which the graph of a step is made.

    value  whether the loss is returned
    """

    value = True

    def __init__(
        self,
        loss: Callable[..., Any],
        optimizer: Optimizer,
        optimize: str,
        preferred: Preference,
        options: CallOptions,
    ) -> None:
        def call_loss(parameters: Any, state: Any, numbers: Any, data: Any) -> Any:
            return loss(**parameters, **data)

        super().__init__(call_loss, optimize, preferred, options)
        self.optimizer = optimizer

    def _inside(self, recorder: Recorder, args: Any, keywords: Any) -> Any:
        """Note a step in another trace: its value, its parameters and its state."""
        parameters, state, numbers, data = args
        value, gradients = gradients_inside(
            recorder,
            lambda stands: self.function(stands[PARAMETERS], state, numbers, data),
            {PARAMETERS: parameters},
            self.passes,
        )
        updated = {
            name: self._updated(parameters[name], gradient, numbers, state, name)
            for name, gradient in gradients[PARAMETERS].items()
        }
        return (
            value if self.value else None,
            {name: values["p"] for name, values in updated.items()},
            {kind: {name: values[kind] for name, values in updated.items()} for kind in state},
        )

    def _updated(
        self, parameter: Any, gradient: Any, numbers: Any, state: Any, name: str
    ) -> dict[str, Any]:
        """Return the new values of a traced parameter and its state."""
        values = {"p": parameter, "g": gradient, **numbers}
        values |= {kind: moments[name] for kind, moments in state.items()}
        for kind, text in self.optimizer.updates.items():
            values[kind] = _computed(parse_assignment(f"y = {text}").value, values)
        return values

    def _planned(
        self, trace: Trace, arguments: dict[str, Any], operands: tuple[Any, ...]
    ) -> GraphCall:
        """Choose the program that runs for a step."""
        check_number(trace)
        names = names_of(arguments)
        parameters, kinds = [*arguments[PARAMETERS]], self.optimizer.state
        leaves = dict(zip(parameters, names[PARAMETERS], strict=True))
        for name, leaf in leaves.items():
            if not is_used(trace, leaf):
                raise DerivativeError(
                    f"Expected parameters that the loss uses, found {name}, which it does not",
                    hint="leave it out of begin(): no step changes it",
                )
        moments = iter(names[STATE])
        states = {kind: {name: next(moments) for name in parameters} for kind in kinds}
        numbers = dict(zip(arguments[NUMBERS], names[NUMBERS], strict=True))
        first = int(self._has_value)
        places = iter(range(first, first + len(parameters) * (1 + len(kinds))))
        outputs = {n: {kind: Output(next(places)) for kind in (*kinds, "p")} for n in parameters}
        template = (
            Output(0) if self.value else None,
            {name: updated["p"] for name, updated in outputs.items()},
            {kind: {name: outputs[name][kind] for name in parameters} for kind in kinds},
        )
        derived = partial(self._derived, leaves, states, numbers)
        return call_of(
            replace(trace, template=template),
            operands,
            self.optimize,
            self.preferred,
            derived,
            self.passes,
            self.options,
        )

    @property
    def _has_value(self) -> bool:
        """Tell whether the loss is computed."""
        return self.value or not self.passes.loss_elimination

    def _derived(
        self,
        leaves: Mapping[str, str],
        states: Mapping[str, Mapping[str, str]],
        numbers: Mapping[str, str],
        graph: Graph,
    ) -> Graph:
        """Return the primitives of a step: loss, gradients, new states and parameters."""
        extended = with_gradients(graph, [*leaves.values()])
        builder = rebuilt(extended)
        outputs = [*extended.outputs[: self._has_value]]
        for (name, leaf), gradient in zip(leaves.items(), extended.outputs[1:], strict=True):
            values = {"p": leaf, "g": builder.renamed[gradient], **_typed(builder, numbers, leaf)}
            values |= {kind: moments[name] for kind, moments in states.items()}
            for kind in self._update(builder, values):
                builder.renamed[f"{kind} of {name}"] = values[kind]
                outputs.append(f"{kind} of {name}")
        builder.graph = replace(extended, outputs=tuple(outputs))
        rules = rules_of(self.passes)
        return with_own_gradients(with_views(rewritten(builder.finish(), rules), rules))

    def _update(self, builder: GraphBuilder, values: dict[str, str]) -> Sequence[str]:
        """Make the new values of a parameter and its state, in the place of the old ones."""
        for kind, text in self.optimizer.updates.items():
            values[kind] = build(builder, parse_assignment(f"y = {text}").value, values)
        return tuple(self.optimizer.updates)


def _computed(expr: Expr, values: Mapping[str, Any]) -> Any:
    """Compute an expression of numbers with arrays in their places."""
    match expr:
        case Access(tensor):
            return values[tensor]
        case Literal(value):
            return value
        case Call(operator, args):
            return operator.evaluate(*(_computed(arg, values) for arg in args))
    raise InternalError(f"an optimiser's text with {expr}")


def _typed(builder: GraphBuilder, numbers: Mapping[str, str], leaf: str) -> dict[str, str]:
    """Return numbers of a step in the real type of a parameter: kernels compute in float64 else."""
    dtype = str(np.zeros((), builder.facts[leaf].dtype).real.dtype)
    return {key: builder.number(Extent("value", (name,)), dtype) for key, name in numbers.items()}


def train_step(
    loss: Callable[..., Any],
    optimizer: str = "adam",
    *,
    in_place: bool = False,
    value: bool = True,
    optimize: str | None = None,
    price: Price | None = None,
    **settings: float,
) -> TrainStep:
    """Return a step of training: a loss, its gradients and the update as one graph.

    >>> def loss(w, X, y):
    ...     return ((X @ w - y) ** 2).mean()
    >>> step = tp.train_step(loss, optimizer="sgd", rate=0.5)
    >>> state = step.begin(w=np.zeros(1))
    >>> X, y = np.ones((4, 1)), np.full(4, 2.0)
    >>> for _ in range(3):
    ...     value, state = step(state, X=X, y=y)
    >>> value, state.parameters["w"]
    (np.float64(0.0), array([2.]))
    >>> [*tp.train_step(loss, in_place=True).settings]
    ['rate', 'beta1', 'beta2', 'epsilon', 'decay']

    loss       a function of arrays in NumPy style that returns one number
    optimizer  "sgd", "momentum" or "adam"
    in_place   whether the arrays of the parameters that `begin` was given are changed
    value      whether the loss is computed: without it, only as far as the gradients need it, and a
               step returns None for it
    optimize, price  how kernels are chosen and by which price, as `tp.fuse` has them; by default as
               of a fused function
    settings   of the optimiser: rate, decay (of weights), momentum, beta1, beta2, epsilon

    Raises OperandError for other optimisers and settings, DerivativeError where it is called for a
    loss without a derivative.
    """
    return TrainStep(loss, optimizer, settings, in_place, value, optimize, price)

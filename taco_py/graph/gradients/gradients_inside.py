"""Gradients inside of a traced function: nodes of its graph.

    tp.fuse(lambda x: x - rate * g(x))    →    the primitives of g's function and its gradient,
                                               then multiply, subtract

What the inner function computes of its arguments is noted in the trace around it. That part alone
is split into primitives and differentiated; what it reads of values around it is constant. So
gradients of gradients are those of primitives, to any order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taco_py.graph.capture.recorder import Recorder, is_operand
from taco_py.graph.capture.symbolic_size import Size
from taco_py.graph.capture.traced_array import TracedArray
from taco_py.graph.capture.traced_line import refuse, user_place
from taco_py.graph.fission.dense_values import is_dense
from taco_py.graph.fission.split_operators import split_operators
from taco_py.graph.gradients.gradient_graph import with_dense_gradients, with_gradients
from taco_py.graph.graph_builder import rebuilt
from taco_py.graph.nodes import Constant, Fact, Graph, Input, Node
from taco_py.graph.passes import Passes
from taco_py.graph.rules.rewrite import rewritten, rules_of
from taco_py.graph.samples import weak_name
from taco_py.language.diagnostics.errors import DerivativeError

UNKNOWN = "unknown"
"""The format of a value of sparse operands that may be stored sparse."""


def gradients_inside(
    recorder: Recorder,
    call: Callable[[Mapping[str, Any]], Any],
    wrt: Mapping[str, Any],
    passes: Passes,
) -> tuple[Any, dict[str, Any]]:
    """Note a function's value and its gradients by arguments, which have the arguments' structure.

    call  from what stands for the arguments by name to the function's result

    Raises DerivativeError.
    """
    begin = len(recorder.nodes)
    leaves: list[TracedArray] = []

    def stand_in(value: Any) -> Any:
        leaves.append(_argument(recorder, value))
        return leaves[-1]

    stands = {name: mapped(value, stand_in) for name, value in wrt.items()}
    counts = [len(_leaves(value)) for value in stands.values()]
    value = call(stands)
    names = [leaf.name for leaf in leaves]
    loss = _number(recorder, value, [*wrt])
    part = _part(recorder, begin, names, loss)
    _check_used(recorder, part, dict(zip(wrt, counts, strict=True)), names)
    made = iter(_noted(recorder, _derived(part, names, passes)))
    found = {name: mapped(each, lambda _: next(made)) for name, each in stands.items()}
    return value, found


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Put what a function makes of them in the places of arrays and numbers."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(each, function) for each in value))
    if isinstance(value, tuple | list):
        return type(value)(mapped(each, function) for each in value)
    if isinstance(value, dict):
        return {key: mapped(each, function) for key, each in value.items()}
    is_array = isinstance(value, TracedArray | Size) or weak_name(value) or is_operand(value)
    return function(value) if is_array and not isinstance(value, bool) else value


def _leaves(value: Any) -> list[Any]:
    found: list[Any] = []
    mapped(value, found.append)
    return found


def _argument(recorder: Recorder, value: Any) -> TracedArray:
    """What stands for an argument by which a gradient is taken."""
    if isinstance(value, Size) or weak_name(value):
        refuse(
            "Expected arrays for gradients, found a number of Python",
            "pass np.array(…) of it, or np.float64(…)",
            DerivativeError,
        )
    found: TracedArray = recorder.argument(value)
    if np.dtype(found.fact.dtype).kind not in "fc":
        refuse(
            f"Expected a real or complex operand for a gradient, found one of {found.fact.dtype}",
            "integers and booleans have no derivative",
            DerivativeError,
        )
    return found


def _number(recorder: Recorder, value: Any, names: Sequence[str]) -> str:
    """Return the name of the one real number that a function returns. Raises DerivativeError."""
    if isinstance(value, Size) or weak_name(value) or is_operand(value):
        _refuse_unused(names[0])
    if not isinstance(value, TracedArray):
        refuse(
            "Expected a function that returns one number for its gradients, found "
            f"{'several results' if isinstance(value, tuple | list | dict) else value!r}",
            "return the loss alone",
            DerivativeError,
        )
    fact = value.fact
    if fact.order or np.dtype(fact.dtype).kind == "c":
        refuse(
            f"Expected a function that returns one real number for its gradients, found {fact}",
            "return its sum or mean, of complex numbers that of np.abs(z)**2",
            DerivativeError,
        )
    return recorder.name_of(value)


def _refuse_unused(name: str) -> None:
    refuse(
        f"Expected arguments that the function uses for gradients, found {name}, which it does not",
        "leave it out of wrt=: its gradient is 0",
        DerivativeError,
    )


def _check_used(
    recorder: Recorder, part: Graph, counts: Mapping[str, int], names: Sequence[str]
) -> None:
    """Refuse arguments that a function does not read, unless gradients inside of it do."""
    read = {name for node in part.nodes for name in node.inputs} | {*part.outputs}
    read |= recorder.differentiated
    rest = iter(names)
    for name, count in counts.items():
        own = {next(rest) for _ in range(count)}
        if own.isdisjoint(read):
            _refuse_unused(name)
    recorder.differentiated |= _ancestors(recorder, [*names, *part.outputs, *read])


def _ancestors(recorder: Recorder, names: Sequence[str]) -> set[str]:
    """Return the values that values depend on, and these."""
    found = {*names}
    for node in reversed(recorder.nodes):
        if node.name in found:
            found.update(node.inputs)
    return found


# ---------------------------------------------------------------- the part that is differentiated


def _part(recorder: Recorder, begin: int, wrt: Sequence[str], loss: str) -> Graph:
    """Return the graph of what depends on arguments, over these and what it reads besides."""
    depends, nodes = {*wrt}, []
    for node in recorder.nodes[begin:]:
        if not depends.isdisjoint(node.inputs) and node.name not in depends:
            depends.add(node.name)
            nodes.append(node)
    own = {node.name for node in nodes}
    read = dict.fromkeys((*wrt, *(name for node in nodes for name in node.inputs), loss))
    constants = {each.name: each for each in recorder.constants.values()}
    numbers = {each.name: each for each in recorder.numbers.values()}
    inputs = tuple(
        Input(name, _known(recorder, name))
        for name in read
        if name not in own and name not in constants and name not in numbers
    )
    whole = Graph(inputs, tuple(constants.values()), tuple(numbers.values()), tuple(nodes), (loss,))
    return whole.needed


def _known(recorder: Recorder, name: str) -> Fact:
    """What is known of a value that a part reads; of one that may be sparse that it may be."""
    fact = recorder.facts[name]
    leaves: list[Input | Constant] = [*recorder.inputs, *recorder.constants.values()]
    if fact.sparsity or not any(each.fact.sparsity for each in leaves):
        return fact
    nodes = {node.name: node for node in recorder.nodes}
    while name in nodes and nodes[name].operator == "argument":
        (name,) = nodes[name].inputs
    graph = Graph(
        tuple(recorder.inputs), tuple(recorder.constants.values()),
        tuple(recorder.numbers.values()), tuple(recorder.nodes), (name,),
    )  # fmt: skip
    primitives = split_operators(graph.needed)
    builder = rebuilt(primitives)
    dense = is_dense(builder, builder.renamed[primitives.outputs[0]])
    return fact if dense else replace(fact, sparsity=UNKNOWN)


def _derived(part: Graph, wrt: Sequence[str], passes: Passes) -> Graph:
    """Return the primitives of the gradients of a part."""
    primitives = rewritten(split_operators(part, ("custom_derivative",)))
    found = with_gradients(primitives, wrt, again=True)
    found = replace(found, outputs=found.outputs[1:]).needed
    return with_dense_gradients(rewritten(found, rules_of(passes)), wrt)


def _noted(recorder: Recorder, graph: Graph) -> list[Any]:
    """Note the primitives of a graph, and return what stands for its results."""
    names = {each.name: each.name for each in graph.inputs}
    for constant in graph.constants:
        names[constant.name] = recorder.name_of(constant.value)
    for number in graph.numbers:
        names[number.name] = recorder.number(number.extent, number.fact)
    line = user_place()
    for node in graph.nodes:
        name = f"v{len(recorder.nodes)}"
        told = tuple(sorted((*node.attributes, ("primitive", node.operator))))
        inputs = tuple(names[each] for each in node.inputs)
        place = node.place or line
        recorder.nodes.append(Node(name, "primitive", inputs, told, node.fact, place, node.origin))
        recorder.facts[name] = node.fact
        names[node.name] = name
    return [recorder.traced(names[name], True) for name in graph.outputs]

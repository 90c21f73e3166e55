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
    gradients = iter(_noted(recorder, _derived(part, names, passes)))
    by_argument = {name: mapped(arg, lambda _: next(gradients)) for name, arg in stands.items()}
    return value, by_argument


def mapped(value: Any, function: Callable[[Any], Any]) -> Any:
    """Map a function over the arrays and numbers of a structure."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(element, function) for element in value))
    if isinstance(value, tuple | list):
        return type(value)(mapped(element, function) for element in value)
    if isinstance(value, dict):
        return {key: mapped(element, function) for key, element in value.items()}
    is_array = isinstance(value, TracedArray | Size) or weak_name(value) or is_operand(value)
    return function(value) if is_array and not isinstance(value, bool) else value


def _leaves(value: Any) -> list[Any]:
    leaves: list[Any] = []
    mapped(value, leaves.append)
    return leaves


def _argument(recorder: Recorder, value: Any) -> TracedArray:
    """Return the stand-in of an argument by which a gradient is taken."""
    if isinstance(value, Size) or weak_name(value):
        refuse(
            "Expected arrays for gradients, found a number of Python",
            "pass np.array(…) of it, or np.float64(…)",
            DerivativeError,
        )
    array: TracedArray = recorder.argument(value)
    if np.dtype(array.fact.dtype).kind not in "fc":
        refuse(
            f"Expected a real or complex operand for a gradient, found one of {array.fact.dtype}",
            "integers and booleans have no derivative",
            DerivativeError,
        )
    return array


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
        leaves = {next(rest) for _ in range(count)}
        if leaves.isdisjoint(read):
            _refuse_unused(name)
    recorder.differentiated |= _ancestors(recorder, [*names, *part.outputs, *read])


def _ancestors(recorder: Recorder, names: Sequence[str]) -> set[str]:
    """Return the values that values depend on, and these."""
    ancestors = {*names}
    for node in reversed(recorder.nodes):
        if node.name in ancestors:
            ancestors.update(node.inputs)
    return ancestors


# ---------------------------------------------------------------- the part that is differentiated


def _part(recorder: Recorder, begin: int, wrt: Sequence[str], loss: str) -> Graph:
    """Return the graph of values that depend on arguments, over these and its other inputs."""
    depends, nodes = {*wrt}, []
    for node in recorder.nodes[begin:]:
        if not depends.isdisjoint(node.inputs) and node.name not in depends:
            depends.add(node.name)
            nodes.append(node)
    members = {node.name for node in nodes}
    read = dict.fromkeys((*wrt, *(name for node in nodes for name in node.inputs), loss))
    constants = {constant.name: constant for constant in recorder.constants.values()}
    numbers = {number.name: number for number in recorder.numbers.values()}
    inputs = tuple(
        Input(name, _fact_in_part(recorder, name))
        for name in read
        if name not in members and name not in constants and name not in numbers
    )
    graph = Graph(inputs, tuple(constants.values()), tuple(numbers.values()), tuple(nodes), (loss,))
    return graph.pruned


def _fact_in_part(recorder: Recorder, name: str) -> Fact:
    """Return the facts of a value that a part reads; a possibly sparse value has an
    unknown format.
    """
    fact = recorder.facts[name]
    leaves: list[Input | Constant] = [*recorder.inputs, *recorder.constants.values()]
    if fact.sparsity or not any(leaf.fact.sparsity for leaf in leaves):
        return fact
    nodes = {node.name: node for node in recorder.nodes}
    while name in nodes and nodes[name].operator == "argument":
        (name,) = nodes[name].inputs
    graph = Graph(
        tuple(recorder.inputs), tuple(recorder.constants.values()),
        tuple(recorder.numbers.values()), tuple(recorder.nodes), (name,),
    )  # fmt: skip
    primitives = split_operators(graph.pruned)
    builder = rebuilt(primitives)
    dense = is_dense(builder, builder.renamed[primitives.outputs[0]])
    return fact if dense else replace(fact, sparsity=UNKNOWN)


def _derived(part: Graph, wrt: Sequence[str], passes: Passes) -> Graph:
    """Return the primitives of the gradients of a part."""
    primitives = rewritten(split_operators(part, ("custom_derivative",)))
    gradients = with_gradients(primitives, wrt, nested=True)
    gradients = replace(gradients, outputs=gradients.outputs[1:]).pruned
    return with_dense_gradients(rewritten(gradients, rules_of(passes)), wrt)


def _noted(recorder: Recorder, graph: Graph) -> list[Any]:
    """Note the primitives of a graph, and return the stand-ins of its results."""
    names = {leaf.name: leaf.name for leaf in graph.inputs}
    for constant in graph.constants:
        names[constant.name] = recorder.name_of(constant.value)
    for number in graph.numbers:
        names[number.name] = recorder.number(number.extent, number.fact)
    line = user_place()
    for node in graph.nodes:
        name = f"v{len(recorder.nodes)}"
        pairs = tuple(sorted((*node.attributes, ("primitive", node.operator))))
        inputs = tuple(names[operand] for operand in node.inputs)
        place = node.place or line
        recorder.nodes.append(Node(name, "primitive", inputs, pairs, node.fact, place, node.origin))
        recorder.facts[name] = node.fact
        names[node.name] = name
    return [recorder.traced(names[name], True) for name in graph.outputs]

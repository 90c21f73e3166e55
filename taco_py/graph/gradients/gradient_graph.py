"""From the graph of a number to the graph of the number and its gradients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from taco_py.graph.fission.dense_values import is_dense
from taco_py.graph.fission.separate_results import separate_copy, shown_value
from taco_py.graph.gradients.element_gradients import Pairs, kinks_above, sides_of_operand
from taco_py.graph.gradients.function_gradients import OF_FUNCTIONS
from taco_py.graph.gradients.primitive_gradients import cotangents_of
from taco_py.graph.graph_builder import GraphBuilder, rebuilt
from taco_py.graph.nodes import NOWHERE, Graph, Node, Origin
from taco_py.graph.view_operators import is_view
from taco_py.language.autodiff.sides import NO_SIDES, Sides
from taco_py.language.diagnostics.errors import DerivativeError

Contributions = dict[Sides, list[str]]
"""What the cotangent of a value is the sum of, by the sides of ties that the value is used on."""

MOST_SIDES = 8
"""How many times the cotangent of a value is made, at most, for the sides that it is used on."""

SUMS = Origin(derivative=True)
"""Of what adds the cotangents of a value that is read several times."""


def with_gradients(graph: Graph, wrt: Sequence[str], nested: bool = False) -> Graph:
    """Add the gradients of the first output by operands to the outputs, in reverse mode.

    graph   of primitives; the first output has no modes
    wrt     the names of operands
    nested  whether the gradients may be differentiated again

    The gradient of a sparse operand is taken where that stores something. Raises DerivativeError.
    """
    builder = rebuilt(graph)
    builder.nested = nested
    active = _active(graph, wrt)
    builder.active = {builder.renamed[name] for name in active}
    loss = graph.outputs[0]
    contributions: dict[str, Contributions] = {}
    if loss in active:
        dtype = graph.facts[loss].dtype
        contributions[loss] = {NO_SIDES: [builder.literal(np.dtype(dtype).type(1))]}
    kinks = kinks_above(builder)
    for node in reversed(graph.nodes):
        if node.name in active:
            for sides, cotangents in _few(contributions.pop(node.name, {})).items():
                _contribute(builder, node, sides, cotangents, active, kinks, contributions)
    gradients = []
    for name in wrt:
        builder.origin = SUMS
        parts = [*chain.from_iterable(contributions.get(name, {}).values())]
        gradients.append(_of_operand(builder, name, parts))
    for name, gradient in zip(wrt, gradients, strict=True):
        builder.renamed[f"d_{name}"] = gradient
    outputs = (*graph.outputs, *(f"d_{name}" for name in wrt))
    builder.graph = replace(graph, outputs=outputs)
    return builder.finish()


def _few(contributions: Contributions) -> Contributions:
    """Keep sides separate where they are few, else only their common part."""
    if len(contributions) <= MOST_SIDES:
        return contributions
    common = frozenset.intersection(*contributions)
    return {common: [*chain.from_iterable(contributions.values())]}


def _contribute(
    builder: GraphBuilder,
    node: Node,
    sides: Sides,
    cotangents: Sequence[str],
    active: Collection[str],
    kinks: Mapping[str, Pairs],
    contributions: dict[str, Contributions],
) -> None:
    """Add a node's contributions to the cotangents of its operands."""
    builder.origin, builder.sides = SUMS, sides
    cotangent = _sum(builder, cotangents)
    value, inputs = builder.renamed[node.name], [builder.renamed[source] for source in node.inputs]
    rule = OF_FUNCTIONS.get(node.get("rule"), cotangents_of)
    for place, name in rule(builder, node, inputs, value, cotangent):
        operand = node.inputs[place]
        if operand in active:
            below = sides_of_operand(builder, node, inputs, place)
            below &= kinks.get(inputs[place], NO_SIDES)
            contributions.setdefault(operand, {}).setdefault(below, []).append(name)


def _active(graph: Graph, wrt: Sequence[str]) -> set[str]:
    """Return the real and complex values that depend on operands."""
    values = {*wrt}
    for node in graph.nodes:
        if not values.isdisjoint(node.inputs) and np.dtype(node.dtype).kind in "fc":
            values.add(node.name)
    return values


def is_read(graph: Graph, name: str) -> bool:
    """Tell whether anything depends on a value."""
    return name in graph.outputs or any(name in node.inputs for node in graph.nodes)


def _sum(builder: GraphBuilder, names: Sequence[str]) -> str:
    """Add cotangents; of one that comes several times, as of x * x, multiply it."""
    total = ""
    for name, times in Counter(names).items():
        term = name if times == 1 else builder.map("multiply", name, builder.literal(float(times)))
        total = builder.map("add", total, term) if total else term
    return total


def _of_operand(builder: GraphBuilder, name: str, contributions: Sequence[str]) -> str:
    """Return the gradient of an operand, in its type."""
    fact = builder.facts[name]
    kind = np.dtype(fact.dtype).kind
    if kind not in "fc":
        raise DerivativeError(
            f"Expected a real or complex operand for a gradient, found {name} of type {fact.dtype}",
            hint="integers and booleans have no derivative",
        )
    if not contributions:
        gradient = builder.literal(np.dtype(fact.dtype).type(0))
    else:
        gradient = _sum(builder, contributions)
    if kind != "c" and builder.facts[gradient].dtype.startswith("complex"):
        gradient = builder.map("real", gradient)
    if fact.sparsity:
        builder.origin = NOWHERE  # a gradient that is 0 has the operand's pattern too
        pattern = builder.map("stored", name, dtype="bool")
        return builder.map("multiply", pattern, gradient, dtype=fact.dtype)
    return _in_full_shape(builder, gradient, name)


def _in_full_shape(builder: GraphBuilder, gradient: str, name: str) -> str:
    """Return a gradient of an operand's shape and type, also where it is one number."""
    fact = builder.facts[name]
    dtype = {"float": "float64", "complex": "complex128"}.get(fact.dtype, fact.dtype)
    if builder.facts[gradient].dtype != dtype:
        options = {"call": "astype", "dtype": dtype}
        gradient = builder.add(
            "numpy", (gradient,), builder.facts[gradient].shape, dtype, **options
        )
    if builder.facts[gradient].order < fact.order:
        gradient = builder.add("numpy", (gradient,), fact.shape, dtype, call="broadcast_to")
    return gradient


def with_dense_gradients(graph: Graph, wrt: Sequence[str]) -> Graph:
    """Make arrays of the gradients of arrays that may be sparse, which are the last outputs."""
    builder = rebuilt(graph)
    facts = {leaf.name: leaf.fact for leaf in graph.inputs}
    formats = {leaf.fact.sparsity for leaf in graph.leaves if leaf.fact.sparsity}
    by_rows = all(form.startswith("d") for form in formats) and len(formats) == 1
    first = len(graph.outputs) - len(wrt)
    outputs = []
    for place, name in enumerate(graph.outputs):
        gradient = builder.renamed[name]
        sparse = place < first or facts[wrt[place - first]].sparsity
        if not sparse and not (
            is_dense(builder, gradient) and (by_rows or gradient not in builder.sparse)
        ):
            fact = builder.facts[gradient]
            gradient = builder.add("numpy", (gradient,), fact.shape, fact.dtype, call="to_dense")
        builder.renamed[f"out{place}"] = gradient
        outputs.append(f"out{place}")
    builder.graph = replace(graph, outputs=tuple(outputs))
    return builder.finish()


def _has_all_memory(nodes: Mapping[str, Node], name: str) -> bool:
    """Tell whether a result has an element for each one of the value that it shows."""
    while is_view(nodes[name]) and nodes[name].get("call") == "reshape":
        (name,) = nodes[name].inputs
    return not is_view(nodes[name])


def with_own_gradients(graph: Graph) -> Graph:
    """Copy results that would share memory with an operand or with each other."""
    nodes, computed = [*graph.nodes], graph.by_name
    bases: set[str] = set()
    outputs: list[str] = []
    for place, name in enumerate(graph.outputs):
        base = shown_value(computed, name)
        if base not in computed or base in bases or not _has_all_memory(computed, name):
            nodes.append(separate_copy(name, graph.facts[name], place))
            name = nodes[-1].name
        bases.add(base)
        outputs.append(name)
    return replace(graph, nodes=tuple(nodes), outputs=tuple(outputs))

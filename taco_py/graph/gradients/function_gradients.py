"""The derivatives of whole functions that take less, or round less, than those of their parts.

softmax        y, g          →   y * (g - sum(y * g))
log_softmax    y, g          →   g - exp(y) * sum(g)
logsumexp      x, y, g       →   exp(x - y) * g
cross_entropy  logp, y, g    →   (exp(logp) - y) * g,  y a truth or a probability for each class
relu           x, g          →   where(x > 0, g, 0)
dropout        m, g          →   g * m,  m computed again, not stored

An operator `custom_derivative` names its entry: its first input is the value, whose own parts have
no cotangent then, the second one what it is differentiated by, others are what the entry reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from taco_py.graph.gradients.primitive_gradients import Rule, over_elements
from taco_py.graph.graph_builder import LAYOUTS, GraphBuilder
from taco_py.graph.nodes import Node, Origin

Cotangents = Iterator[tuple[int, str]]


def _softmax(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Cotangents:
    scaled = builder.map("multiply", value, cotangent)
    sums = _sums(builder, node, scaled)
    yield 1, builder.map("multiply", value, builder.map("subtract", cotangent, sums))


def _log_softmax(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Cotangents:
    shares = builder.map("exp", value)
    sums = _sums(builder, node, cotangent)
    yield 1, builder.map("subtract", cotangent, builder.map("multiply", shares, sums))


def _logsumexp(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Cotangents:
    over = over_elements(builder, node, inputs[1], value)
    shares = builder.map("exp", builder.map("subtract", inputs[1], over))
    yield 1, builder.map("multiply", shares, over_elements(builder, node, inputs[1], cotangent))


def _cross_entropy(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Cotangents:
    """Return inputs are the losses, the logits, their logarithms of probabilities, and the
    labels."""
    _, logits, logp, labels = inputs
    difference = builder.map("subtract", builder.map("exp", logp), labels)
    yield 1, builder.map("multiply", difference, over_elements(builder, node, logits, cotangent))


def _relu(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Cotangents:
    zero = builder.literal(0)
    yield 1, builder.map("where", builder.map("greater", inputs[1], zero), cotangent, zero)


def _dropout(
    builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
) -> Cotangents:
    yield 1, builder.map("multiply", cotangent, _recomputed(builder, inputs[2], {}))


def _recomputed(builder: GraphBuilder, name: str, copies: dict[str, str]) -> str:
    """Return a value computed again by functions of elements, where it would be one node with the
    first: as many operations as its bytes take to write and to read."""
    node = builder.nodes.get(name)
    if node is None or node.operator not in ("map", *LAYOUTS):
        return name
    if name not in copies:
        inputs = [_recomputed(builder, operand, copies) for operand in node.inputs]
        attributes = dict(node.attributes) | ({"again": True} if node.operator == "map" else {})
        copies[name] = builder.add(node.operator, inputs, node.shape, node.dtype, **attributes)
    return copies[name]


def _sums(builder: GraphBuilder, node: Node, name: str) -> str:
    """Return the sums of a value over the axes of a function, at each of its elements."""
    axes, dtype = node.get("axes"), builder.facts[name].dtype
    return over_elements(builder, node, name, builder.reduce("sum", name, axes, dtype))


def _placed(rule: Rule) -> Rule:
    """Return a rule whose primitives are parts of a function's derivative."""

    def placed_rule(
        builder: GraphBuilder, node: Node, inputs: Sequence[str], value: str, cotangent: str
    ) -> Cotangents:
        builder.place, builder.origin = node.place, Origin(node.origin.operator, derivative=True)
        yield from rule(builder, node, inputs, value, cotangent)

    return placed_rule


OF_FUNCTIONS: Mapping[str, Rule] = MappingProxyType({
    "softmax": _placed(_softmax), "log_softmax": _placed(_log_softmax),
    "logsumexp": _placed(_logsumexp), "cross_entropy": _placed(_cross_entropy),
    "dropout": _placed(_dropout), "relu": _placed(_relu),
})  # fmt: skip
"""By the names that operators `custom_derivative` have for them."""

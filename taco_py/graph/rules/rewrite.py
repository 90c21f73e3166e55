"""Rules tried on each primitive of a graph, in order, until none fits.

Equal primitives are one in each graph that is made: common subexpressions need no rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from taco_py.graph.graph_builder import GraphBuilder
from taco_py.graph.nodes import Graph
from taco_py.graph.passes import Passes
from taco_py.graph.rules import (
    algebra,
    cancelled_sums,
    factors_of_sums,
    fold_numbers,
    join_layouts,
    join_products,
    join_scatters,
    slice_before,
    slice_of_concatenate,
    sum_into_product,
    transpose_after,
    transpose_of_product,
    values_at_mask,
    zero_terms,
)
from taco_py.graph.rules.base import GraphRule
from taco_py.graph.rules.slice_tiles import are_disjoint
from taco_py.graph.view_operators import is_view

CATALOGUE: tuple[GraphRule, ...] = (
    join_layouts.RULE,  # before others look at operands
    algebra.RULE,  # others have less to look at
    fold_numbers.RULE,  # what is spread over arrays is there then
    slice_before.RULE,  # what nobody reads needs no other rule
    slice_of_concatenate.RULE,  # slices of what is left: derivatives are of these
    transpose_after.RULE,
    transpose_of_product.RULE,  # what has no other reader after them
    sum_into_product.RULE,  # while products are as the user wrote them
    join_products.RULE,
    join_scatters.RULE,
    values_at_mask.RULE,
)
"""The rules of graphs, each after those that make sites for it."""

OF_DERIVATIVES: tuple[GraphRule, ...] = (
    *CATALOGUE[: CATALOGUE.index(sum_into_product.RULE)],
    cancelled_sums.RULE,  # while sums are as derivatives have them
    zero_terms.RULE,  # what cancels is a term, or a factor, of others
    factors_of_sums.RULE,
    *CATALOGUE[CATALOGUE.index(sum_into_product.RULE) :],
)
"""The rules of graphs with derivatives: some are for what derivatives add alone."""

MOST_ROUNDS = 16


def rules_of(passes: Passes) -> tuple[GraphRule, ...]:
    """Return the rules of graphs with derivatives."""
    return OF_DERIVATIVES if passes.reduction_elimination else CATALOGUE


def rewritten(graph: Graph, rules: Sequence[GraphRule] = CATALOGUE) -> Graph:
    """Return a graph of primitives after the rules."""
    for _ in range(MOST_ROUNDS):
        after, has_changed = _apply_rules_once(graph, rules)
        if not has_changed:
            return after
        graph = after
    return graph


def _apply_rules_once(graph: Graph, rules: Sequence[GraphRule]) -> tuple[Graph, bool]:
    builder = GraphBuilder(graph)
    uses, handed, sliced = _uses(graph), _handed(graph), _sliced(graph)
    has_changed = False
    for node in graph.nodes:
        builder.place, builder.origin = node.place, node.origin
        name = builder.copy(node)
        builder.note(name, uses[node.name], node.name in handed)
        if node.name in sliced:
            builder.sliced.add(name)
        for rule in rules:
            current = builder.nodes.get(name)
            replacement = None if current is None else rule.apply(builder, current)
            if replacement is not None and replacement != name:
                name, has_changed = replacement, True
                builder.note(name, uses[node.name], node.name in handed)
        builder.renamed[node.name] = name
    return builder.finish(), has_changed


def _uses(graph: Graph) -> Counter[str]:
    """Return how often each value is read, or is a result."""
    read = Counter(graph.outputs)
    for node in graph.nodes:
        read.update(node.inputs)
    return read


def _sliced(graph: Graph) -> set[str]:
    """Return the values that are read in slices alone, which have no element in common."""
    names = set()
    for name, nodes in graph.readers().items():
        slices = all(node.get("call") == "slice" for node in nodes)
        if slices and len(nodes) > 1 and name not in graph.outputs:
            keys = [tuple(e for e in node.get("key") if e != ("new",)) for node in nodes]
            if are_disjoint(keys):
                names.add(name)
    return names


def _handed(graph: Graph) -> set[str]:
    """Return the values that reach the caller, as they are or in a view."""
    names = {*graph.outputs}
    for node in reversed(graph.nodes):
        if is_view(node) and node.name in names:
            names.update(node.inputs)
    return names

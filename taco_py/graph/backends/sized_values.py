"""What is known of all values of a graph in a call, and which of them backends may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.arguments.learned_price import ANALYTIC, Price
from taco_py.graph.backends.backend import UNKNOWN, Facts, ValueFacts
from taco_py.graph.extents import Extent, compiled
from taco_py.graph.nodes import Graph, Node
from taco_py.graph.run.partition_by_stages import base_of
from taco_py.graph.selection.graph_dag import GraphDag, dag_of_graph
from taco_py.graph.selection.region_price import RegionPrices, prices_of


@dataclass(frozen=True, slots=True, eq=False)
class SizedValues:
    """A graph at the sizes of a call.

    dag     its primitives, with all leaves as arguments
    facts   of all values by their names
    prices  what kernels are expected to take
    """

    graph: Graph
    dag: GraphDag
    facts: Facts
    prices: RegionPrices

    def name_of(self, argument: int) -> str:
        """Return the name of an argument of a primitive: of a node or of a leaf."""
        if argument >= 0:
            return self.dag.nodes[argument].name
        return self.graph.leaves[~argument].name

    def is_free(self, primitive: int) -> bool:
        """Tell whether a primitive gives a dense array of which all elements are asked for."""
        name = self.dag.nodes[primitive].name
        return not self.facts[name].sparsity and not self.prices.is_asked_for_few(name)

    def bytes_of(self, names: Sequence[str]) -> float:
        """Return the bytes of values' elements."""
        facts = (self.facts[name] for name in names)
        return sum(fact.entries * np.dtype(fact.dtype).itemsize for fact in facts)


def sized_values(graph: Graph, operands: Sequence[Any], price: Price = ANALYTIC) -> SizedValues:
    """Compute the facts of a graph's values for the sizes of operands.

    price  by which kernels are priced

    Raises TacoError for operands that do not fit.
    """
    dag = dag_of_graph(graph, graph.leaves)
    prices = prices_of(dag, operands, price)
    facts = graph.facts
    extents: list[Extent] = [extent for fact in facts.values() for extent in fact.shape]
    sizes = iter(compiled(extents, [leaf.name for leaf in graph.inputs])(*operands))
    by_name = graph.by_name
    literals = {e.name: e.value for e in graph.constants if not e.fact.shape}
    values: dict[str, ValueFacts] = {}
    for name, fact in facts.items():
        shape = tuple(int(next(sizes)) for _ in fact.shape)
        base = base_of(by_name, name)
        stored = prices.stored.get(base)
        sparsity = UNKNOWN if _is_unknown(by_name.get(name), values) else ""
        sparsity = sparsity if stored is None else str(stored.format)
        entries = float(prod(shape)) if stored is None else prices.operand_facts[base].stored
        fill = 0 if stored is None or stored.fill is None else stored.fill
        dtype = str(np.dtype(fact.dtype))
        values[name] = ValueFacts(shape, dtype, sparsity, entries, literals.get(name), fill)
    return SizedValues(graph, dag, values, prices)


def _is_unknown(node: Node | None, facts: Facts) -> bool:
    """Tell whether NumPy's functions of sparse arrays decide whether a value is sparse."""
    if node is None or node.get("call") == "to_dense":
        return False
    read = [facts[name].sparsity for name in node.inputs]
    return UNKNOWN in read or (node.operator == "numpy" and any(read))


Key = Callable[[Sequence[Any]], tuple[Any, ...]]


def key_of_sizes(graph: Graph) -> Key:
    """Make the function from operands to the key of a choice: sizes, and bits of entries."""
    names = [leaf.name for leaf in graph.inputs]
    extents = dict.fromkeys(
        extent
        for fact in graph.facts.values()
        for extent in fact.shape
        if extent.constant is None
    )  # fmt: skip
    sizes = compiled(list(extents), names)
    sparse = [place for place, leaf in enumerate(graph.inputs) if leaf.fact.sparsity]
    if not sparse:
        return lambda operands: sizes(*operands)
    return lambda operands: (
        *sizes(*operands), *(int(operands[k].nnz).bit_length() for k in sparse)
    )  # fmt: skip

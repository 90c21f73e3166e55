"""What a partition by traffic is told of the values of a graph: their bytes, and what is together.

S = where(M, Q @ K.T, 0), M sparse     →   Q @ K.T and where together; bytes of what is stored
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.selection.graph_dag import GraphDag
from taco_py.graph.selection.region_price import RegionPrices
from taco_py.language.legal.stored import count_lists
from taco_py.planner.ir.nodes import Operand


def traffic_of(dag: GraphDag, prices: RegionPrices) -> tuple[float, ...]:
    """Return the bytes of each primitive's value for the operands of a call."""
    return tuple(bytes_expected(prices.operand_facts[node.name]) for node in dag.nodes)


def bytes_expected(value: Operand) -> float:
    """Return the bytes that a value takes, with a coordinate for each entry of each sparse mode.

    200 entries of a CSR matrix of float64   →   200 · (8 + 4)
    """
    kind = value.type
    index = count_lists(kind.format) * np.dtype(kind.index_dtype).itemsize
    return value.stored * (np.dtype(kind.element).itemsize + index)


def asked_together(dag: GraphDag, prices: RegionPrices) -> Iterator[tuple[int, int]]:
    """Yield a dense value of which sparse ones ask for few elements, with each of its readers."""
    for p, node in enumerate(dag.nodes):
        if prices.is_asked_for_few(node.name):
            for q in bits(dag.dag.successors[p]):
                yield p, q

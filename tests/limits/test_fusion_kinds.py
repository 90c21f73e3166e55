"""The greedy search finds the partition of brute force on the chain that DeepCuts fuses.

convolution, norm, activation, convolution of 1 by 1, norm: simple operators join the complex one
before them, and the two complex ones stay apart where a kernel of both would compute again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taco_py as tp
from taco_py.graph.orchestrate.choosers import CHOOSERS
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.run.graph_program import MANY_CALLS
from taco_py.graph.selection import strategies
from taco_py.graph.traced_graph import TracedGraph

Sizes = tuple[int, int, int, int]


def layers(patches: Any, kernel: Any, g1: Any, b1: Any, pointwise: Any, g2: Any, b2: Any) -> Any:
    """A convolution as a product with its patches, and what follows it."""
    first = np.maximum((patches @ kernel) * g1 + b1, 0.0)
    return (first @ pointwise) * g2 + b2


def operands(sizes: Sizes) -> tuple[Any, ...]:
    places, taps, channels, out = sizes
    rng = np.random.default_rng(0)
    shapes = (
        (places, taps), (taps, channels), (channels,), (channels,),
        (channels, out), (out,), (out,),
    )  # fmt: skip
    return tuple(rng.random(shape) - 0.5 for shape in shapes)


def partitions(graph: TracedGraph) -> dict[str, tuple[float, list[set[int]]]]:
    """The cost and the members of the kernels that each chooser takes."""
    choosing, _ = strategies._prepare_choice(graph.primitives, graph.operands, MANY_CALLS)
    found = {}
    for name in ("greedy", "exact"):
        choice = CHOOSERS[name](choosing.dag.dag, choosing.candidates, choosing.price)
        found[name] = choice.cost, [set(bits(each.members)) for each in choice.kernels]
    return found


@pytest.mark.parametrize("sizes", [(64, 27, 16, 8), (400, 144, 64, 96)])
def test_the_greedy_search_finds_the_partition_of_brute_force(sizes: Sizes) -> None:
    given = operands(sizes)
    fused = tp.fuse(layers, optimize="greedy")
    np.testing.assert_allclose(fused(*given), layers(*given), rtol=1e-9)
    graph = fused.graph(*given)
    found = partitions(graph)
    assert found["greedy"] == found["exact"]
    expected = {a.strategy: a.expected for a in graph.call.decision.alternatives}
    assert expected["greedy"] == pytest.approx(found["exact"][0])

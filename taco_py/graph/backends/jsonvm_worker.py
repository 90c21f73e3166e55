"""What the process of `jsonvm` answers: regions that it is sent as JSON, interpreted by NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from codegen.records import dataclass
from taco_py.graph.backends.interpret_region import Interpreted, interpreted
from taco_py.graph.nodes import Graph
from taco_py.graph.read_graphs import read_graph


@dataclass(slots=True, eq=False)
class _SentRegions:
    """The regions that a process was sent."""

    regions: dict[int, tuple[Interpreted, Mapping[str, Any]]] = field(default_factory=dict)


SENT = _SentRegions()


def answer(
    head: Mapping[str, Any], arrays: Sequence[np.ndarray[Any, Any]]
) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """Compile or compute a region, as a message asks."""
    if head["do"] == "compile":
        graph = read_graph(head["graph"])
        constants = {constant.name: constant.value for constant in graph.constants}
        SENT.regions[head["region"]] = interpreted(graph), constants
        return {}, ()
    if head["do"] == "run":
        region, bound = SENT.regions[head["region"]]
        return {}, region.run(bound, _as_passed(region.graph, arrays))
    return {}, ()


def _as_passed(graph: Graph, arrays: Sequence[Any]) -> list[Any]:
    """Return Python's numbers where the region reads such."""
    return [
        value.item() if leaf.fact.weak else value
        for leaf, value in zip(graph.inputs, arrays, strict=True)
    ]

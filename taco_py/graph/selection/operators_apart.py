"""Operators that have several primitives in kernels of their own, the rest in stages around them.

    exp(x @ W), log_softmax of it, its derivative   →   four kernels: what an operator is made of,
                                                        and its derivative, fuses with no other

What a graph takes without decomposition into primitives, to compare with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from taco_py.graph.nodes import Graph, Origin
from taco_py.graph.orchestrate.candidate_kernels import make_kernel
from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import Dag, bits
from taco_py.graph.run.partition_by_stages import Region
from taco_py.graph.selection.graph_dag import GraphDag, dag_of_graph
from taco_py.graph.selection.stages_around import staged


def operators_apart(graph: Graph) -> tuple[Region, ...]:
    """Return the regions in the order in which they run."""
    dag = dag_of_graph(graph)
    regions: list[int] = []
    for group in _groups(dag):
        regions += _pieces(dag.dag, regions, group)
    runs = staged(dag.dag, regions)
    return dag.regions(make_kernel(dag.dag, run.members) for run in runs)


def _groups(dag: GraphDag) -> Iterator[int]:
    """Yield the primitives of each operator that has several, and of its derivative."""
    alone = dag.dag.flagged("alone")
    members: dict[Origin, int] = {}
    for p, node in enumerate(dag.nodes):
        if node.origin.operator and not alone >> p & 1:
            members[node.origin] = members.get(node.origin, 0) | 1 << p
    counts = Counter({origin.operator: m.bit_count() for origin, m in members.items()
                      if not origin.derivative})  # fmt: skip
    for origin, group in members.items():
        if counts[origin.operator] > 1:
            yield group


def _pieces(dag: Dag, regions: list[int], group: int) -> list[int]:
    """Return a group in as few parts as can each run as one step."""
    pieces: list[int] = []
    for p in bits(group):
        union = (pieces[-1] if pieces else 0) | 1 << p
        if pieces and contract(dag, [*regions, *pieces[:-1], union]) is None:
            pieces.append(1 << p)
        else:
            pieces[-1:] = [union]
    return pieces

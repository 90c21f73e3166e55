"""The table of ways to choose kernels, all behind one signature.

choose("orchestrate", dag, price)  →  Choice(kernels in order, cost, recomputed, statistics)
"""

from __future__ import annotations

from functools import partial
from types import MappingProxyType

from taco_py.graph.orchestrate.candidate_kernels import Limits, find_candidates
from taco_py.graph.orchestrate.dag import Dag
from taco_py.graph.orchestrate.exact_search import search_exactly
from taco_py.graph.orchestrate.kernel_choice import Choice, Chooser, Price
from taco_py.graph.orchestrate.orchestrate_graph import orchestrate
from taco_py.graph.orchestrate.partition.choose_partition import choose_partition
from taco_py.graph.orchestrate.partition_search import search_partitions
from taco_py.language.diagnostics.errors import ScheduleError

CHOOSERS: MappingProxyType[str, Chooser] = MappingProxyType(
    {
        "orchestrate": orchestrate,
        "once": partial(orchestrate, recompute=False),
        "partition": choose_partition,
        "greedy": search_partitions,
        "exact": search_exactly,
    }
)
"""By name: the binary program, the same without recomputation, the partition that saves the most
traffic, DeepCuts' search, brute force."""


def choose(name: str, dag: Dag, price: Price, limits: Limits | None = None) -> Choice:
    """Choose the kernels of a graph by a chooser of the table.

    Raises ScheduleError for a name that is not in it.
    """
    if name not in CHOOSERS:
        raise ScheduleError(
            f"Expected one of {', '.join(CHOOSERS)} to choose kernels, found {name!r}"
        )
    return CHOOSERS[name](dag, find_candidates(dag, limits), price)

"""Stages of kernels around regions that something else computes.

    a + b → [region of a backend] → exp(v2) / v3      →   kernels, the region, kernels

As `partition_by_stages`, with regions in the place of single calls of NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence

from codegen.records import dataclass
from taco_py.graph.orchestrate.convexity import contract
from taco_py.graph.orchestrate.dag import Dag


@dataclass(frozen=True, slots=True)
class StagedRun:
    """Primitives that run together, by their mask.

    kernel  whether kernels compute them
    place   of the region among those that were given, -1 for none of them
    """

    members: int
    kernel: bool
    place: int = -1


def staged(dag: Dag, regions: Sequence[int], subset: int | None = None) -> list[StagedRun]:
    """Return the steps in order: regions, kernels between them, and primitives that no kernel
    computes.

    subset  the primitives that are asked for, all where it is left out; regions lie in them
    """
    members = dag.all if subset is None else subset
    order = [group & members for group in contract(dag, regions) or () if group & members]
    separate = dag.flagged("alone")
    for region in regions:
        separate |= region
    stages = _stages(dag, order, separate)
    runs = []
    for stage in sorted({*stages.values()}):
        groups = [group for group in order if stages[group] == stage]
        if stage % 2 == 0:
            runs.append(StagedRun(sum(groups), True))
        else:
            runs += [
                StagedRun(group, False, regions.index(group) if group in regions else -1)
                for group in groups
            ]
    return runs


def _stages(dag: Dag, order: Sequence[int], solo: int) -> dict[int, int]:
    """Return the stage of each group: kernels in even ones, as late as their readers allow."""
    stages: dict[int, int] = {}
    for group in order:
        reads = dag.reads(group)
        before = max((stages[producer] for producer in stages if producer & reads), default=-1)
        stages[group] = before + (1 - before % 2) if group & solo else max(before + before % 2, 0)
    for group in reversed(order):
        if not group & (solo | dag.outputs):
            (p,) = (group.bit_length() - 1,)
            after = min((stages[e] for e in order if e & dag.successors[p]), default=None)
            if after is not None:
                stages[group] = max(stages[group], after - after % 2)
    return stages

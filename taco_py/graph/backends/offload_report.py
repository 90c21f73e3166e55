"""Which regions of a graph backends compute at the sizes of a call, and why, as text.

offload   own 3.2e-02 s, with backends 2.1e-02 s
  blas      p0 contract: pays: saves 0.009 s, launch 1e-05 s, transfer 0 s
  jsonvm    p3 exp: host: saves 6.1e-06 s, launch 0.0002 s, transfer 1.5e-06 s
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from taco_py.graph.backends.offload import Offload, SizedProgram
from taco_py.graph.backends.offload_choice import OffloadChoice
from taco_py.graph.backends.offloaded_run import OffloadedRun
from taco_py.graph.nodes import Node
from taco_py.graph.orchestrate.dag import bits
from taco_py.graph.orchestrate.offload_regions import RegionDecision
from taco_py.graph.run.graph_program import GraphProgram, KernelRun, NumpyRun
from taco_py.graph.view_operators import free_views


def count_runs(program: GraphProgram) -> str:
    """Count the kernel calls, calls of NumPy, views and regions of backends of a program.

    Views take no copy; positions are operands of kernels, which are checked.
    """
    kernels = sum(isinstance(step, KernelRun) for step in program.steps)
    offloaded = sum(isinstance(step, OffloadedRun) for step in program.steps)
    free = free_views(program.graph)
    runs = [*program.views, *(step for step in program.steps if isinstance(step, NumpyRun))]
    views = sum(run.node.name in free for run in runs)
    numpy = sum(step.node.name not in free for step in program.steps if isinstance(step, NumpyRun))
    positions = len(runs) - views - numpy
    line = f"{kernels} kernel calls, {numpy} calls of NumPy"
    line += f", {views} views" if views else ""
    line += f", {positions} arrays of positions" if positions else ""
    return f"{line}, {offloaded} regions of backends" if offloaded else line


def describe_offload(offload: Offload, program: SizedProgram) -> Iterator[str]:
    """Describe the decision about each region that a backend could compute."""
    choice = program.choice
    names = ", ".join(backend.name for backend in offload.preferred.backends)
    if choice is None:
        yield f"offload   nothing to {names}: there are no prices"
        return
    if choice.regions and isfinite(choice.host):
        yield f"offload   own {choice.host:.2e} s, with backends {choice.total:.2e} s"
    else:
        yield f"offload   {len(choice.regions)} regions to {names}"
    for decision in choice.decisions:
        yield f"  {decision.region.target:9} {_decided(choice, decision)}"
    for backend in offload.preferred.backends:
        if backend.health.out:
            yield f"  {backend.name:9} is left out: {backend.health.out}"
        elif not any(decision.region.target == backend.name for decision in choice.decisions):
            yield f"  {backend.name:9} supports no primitive that is left to it"


def _decided(choice: OffloadChoice, decision: RegionDecision) -> str:
    nodes = [choice.values.dag.nodes[p] for p in bits(decision.region.members)]
    patterns = [a.match.pattern for a in decision.region.atoms if a.match is not None]
    names = ", ".join(map(_describe_node, nodes))
    places = ", ".join(dict.fromkeys(node.place for node in nodes if node.place))
    composites = f" as {', '.join(patterns)}" if patterns else ""
    return f"{names}{composites}  {places}: {decision.reason}"


def _describe_node(node: Node) -> str:
    return f"{node.name} {node.get('function') or node.get('call') or node.operator}"


def describe_step(step: OffloadedRun) -> str:
    """Describe the primitives that a step computes, or why the host does it instead."""
    names = ", ".join(node.name for node in step.nodes)
    backend, task = step.task.backend, step.task
    if task.is_left_out:
        return f"the host computes {names} for {backend.name}: {task.failed or backend.health.out}"
    shared = "in this process" if not backend.bytes_per_second else "which values are moved to"
    return f"{backend.name} computes {names}, {shared}; calls so far: {task.calls}"

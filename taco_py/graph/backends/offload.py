"""A graph whose regions backends may compute: chosen for the sizes of each call, and remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codegen.records import dataclass
from codegen.runtime.memo import Memo
from taco_py.arguments.options import CallOptions
from taco_py.graph.backends.backend import Backend
from taco_py.graph.backends.offload_choice import (
    BackendFaultError,
    OffloadChoice,
    choose_offload,
)
from taco_py.graph.backends.offloaded_run import OffloadedRun, OffloadedTask, tell
from taco_py.graph.backends.region_graph import RegionGraph, in_sizes, region_graph
from taco_py.graph.backends.registered import Preference
from taco_py.graph.backends.sized_values import SizedValues, key_of_sizes, sized_values
from taco_py.graph.extents import compiled
from taco_py.graph.nodes import Graph
from taco_py.graph.run.graph_program import GraphProgram, make_program
from taco_py.graph.run.partition_by_stages import Region
from taco_py.language.diagnostics.errors import InternalError, TacoError

MOST_SIZES = 64
"""Programs for sizes of calls that are kept: twice as many."""


@dataclass(frozen=True, slots=True, eq=False)
class SizedProgram:
    """What runs at some sizes.

    choice  what was decided, None where operands do not fit together
    tasks   the regions that backends compute
    """

    program: GraphProgram
    choice: OffloadChoice | None
    tasks: tuple[OffloadedTask, ...] = ()

    @property
    def is_current(self) -> bool:
        """Tell whether none of its regions was left out since."""
        return not any(task.is_left_out for task in self.tasks)


class Offload:
    """Programs of a graph by the sizes of calls.

    host     what runs without backends
    options  of the calls of kernels
    tasks    compiled regions, which several sizes share
    """

    def __init__(
        self, graph: Graph, host: GraphProgram, preferred: Preference, options: CallOptions
    ) -> None:
        self.graph = graph
        self.host = host
        self.preferred = preferred
        self.options = options
        self.key = key_of_sizes(graph)
        self.programs = Memo(MOST_SIZES)
        self.tasks: dict[tuple[object, ...], OffloadedTask] = {}

    def program(self, operands: Sequence[Any]) -> SizedProgram:
        """Return the program that runs for operands."""
        key = self.key(operands)
        program: SizedProgram | None = self.programs.get(key)
        if program is None or not program.is_current:
            program = self._choose(operands)
            self.programs.put(key, program)
        return program

    def _choose(self, operands: Sequence[Any]) -> SizedProgram:
        try:
            values = sized_values(self.graph, operands, self.options.price)
        except InternalError:
            raise
        except TacoError:  # what operands do not fit together is told by the kernels
            return SizedProgram(self.host, None)
        choice = self._choice(values)
        if choice is None or not choice.regions:
            return SizedProgram(self.host, choice)
        steps: list[OffloadedRun] = []

        def offloaded(region: Region) -> OffloadedRun:
            steps.append(self._step(values, region, operands))
            return steps[-1]

        program = make_program(self.graph, lambda _: choice.partition(), offloaded, self.options)
        return SizedProgram(program, choice, tuple(step.task for step in steps))

    def _choice(self, values: SizedValues) -> OffloadChoice | None:
        """Choose regions for backends, without those whose functions raise; None if the host
        computes all.
        """
        for _ in self.preferred.backends:
            try:
                return choose_offload(values, self.preferred, self._left_out())
            except BackendFaultError as error:
                health = error.backend.health
                if health.out:
                    break
                health.out = str(error)
                tell(f"Expected the backend {error.backend.name} to say its costs, found {error}")
        return None

    def _left_out(self) -> Mapping[tuple[str, tuple[str, ...]], str]:
        return {
            (task.backend.name, key[1]): task.failed  # type: ignore[misc]
            for key, task in self.tasks.items()
            if task.failed
        }

    def _step(self, values: SizedValues, region: Region, operands: Sequence[Any]) -> OffloadedRun:
        backend = next(b for b in self.preferred.backends if b.name == region.target)
        names = tuple(node.name for node in region.nodes)
        sparsity = {n: fact.sparsity for n, fact in values.facts.items() if fact.sparsity}
        part = region_graph(self.graph, names, region.outputs, sparsity, backend.binds)
        inputs = tuple(leaf.name for leaf in self.graph.inputs)
        numbers = compiled(part.sizes, inputs) if part.sizes else None
        sizes = numbers(*operands) if numbers is not None else ()
        if backend.sized:
            part = in_sizes(part, self._holders(values, part, operands, sizes))
        results = tuple(
            (values.facts[name].shape, np.dtype(values.facts[name].dtype))
            for name in region.outputs
        )
        return OffloadedRun(region, self._task(backend, names, part), results, numbers)

    def _holders(
        self, values: SizedValues, part: RegionGraph, operands: Sequence[Any], extra: Sequence[Any]
    ) -> dict[str, Any]:
        """Return the value or the facts that have the shape of each input of a region."""
        passed = dict(zip((leaf.name for leaf in self.graph.inputs), operands, strict=True))
        holders: dict[str, Any] = {}
        for leaf in part.graph.inputs[: len(part.reads)]:
            weak = leaf.fact.weak and leaf.name in passed
            holders[leaf.name] = passed[leaf.name] if weak else values.facts[leaf.name]
        sizes = part.graph.inputs[len(part.reads) :]
        holders.update(zip((leaf.name for leaf in sizes), extra, strict=True))
        return holders

    def _task(self, backend: Backend, names: tuple[str, ...], part: RegionGraph) -> OffloadedTask:
        """Return the compiled region, which was made before where it is the same."""
        sizes = str(part.graph) if backend.sized else ""
        stored = tuple(leaf.fact.sparsity for leaf in part.graph.inputs)
        key = (backend.name, names, part.graph.outputs, sizes, stored)
        if key not in self.tasks:
            self.tasks[key] = OffloadedTask(backend, part, self.options)
        return self.tasks[key]

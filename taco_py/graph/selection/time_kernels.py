"""Kernels of a graph timed on the operands of a call, in place of their prices."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from math import inf
from statistics import median
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.graph.nodes import Graph
from taco_py.graph.orchestrate.candidate_kernels import Kernel
from taco_py.graph.run.graph_program import MANY_CALLS, KernelRun, make_program
from taco_py.graph.run.partition_by_stages import Region
from taco_py.graph.selection.graph_dag import GraphDag
from taco_py.language.diagnostics.errors import TacoError

REPETITIONS = 3
"""Timed calls of a kernel at least, of which the shortest counts, after one that is not timed."""

SECONDS = 1e-3
"""Time that is spent on calls of a kernel that takes less."""

ROUNDS = 5
"""Timed calls of each of several choices, at least."""

TURNS_SECONDS = 0.02
"""Time that is spent on calls of choices that take less."""


@dataclass(slots=True, eq=False)
class KernelTimes:
    """Seconds of kernels that were timed.

    expected  the price of one that was not
    options   of the calls of kernels
    """

    dag: GraphDag
    operands: Sequence[Any]
    expected: Callable[[Kernel], float]
    options: CallOptions = MANY_CALLS
    seconds: dict[Kernel, float] = field(default_factory=dict)

    def time(self, kernels: Sequence[Kernel]) -> bool:
        """Run kernels that make the results, in order, and time the untimed ones.

        Returns whether there were any. One that cannot be made takes forever.
        """
        if all(kernel in self.seconds for kernel in kernels):
            return False
        regions = {self._key(self.dag.region(k)): k for k in kernels}
        program = make_program(
            self.dag.graph, lambda _: self.dag.regions(kernels), options=self.options
        )
        values = program.begin(self.operands)
        for candidate in kernels:
            if candidate.members & self.dag.dag.flagged("alone"):
                self.seconds[candidate] = self.expected(candidate)
        for step, last in zip(program.steps, program.last, strict=True):
            region = step.region if isinstance(step, KernelRun) else None
            kernel = None if region is None else regions[self._key(region)]
            try:
                step.run(self.dag.graph, values)
            except TacoError:
                if kernel is None:
                    raise
                self.seconds[kernel] = inf
                return True
            if kernel is not None and kernel not in self.seconds:
                self.seconds[kernel] = self._shortest(step, values)
            for name in last:
                del values[name]
        return True

    def _shortest(self, step: Any, values: dict[str, Any]) -> float:
        seconds = [self._time_once(step, values)]
        while len(seconds) < REPETITIONS or sum(seconds) < SECONDS:
            seconds.append(self._time_once(step, values))
        return min(seconds)

    def _time_once(self, step: Any, values: dict[str, Any]) -> float:
        inputs = dict(values)
        start = time.perf_counter()
        step.run(self.dag.graph, inputs)
        return time.perf_counter() - start

    @staticmethod
    def _key(region: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(node.name for node in region.nodes), region.outputs

    def scaled(self, kernel: Kernel) -> float:
        """Return the seconds of a kernel, or its price scaled by the errors of other prices."""
        if kernel in self.seconds:
            return self.seconds[kernel]
        return self.expected(kernel) * self.ratio

    @property
    def ratio(self) -> float:
        """Count how many times longer timed kernels took than they were expected to."""
        timed = [(s, self.expected(k)) for k, s in self.seconds.items() if s < inf]
        return median(s / e for s, e in timed if 0 < e < inf) if timed else 1.0

    def measured(self, kernel: Kernel) -> float:
        """Return the seconds of a kernel, infinite where it was not timed."""
        return self.seconds.get(kernel, inf)


def time_in_turns(
    graph: Graph,
    operands: Sequence[Any],
    choices: Sequence[Sequence[Region]],
    options: CallOptions = MANY_CALLS,
) -> list[float]:
    """Return the shortest time of each choice of regions as a whole, all run in turns.

    What slows the machine down for a while slows all of them, and each finds the caches as others
    leave them.
    """
    programs = [
        make_program(graph, partial(_fixed_partition, regions), options=options)
        for regions in choices
    ]
    shortest = [inf] * len(programs)
    for program in programs:
        program.run(operands)
    first_start = time.perf_counter()
    rounds = 0
    while rounds < ROUNDS or time.perf_counter() - first_start < TURNS_SECONDS:
        rounds += 1
        for place, program in enumerate(programs):
            start = time.perf_counter()
            program.run(operands)
            shortest[place] = min(shortest[place], time.perf_counter() - start)
    return shortest


def _fixed_partition(regions: Sequence[Region], graph: Graph) -> Sequence[Region]:
    """Return the partition that is these regions."""
    return regions

"""The loops and statements of a kernel as its schedule has them, with expected iterations.

    y[i] = A[i,j] * x[j]  by loops(i,j)   →   i 1000, in it j 5: t += A[i,j] * x[j];  y[i] = t

Loops are those of the concrete notation (`compiler.concrete`), workspaces included. A kernel that
another way makes, as a library's routine, has the loops of its first term around one statement.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import assert_never

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.nodes import (
    Assign,
    Forall,
    Sequence,
    Statement,
    Where,
    Workspace,
    forall,
)
from taco_py.compiler.concrete.tree import workspaces_of
from taco_py.compiler.iteration.graph import IterationGraph, Loop, build_graph
from taco_py.compiler.ways.ways import graph_of, way_of
from taco_py.language.legal.stored import is_full
from taco_py.language.notation.nodes import Access
from taco_py.language.problem import TensorType
from taco_py.tuning.networks.loop_lengths import LoopLengths
from taco_py.tuning.prices.kernel_features import KernelFacts

ROOT = -1
"""The place of what has no loop around it."""


@dataclass(frozen=True, slots=True)
class NestLoop:
    """A loop of a kernel.

    parent  place of the loop around it, or ROOT
    trips   iterations in an iteration of those around it
    step    coordinates that an iteration goes on by
    roots   the indices that its variable derives from
    """

    loop: Loop
    parent: int
    trips: float
    step: float
    roots: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NestStatement:
    """An assignment, and the place of the loop right around it."""

    assign: Assign
    parent: int


class KernelNest:
    """The loops of a kernel in the order of execution, and its statements."""

    def __init__(self, facts: KernelFacts) -> None:
        self.facts = facts
        self.graph = _graph(facts)
        self.lengths = LoopLengths(facts, self.graph.provenance)
        self.workspaces = {w.name: w for w in workspaces_of(self.graph.statement)}
        self.loops: list[NestLoop] = []
        self.statements: list[NestStatement] = []
        self._supply = iter(self.graph.loops)
        self._visit(self.graph.statement, ROOT)

    def _visit(self, part: Statement, parent: int) -> None:
        """Add the loops and statements of a part, in the order of `build_graph`."""
        match part:
            case Assign():
                self.statements.append(NestStatement(part, parent))
            case Forall(index=index, body=body):
                enclosing = [(loop.loop.index, loop.trips) for loop in self.enclosing(parent)]
                trips = self.lengths.of(index, enclosing)
                roots = self.graph.provenance.roots(index)
                step = self.lengths.step(index)
                place = len(self.loops)
                self.loops.append(NestLoop(next(self._supply), parent, trips, step, roots))
                self._visit(body, place)
            case Where(consumer=consumer, producer=producer):
                self._visit(producer, parent)
                self._visit(consumer, parent)
            case Sequence(statements=statements):
                for child in statements:
                    self._visit(child, parent)
            case _:
                assert_never(part)

    def enclosing(self, place: int) -> tuple[NestLoop, ...]:
        """Return a loop and those around it, the outermost first."""
        loops: list[NestLoop] = []
        while place != ROOT:
            loops.append(self.loops[place])
            place = self.loops[place].parent
        return tuple(reversed(loops))

    def workspace(self, access: Access) -> Workspace | None:
        """Return the workspace that an access is to, None for an operand or a result."""
        return self.workspaces.get(access.tensor)

    def type_of(self, access: Access) -> TensorType | None:
        """Return the type of an operand or a result, None of a workspace."""
        if access.tensor in self.workspaces:
            return None
        return self.facts.problem.type_of(access.tensor)

    def item(self, access: Access) -> int:
        """Return the bytes of an element."""
        workspace, type = self.workspace(access), self.type_of(access)
        name = workspace.dtype if workspace is not None else type.element if type else "float64"
        return int(np.dtype(name).itemsize)

    def entries(self, access: Access) -> float:
        """Return the elements that a tensor stores."""
        operand = self.facts.operands.get(access.tensor)
        if operand is not None:
            return operand.stored
        volume, type = self.volume(access.indices), self.type_of(access)
        if access.tensor == self.facts.target.tensor and type and not is_full(type.format):
            return min(volume, self.facts.result_entries)
        return volume

    def volume(self, indices: tuple[str, ...]) -> float:
        """Return the number of coordinates of some indices."""
        return prod(self.lengths.extent(index) for index in indices)

    def strides(self, access: Access) -> dict[str, float]:
        """Return for each index the bytes between neighbouring coordinates.

        An entry of a list, and the expected entries below one, stand for coordinates.
        """
        item, type = self.item(access), self.type_of(access)
        order = access.indices if type is None else type.format.stored(access.indices)
        full = type is None or is_full(type.format)
        share = 1.0 if full else self.entries(access) / max(self.volume(access.indices), 1.0)
        strides, stride = {}, float(item)
        for index in reversed(order):
            strides[index] = stride
            stride = max(stride * self.lengths.extent(index) * share, float(item))
            share = 1.0
        return strides


def _graph(facts: KernelFacts) -> IterationGraph:
    """Return the iteration graph of a kernel. Raises ScheduleError."""
    step, problem = facts.step, facts.problem
    if way_of(step.schedule.make).in_loops:
        return graph_of(step.recipe())
    plain = replace(problem, side=())
    return build_graph(plain, forall(facts.order, Assign(facts.target, problem.assignment.value)))

"""What a planned program is expected to take, in seconds, read off its kernels as they are.

    loops(i,j) of y        the iterations of its loops, and what they meet out of order
    make(tiles)            products of dense tensors at the machine's rate
    make(slabs)            the instructions of its dataflow graph, and the bytes that it moves
    A_ji = reformat(…)     an entry that is moved
    split(j,j0,j1,64)      entries of a tile that are looked for, each time that loops come to it
    share, serial()        loops that threads share take their part of it, and waking them

Commands without a figure leave the price as it is: what they are worth is learned from what was
measured (`learned_factors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, prod

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import split_terms
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics, result_size
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.dataflow.value_seconds import work_of_functions
from taco_py.compiler.ways.dense_product import dense_product
from taco_py.compiler.ways.way import Question, Way
from taco_py.compiler.ways.ways import graph_of, way_of
from taco_py.data.convert.convert import ConversionWork, is_short_call, work_between
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import Format
from taco_py.language.legal.stored import is_full, sparse_indices_of
from taco_py.language.problem import Problem
from taco_py.planner.ir.goal import real_statistics
from taco_py.planner.ir.nodes import (
    Cast,
    Fuse,
    Gather,
    KernelStep,
    Locate,
    Operand,
    Reformat,
    Step,
    TakeSide,
    TakeSize,
    Unfuse,
)
from taco_py.planner.ir.plan import Plan
from taco_py.planner.price import as_sum, locating, term_cost
from taco_py.planner.tile_windows import (
    count_rounds,
    count_windows,
    known_order,
    tiled_graph,
)


@dataclass(frozen=True, slots=True)
class PricedFor:
    """What prices are about: the operands of a call, its machine and its threads."""

    operands: Mapping[str, Operand]
    machine: Machine
    threads: int

    def plan(self, plan: Plan) -> float:
        """Return the seconds of a plan; infinite where a kernel has loops that it cannot have."""
        facts = self.facts_of(plan)
        return self.around_kernels(plan) + sum(self.kernel(k, facts) for k in plan.kernels)

    def facts_of(self, plan: Plan) -> dict[str, Operand]:
        """Return the facts of a plan's tensors; of operands the facts that the call has.

        Of a sparse result a plan has its elements: those that are expected to be stored are here.
        """
        facts = {**plan.program.facts, **self.operands}
        for step in plan.steps:
            target = facts.get(step.target)
            if target is None or is_full(target.type.format) or target.nnz < prod(target.shape):
                continue
            facts[step.target] = replace(target, nnz=self._stored(step, facts, target))
        return facts

    def _stored(self, step: Step, facts: Mapping[str, Operand], target: Operand) -> float:
        """Return the expected entries of a sparse result of a step."""
        match step:
            case KernelStep(problem=problem):
                stats = self._statistics(step, facts)
                indices = problem.assignment.target.indices
                return result_size(stats, problem.assignment.value, indices)
            case Reformat(source=source):
                return min(target.nnz, facts[source].nnz)
        return target.nnz

    def _statistics(self, step: KernelStep, facts: Mapping[str, Operand]) -> Statistics:
        """Return the statistics of a kernel's operands, in the types that it reads."""
        operands = {name: facts[step.source(name)] for name, _ in step.problem.operands}
        operands = {n: replace(o, type=step.problem.type_of(n)) for n, o in operands.items()}
        machine = self.machine.of_type(np.dtype(step.problem.result.dtype).itemsize)
        return real_statistics(step.problem.assignment, operands, machine)

    def around_kernels(self, plan: Plan) -> float:
        """Return the seconds of a plan but for its kernels' loops: of copies, views and calls.

        What results and temporaries take is part of the kernels that write and read them.
        """
        facts = self.facts_of(plan)
        return sum(self.around_loops(step, facts) for step in plan.steps)

    def around_loops(self, step: Step, facts: Mapping[str, Operand]) -> float:
        """Return the seconds of one step of a plan; of a kernel those of its call."""
        machine = self.machine
        match step:
            case KernelStep():
                return machine.calls.kernel_call_seconds
            case Reformat(source=source, format=form):
                return self._conversion(facts[source], form)
            case Gather(source=source):
                return machine.calls.conversion_seconds + self._copying(facts[source])
            case Cast(source=source):
                return machine.calls.plan_step_seconds + self._copying(facts[source])
            case Locate(source=source):
                return locating(facts[source], machine) * machine.step_seconds
            case Fuse() | Unfuse() | TakeSide() | TakeSize():
                return machine.calls.view_seconds
        return machine.calls.plan_step_seconds

    def _copying(self, source: Operand) -> float:
        """Return the seconds of a copy of an array's elements."""
        return prod(source.shape) * self.machine.calls.copied_element_seconds

    def _conversion(self, source: Operand, form: Format) -> float:
        """Return the seconds of a copy in another format: its entries sorted, counted or moved."""
        copies, calls, before = self.machine.copies, self.machine.calls, source.type.format
        entry_steps, row_steps = {
            ConversionWork.SORTED: (copies.sorted_entry_steps, 0.0),
            ConversionWork.COUNTED: (copies.transposed_entry_steps, copies.transposed_row_steps),
            ConversionWork.CARRIED: (copies.folded_entry_steps, 0.0),
        }[work_between(before, form)]
        is_short = is_short_call(before, form)
        call = calls.conversion_seconds if is_short else calls.distribution_seconds
        steps = entry_steps * source.nnz + row_steps * sum(source.shape)
        return call + steps * self.machine.step_seconds

    def kernel(self, step: KernelStep, facts: Mapping[str, Operand]) -> float:
        """Return the seconds of a kernel."""
        way, stats = way_of(step.schedule.make), self._statistics(step, facts)
        if way.priced is not None and not way.on_gpu:
            seconds = way.priced(step.problem, step.schedule, stats)  # with the bytes it writes
            if seconds is not None:
                return self._shared(seconds, step, way, stats)
        if way.seconds is None or way.in_loops:
            seconds = self._of_loops(step, stats)
        else:
            seconds = self._as_made(step, way, stats)
        return self._clearing(step, stats) + self._shared(seconds, step, way, stats)

    def _clearing(self, step: KernelStep, stats: Statistics) -> float:
        """Return the seconds of the memory of a dense result, which is cleared, or met first."""
        if not is_full(step.problem.result.format):
            return 0.0
        elements = stats.volume(dict.fromkeys(step.problem.assignment.target.indices))
        return self.machine.copies.cleared_element_steps * elements * self.machine.step_seconds

    def _shared(self, seconds: float, step: KernelStep, way: Way, stats: Statistics) -> float:
        """Return the seconds of a kernel on its threads, with waking them for each shared loop."""
        threads, units = 1 if step.schedule.serial else self.threads, self.machine.units
        if threads == 1 or seconds < units.parallel_iterations * 1e-9 or seconds == inf:
            return seconds
        regions = self._regions(step, stats) if way.in_loops else 1.0
        if not regions:
            return seconds
        awake = max(0.0, regions - 1.0) * units.awake_seconds
        return self.machine.shared_seconds(seconds, threads) + awake

    def _of_loops(self, step: KernelStep, stats: Statistics) -> float:
        """Return the seconds of a kernel's loops; infinite where they cannot have their order."""
        terms = split_terms(step.problem.assignment.value)
        orders, tiled = step.schedule.orders, tiled_graph(step)
        if len(orders) != len(terms):
            return inf
        cost = functions = 0.0
        if tiled is not None:
            orders = tuple(known_order(tiled, order) for order in orders)
            cost = self.machine.loops.window_steps * count_windows(tiled, stats)
        for term, order in zip(terms, orders, strict=True):
            body = as_sum(step.problem, term)
            looked_up = bool(step.looked_up)
            cost += term_cost(step.problem, body, stats, Effort(), order, looked_up)
            work = work_of_functions(term.body, step.problem.result.dtype)
            functions += work.seconds(self.machine) * stats.iterations(body.body, frozenset(order))
        seconds = cost * self.machine.step_seconds
        if _has_static_loops(step.problem):
            seconds *= self.machine.dense.static_size_share
        return seconds + functions

    def _as_made(self, step: KernelStep, way: Way, stats: Statistics) -> float:
        """Return the seconds of a kernel by its way on one thread, with the calls of a library."""
        assert way.seconds is not None
        seconds = way.seconds(Question(step.problem, lambda: stats))
        product = None if way.routine is None else dense_product(step.problem, stats)
        if product is None:
            return seconds
        calls, matrices = self.machine.calls, product.count(product.batch)
        return seconds + calls.library_call_seconds + matrices * calls.library_matrix_seconds

    def _regions(self, step: KernelStep, stats: Statistics) -> float:
        """Count how often threads come together for a loop that they share; 0 where they share
        none."""
        try:
            graph = graph_of(step.recipe())
        except ScheduleError:
            return 0.0
        shared = (loop for loop in graph.loops if loop.mode.parallel is not None)
        return sum(count_rounds(graph, loop.outer, stats) for loop in shared)


def _has_static_loops(problem: Problem) -> bool:
    """Tell whether a loop over every coordinate of an index has its size compiled in."""
    static = {index for index, _ in problem.static}
    return not static <= sparse_indices_of(problem)

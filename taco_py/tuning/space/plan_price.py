"""What a planned program is expected to take, in seconds, read off its kernels as they are.

    loops(i,j) of y        the iterations of its loops, and what they meet out of order
    make(tiles)            products of dense tensors at the machine's rate
    A_ji = reformat(…)     an entry that is moved
    share, serial()        loops that threads share take their part of it, and waking them

Commands without a figure leave the price as it is: what they are worth is learned from what was
measured (`learned_factors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import inf, prod

from codegen.records import dataclass
from taco_py.compiler.concrete.terms import reductions, split_terms
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.machine import Machine
from taco_py.compiler.order.orders import order_cost
from taco_py.compiler.ways.way import Question
from taco_py.compiler.ways.ways import graph_of, way_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.legal.stored import sparse_indices_of
from taco_py.language.problem import Problem
from taco_py.planner.ir.goal import statistics
from taco_py.planner.ir.nodes import Cast, Gather, KernelStep, Operand, Reformat, Step
from taco_py.planner.ir.plan import Plan
from taco_py.planner.price import as_sum, keeping, term_cost


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
        """Return the facts of a plan's tensors; of operands the facts that the call has."""
        return {**plan.program.facts, **self.operands}

    def around_kernels(self, plan: Plan) -> float:
        """Return the seconds of a plan but for its kernels' loops: storage, copies and calls."""
        facts = self.facts_of(plan)
        intermediates = {step.target for step in plan.steps} - {*plan.program.results}
        storage = sum(keeping(facts[name], self.machine) for name in intermediates if name in facts)
        steps = (self.around_loops(step, facts) for step in plan.steps)
        return storage * self.machine.step_seconds + sum(steps)

    def around_loops(self, step: Step, facts: Mapping[str, Operand]) -> float:
        """Return the seconds of one step of a plan; of a kernel those of its call."""
        machine = self.machine
        match step:
            case KernelStep():
                return machine.calls.kernel_call_seconds
            case Reformat(source=source):
                entries = facts[source].nnz
                cost = (
                    machine.copies.sorted_entry_steps
                    if len(facts[source].shape) > 2
                    else machine.copies.transposed_entry_steps
                )
                return machine.calls.plan_step_seconds + entries * cost * machine.step_seconds
            case Gather(source=source) | Cast(source=source):
                return (
                    machine.calls.plan_step_seconds
                    + prod(facts[source].shape) * machine.calls.copied_element_seconds
                )
        return machine.calls.plan_step_seconds

    def kernel(self, step: KernelStep, facts: Mapping[str, Operand]) -> float:
        """Return the seconds of a kernel."""
        operands = {name: facts[step.source(name)] for name, _ in step.problem.operands}
        operands = {n: replace(o, type=step.problem.type_of(n)) for n, o in operands.items()}
        way = way_of(step.schedule.make)
        stats = statistics(step.problem.assignment, operands, self.machine)
        if way.seconds is not None and not way.in_loops:
            return way.seconds(Question(step.problem, lambda: stats)) / self._gain(step)
        terms = split_terms(step.problem.assignment.value)
        orders = step.schedule.orders
        if len(orders) != len(terms):
            return inf
        cost = 0.0
        for term, order in zip(terms, orders, strict=True):
            body = as_sum(step.problem, term)
            if any(reductions(body.body)):  # the loops of inner sums are beside the others
                cost += term_cost(step.problem, body, stats, Effort())
            else:
                cost += order_cost(step.problem, body, stats, order)
        seconds = cost * self.machine.step_seconds
        if _has_static_loops(step.problem):
            seconds *= self.machine.dense.static_size_share
        small = seconds < self.machine.units.parallel_iterations * 1e-9
        waking = self.machine.units.waking_seconds
        return seconds if small else waking + seconds / self._gain(step)

    def _gain(self, step: KernelStep) -> float:
        """Count how many times as fast threads make a kernel."""
        if self.threads == 1 or step.schedule.serial:
            return 1.0
        if way_of(step.schedule.make).in_loops and not self._is_shared(step):
            return 1.0
        return 1.0 + self.machine.units.further_thread_share * (self.threads - 1)

    def _is_shared(self, step: KernelStep) -> bool:
        try:
            graph = graph_of(step.recipe())
        except ScheduleError:
            return False
        return any(loop.mode.parallel is not None for loop in graph.loops)


def _has_static_loops(problem: Problem) -> bool:
    """Tell whether a loop over every coordinate of an index has its size compiled in."""
    static = {index for index, _ in problem.static}
    return not static <= sparse_indices_of(problem)

"""What rules may ask besides the program: the goal, what programs cost, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from math import inf
from typing import Protocol

from codegen.records import dataclass
from taco_py.compiler.cost.effort import Effort
from taco_py.compiler.cost.estimate import Statistics
from taco_py.compiler.cost.machine import Machine
from taco_py.language.notation.checks import operand_names
from taco_py.language.notation.nodes import Access, Assignment, Expr
from taco_py.planner.ir.goal import Request, real_statistics, statistics
from taco_py.planner.ir.log import Log
from taco_py.planner.ir.nodes import Operand
from taco_py.planner.ir.program import Program

StatisticsOf = Callable[[Assignment, Mapping[str, Operand], Machine], Statistics]
"""Sizes and patterns of the operands of an assignment."""


class Costs(Protocol):
    """What kernels and programs are expected to cost, in steps (`cost.machine`).

    Another implementation, such as a learned model, may take the place of `plan.lookahead`.
    """

    def loops(self, program: Program, assignment: Assignment, context: Context) -> float:
        """Return the cost of the best loops of one kernel, with the copies that the loops need."""

    def kernel(self, program: Program, assignment: Assignment, context: Context) -> float:
        """Return the cost of an assignment in the cheapest way to make kernels of it."""

    def ways(
        self, program: Program, assignment: Assignment, context: Context
    ) -> tuple[float, float]:
        """Return the costs with dense products split off, infinite where there are none, and as one
        kernel."""

    def program(self, program: Program, context: Context, limit: float = inf) -> float:
        """Return the cost of all kernels and of storing temporaries; infinite above a limit."""

    def in_loops(self, program: Program, context: Context) -> float:
        """Return the cost of a program whose kernels are loops."""


class Following(Protocol):
    """The rules that follow: what a candidate becomes before it is priced."""

    def forms(self, program: Program, context: Context) -> Program:
        """Return the program in its cheapest form, after all rules that split assignments."""

    def split(self, program: Program, context: Context) -> Program:
        """Return the program after all rules that split assignments."""

    def split_term(self, program: Program, context: Context) -> Program:
        """Return the program of one term after the rules that split terms."""


@dataclass(frozen=True, slots=True)
class Context:
    """What a program is made for, and services of the search.

    goal       what is wanted, and what rules may use
    costs      what programs cost
    following  the rules that follow
    log        what was taken and refused
    statistics_of      the statistics of an assignment; None for those of the goal
    full       whether temporaries of one index are dense, however few their entries
    """

    goal: Request
    costs: Costs
    following: Following
    log: Log = field(default_factory=Log, compare=False)
    statistics_of: StatisticsOf | None = None
    full: bool = False

    @property
    def effort(self) -> Effort:
        """Return the memo and the deadline of the search."""
        return self.goal.effort

    def may(self, rule: str) -> bool:
        """Tell whether a rule takes part."""
        return rule not in self.goal.left_out

    def statistics(self, program: Program, value: Expr) -> Statistics:
        """Return the patterns of the operands of `value`, and the sizes of all indices of a
        program."""
        stats = self.of(Assignment(Access("", ()), value), program.facts, self.goal.machine)
        return replace(stats, sizes={**program.sizes, **stats.sizes})

    @property
    def of(self) -> StatisticsOf:
        """Return the function of statistics that prices use."""
        if self.statistics_of is not None:
            return self.statistics_of
        return statistics if self.goal.memory == inf else real_statistics

    def key(self, program: Program, assignment: Assignment) -> tuple[object, ...]:
        """Return a hashable key of an assignment and its operands."""
        read = [program.facts[name] for name in operand_names(assignment)]
        entries = tuple(facts.entries for facts in read)
        sizes = tuple(program.sizes.get(index) for index in assignment.target.indices)
        return assignment, self.of, tuple(read), entries, sizes, self.goal.machine

    def request(self, program: Program, target: str) -> Request:
        """Return the goal of a kernel that makes one tensor of a program."""
        return replace(self.goal, type=program.facts[target].type, static=program.static)

    @property
    def drafting(self) -> Context:
        """Return the context for programs that are compared: nothing is logged."""
        return replace(self, log=Log())

    def real(self, program: Program, value: Expr) -> tuple[Program, Context]:
        """Return the program and the context with the actual sizes of the operands of `value`."""
        assignment = Assignment(Access("", ()), value)
        sizes = real_statistics(assignment, program.facts, self.goal.machine).sizes
        sized = replace(program, sizes={**program.sizes, **sizes})
        return sized, replace(self, statistics_of=real_statistics)

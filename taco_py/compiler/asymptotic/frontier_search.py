"""The asymptotic autoscheduler: all schedules of an assignment that no other one dominates.

    rewrites and groupings → loop nests → those of the least depth → protocols: the universe
    → costs, equal ones compared once → those that no other is strictly below: the frontier

(Ahrens, Kjolstad and Amarasinghe 2022, section 7.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from math import inf
from time import monotonic
from typing import overload

from codegen.records import dataclass
from taco_py.compiler.asymptotic.domination import Costs, Incumbents, Union, assumptions
from taco_py.compiler.asymptotic.fused import fused_schedule
from taco_py.compiler.asymptotic.groupings import REWRITES, few_forms, groupings
from taco_py.compiler.asymptotic.nests import Nest, Skeleton, nests, skeletons
from taco_py.compiler.asymptotic.protocols import Directed, any_choice, choices
from taco_py.compiler.asymptotic.queries import Query
from taco_py.compiler.asymptotic.scheduled_kernels import ScheduledKernel, kernels_of
from taco_py.compiler.asymptotic.tasks import Recorder, Scope
from taco_py.compiler.concrete.nodes import Statement
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.concrete.terms import sums_apart
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.formats import Format
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Access, Assignment
from taco_py.language.notation.printer import to_text as expression_text
from taco_py.language.notebook.folded_report import Report, folded


@dataclass(frozen=True, slots=True)
class Cost:
    """The largest sets of tasks of a schedule, without the tasks that no schedule avoids."""

    queries: tuple[Query, ...]

    def __str__(self) -> str:
        if not self.queries:
            return "reading the operands"
        return "Σ over " + " ∪ ".join(map(str, self.queries))


@dataclass(frozen=True, slots=True, repr=False)
class Candidate:
    """A schedule of the universe: loops, temporaries, and protocols of operands.

    assignment  the assignment that it computes
    estimate    its expected cost, in steps (`cost.machine`), where that is known
    runs        whether commands are legal for the operands' formats and the result's, None where
                these are not known
    """

    directed: Directed
    cost: Cost
    assignment: Assignment
    estimate: float | None = None
    runs: Callable[[Schedule], bool] | None = field(default=None, compare=False, repr=False)

    @property
    def statement(self) -> Statement:
        return self.directed.statement

    @property
    def protocols(self) -> str:
        return str(self.directed)

    @property
    def kernels(self) -> tuple[ScheduledKernel, ...] | None:
        """Return assignments to evaluate in turn, each with its schedule.

        None for a fused schedule, whose temporaries are computed inside loops.
        """
        return kernels_of(self.statement)

    @property
    def schedule(self) -> Schedule | None:
        """Return the commands that lead from the full assignment to these loops.

        A `precompute` for each temporary. None where no commands do, even if `kernels` in turn are
        equivalent; and where they are refused for the result's format, such as where a sparse
        result would store every coordinate of an index for a dense temporary.
        """
        commands = fused_schedule(self.assignment, self.statement)
        return None if commands is None or (self.runs and not self.runs(commands)) else commands

    def __str__(self) -> str:
        return f"{to_text(self.statement)}\n{self.protocols}\n{self.cost}"

    def __repr__(self) -> str:
        loops = "; ".join(line.strip() for line in to_text(self.statement).splitlines())
        return f"<Candidate {loops}: {self.cost}>"


@dataclass(frozen=True, slots=True)
class Dropped:
    """The number of schedules of at least a cost, and another cost that is strictly below."""

    cost: Cost
    count: int
    by: Cost


@dataclass(frozen=True, slots=True)
class Frontier(Sequence[Candidate]):
    """The schedules that no other dominates asymptotically, and figures of the search.

    programs  groupings with loop orders of any depth
    depth     the least depth of their loop nests; `kept` programs have it
    universe  the number of programs of that depth, with every choice of protocols
    dropped   the costs for which most schedules were dropped
    seen      the number of `kept` programs that were searched before the budget ran out
    listed    whether all groupings were listed: there was time, and distributed forms were few
    late      the number of candidates that there was no time to estimate
    """

    assignment: Assignment
    groupings: int
    programs: int
    depth: int
    kept: int
    universe: int
    seen: int
    listed: bool
    dropped: tuple[Dropped, ...]
    candidates: tuple[Candidate, ...]
    late: int = 0

    @property
    def complete(self) -> bool:
        """Tell whether every program of least depth was searched."""
        return self.listed and self.seen == self.kept

    def __len__(self) -> int:
        return len(self.candidates)

    @overload
    def __getitem__(self, place: int) -> Candidate: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Candidate, ...]: ...
    def __getitem__(self, place: int | slice) -> Candidate | tuple[Candidate, ...]:
        return self.candidates[place]

    @property
    def costs(self) -> tuple[Cost, ...]:
        """Return the different costs on the frontier."""
        return tuple(dict.fromkeys(candidate.cost for candidate in self.candidates))

    def __repr__(self) -> str:
        """Return one line; `explain()` has the rest."""
        of = f"{len(self)} of {self.universe} schedules of {expression_text(self.assignment)}"
        suffix = "" if self.complete else ", not all looked at"
        return f"<Frontier: {of}{suffix}>"

    def explain(self) -> str:
        """Return the numbers of candidates after each step of the search, and the reasons of
        pruning."""
        return Report("\n".join(_explained(self)))

    def _repr_html_(self) -> str:
        """Show the frontier in a notebook: the explanation, folded."""
        return folded(self.explain())


def frontier(
    assignment: Assignment,
    formats: Mapping[str, Format],
    scope: Scope = Scope.ALL,
    budget: float | None = None,
    dtype: str = "float64",
) -> Frontier:
    """Return the frontier of an assignment whose sums are explicit.

    Its candidates have distinct names for the indices of sums (`sums_apart`).

    formats  of the operands; operands that are not all dense have a pattern, and each of their
             modes may be stepped through or located
    scope    the precision of workspaces' patterns (see there)
    budget   seconds after which the best schedules so far are returned; listing the loop nests may
             take half of them, and at least one nest is searched
    """
    seconds = inf if budget is None else budget
    begin = monotonic()
    end = begin + seconds
    assignment = sums_apart(assignment)
    programs = search(assignment, begin + seconds / 2)
    read = tuple(dict.fromkeys(accesses(assignment)))
    sparse = tuple(a for a in read if not formats[a.tensor].is_dense)
    costs = Costs(assumptions(sparse, (assignment.target, *read)))
    choice = _Choice(sparse, Recorder(scope), costs, Incumbents(costs), end)
    searched = 0
    for nest in (nest for skeleton in programs.least for nest in nests(skeleton, dtype)):
        if searched and monotonic() > end:
            break
        choice.visit(nest)
        searched += 1
    best = [(d, union) for d, union in choice.schedules if choice.incumbents.below(union) is None]
    readable_costs = {
        union: Cost(costs.readable(union)) for union in dict.fromkeys(u for _, u in best)
    }
    return Frontier(
        assignment,
        programs.groupings,
        programs.programs,
        programs.depth,
        sum(skeleton.count for skeleton in programs.least),
        choice.universe,
        searched,
        programs.complete,
        tuple(choice.dropped()),
        tuple(Candidate(directed, readable_costs[union], assignment) for directed, union in best),
    )


@dataclass(slots=True)
class _Choice:
    """Chooses protocols, one access after another, and prunes as soon as a bound is too high.

    schedules  the schedules that no cost so far is strictly below, with their costs
    pruned     for a cost the number of schedules of at least it, and a cost strictly below it
    """

    sparse: tuple[Access, ...]
    recorder: Recorder
    costs: Costs
    incumbents: Incumbents
    end: float
    universe: int = 0
    schedules: list[tuple[Directed, Union]] = field(default_factory=list)
    pruned: dict[Union, tuple[int, Union]] = field(default_factory=dict)

    def visit(self, nest: Nest) -> None:
        """Search all protocols of one nest: each mode of each access is stepped through or
        located."""
        open_ = (*self.sparse, *nest.temporaries)
        self.universe += 2 ** sum(len(access.indices) for access in open_)
        self.decide(nest.statement, {}, open_)

    def decide(
        self,
        statement: Statement,
        steps: Mapping[Access, frozenset[str]],
        open_: tuple[Access, ...],
    ) -> None:
        """Search protocols for the accesses in `open_`, where the others have `steps`.

        Once there is a schedule, the search stops after the `end`; else the first schedule is
        accepted.
        """
        if monotonic() > self.end:
            if self.schedules:
                return
            steps, open_ = any_choice(steps, open_), ()
        directed = Directed(statement, steps)
        cost = self.costs.union(self.recorder.queries(directed, frozenset(open_)))
        low = self.incumbents.below(cost)
        if low is not None:
            count = 2 ** sum(len(access.indices) for access in open_)
            self.pruned[cost] = (self.pruned.get(cost, (0, low))[0] + count, low)
        elif open_:
            access, *rest = open_
            for stepped in choices(access):
                self.decide(statement, {**steps, access: stepped}, tuple(rest))
        else:
            self.incumbents.add(cost)
            self.schedules.append((directed, cost))

    def dropped(self) -> Iterator[Dropped]:
        """Yield the costs for which most schedules were dropped."""
        late = [cost for _, cost in self.schedules]
        for cost in late:
            low = self.incumbents.below(cost)
            if low is not None:
                self.pruned[cost] = (self.pruned.get(cost, (0, low))[0] + 1, low)
        most = sorted(self.pruned.items(), key=lambda item: -item[1][0])
        for cost, (count, low) in most[:LISTED_COSTS]:
            yield Dropped(self.cost(cost), count, self.cost(low))

    def cost(self, union: Union) -> Cost:
        return Cost(self.costs.readable(union))


@dataclass(frozen=True, slots=True)
class Programs:
    """The loop nests of least depth, without their orders, and the number of nests of any depth.

    complete  whether there was time for all groupings, and no form was left out
    """

    groupings: int
    programs: int
    depth: int
    least: tuple[Skeleton, ...]
    complete: bool


def search(assignment: Assignment, end: float = inf) -> Programs:
    """Return every grouping of the assignment with every way to share loops, filtered by depth.

    end  the time after which no more are generated, except the first
    """
    grouped, complete = 0, few_forms(assignment)
    every: list[Skeleton] = []
    for group in groupings(assignment, _names(assignment)):
        if every and monotonic() > end:
            complete = False
            break
        grouped += 1
        for skeleton in skeletons(group):
            every.append(skeleton)
            if monotonic() > end:
                complete = False
                break
    depth = min(skeleton.depth for skeleton in every)
    least = tuple(skeleton for skeleton in every if skeleton.depth == depth)
    return Programs(grouped, sum(skeleton.count for skeleton in every), depth, least, complete)


def _names(assignment: Assignment) -> tuple[str, ...]:
    """Return names for temporaries: w, w1, w2, …"""
    used = {assignment.target.tensor, *(access.tensor for access in accesses(assignment))}
    names = ("w", *(f"w{number}" for number in range(1, 64)))
    return tuple(name for name in names if name not in used)


# ---------------------------------------------------------------- explanation


LISTED_COSTS = 8
"""The number of costs of dropped schedules that explain() lists."""


def _explained(result: Frontier) -> Iterator[str]:
    yield f"schedules of {expression_text(result.assignment)}"
    yield f"  candidates        {result.programs} loop nests of {result.groupings} groupings"
    yield f"  least depth       {result.kept} loop nests of depth {result.depth}"
    if not result.listed:
        yield f"  not all are listed, for lack of time or of room for {REWRITES} distributed forms"
    if result.seen < result.kept:
        yield f"  the budget ended  after {result.seen} of these: the best found so far follow"
    restriction = "" if result.seen == result.kept else ", of those looked at"
    yield f"  with protocols    {result.universe}{restriction}"
    yield f"  after domination  {len(result)}, of {len(result.costs)} different costs"
    if result.late:
        yield f"  not estimated     {result.late} of these, for lack of time"
    for cost in result.costs:
        members = [c for c in result.candidates if c.cost == cost]
        best = min(members, key=lambda c: inf if c.estimate is None else c.estimate)
        estimates = [c.estimate for c in members if c.estimate is not None]
        yield f"{len(members)} schedules: {cost}"
        if estimates:
            ends = dict.fromkeys(f"{end(estimates):.3g}" for end in (min, max))
            yield f"  estimated {' to '.join(ends)} operations, best:"
        yield from ("    " + line for line in to_text(best.statement).splitlines())
    for gone in result.dropped:
        yield f"{gone.count} schedules pruned: at least {gone.cost}"
        yield f"    by {gone.by}"

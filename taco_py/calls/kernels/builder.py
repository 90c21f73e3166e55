"""A schedule under construction: each command is checked when it is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from codegen.records import dataclass
from taco_py.arguments.option_checks import as_schedule, check_threads
from taco_py.arguments.options import CallOptions
from taco_py.calls.kernels.draft import Draft
from taco_py.calls.kernels.kernel import Kernel, compile_draft
from taco_py.compiler.concrete.nodes import Race
from taco_py.compiler.concrete.terms import sums_outside
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.commands import Command, Parallelize
from taco_py.compiler.schedule.gpu.unit_nests import units_of
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.methods import methods
from taco_py.compiler.schedule.moves import candidates
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.compiler.ways.ways import check_recipe
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.nodes import Assignment
from taco_py.language.notation.printer import to_text
from taco_py.planner.algebra.normalize import normal_form
from taco_py.planner.ir.nodes import KernelStep, Locate, Reformat
from taco_py.planner.ir.plan import Plan
from taco_py.planner.make import Options, make_plan
from taco_py.report.explanation.plan_schedule import graphs_of

if TYPE_CHECKING:
    from taco_py.report.show.graphs import Drawing


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A legal schedule of an assignment with the plan it leads to."""

    assignment: Assignment
    schedule: Schedule
    plan: Plan

    @property
    def kernel(self) -> KernelStep:
        """Return the kernel that makes the result, which is the one that the commands are about."""
        return self.plan.kernels[-1]

    @property
    def sources(self) -> dict[str, str]:
        """Return the user's names of the operands of which the kernel reads copies."""
        return {s.target: s.source for s in self.plan.steps if isinstance(s, Reformat | Locate)}

    @property
    def loops(self) -> Loops:
        """Return the loops that commands are about: those of the text's order with the commands
        applied.

        They are the kernel's as soon as a command says which loops there are; until then the
        compiler chooses them.
        """
        kernel = self.kernel
        if not self.schedule.commands:
            summed = sums_outside(self.assignment)
            return Loops(summed, textual_orders(summed))
        assignment = kernel.problem.assignment
        orders = kernel.schedule.orders if self.schedule.shapes else textual_orders(assignment)
        return apply_all(Loops(assignment, orders), kernel.schedule.on_loops)


def state_of(draft: Draft, schedule: Schedule) -> State:
    """Return the plan of `draft` with `schedule`, in loops of the text, as commands are about.
    Raises ScheduleError unless it is legal as a whole."""
    options = Options(schedule=schedule)
    plan = make_plan(draft.assignment, draft.operands, draft.request.as_written, options)
    for recipe in plan.recipes:
        check_recipe(recipe)
    return State(normal_form(draft.assignment, draft.operands), schedule, plan)


class ScheduleBuilder:
    """Commands in order, each checked when it is given. A refused one changes nothing.

    >>> s = tp.schedule("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1))
    >>> print(s.split("i", "i0", "i1", 32).parallelize("i0", "threads"))
    split(i,i0,i1,32), parallelize(i0,CPUThread,NoRaces)

    There is a method for each command; all return the builder. What was built is `.schedule`, a
    value; printed, it is the text that `schedule=` and `tp.Schedule.parse` read.
    """

    __slots__ = ("_draft", "_memory_limit", "_states")

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., ScheduleBuilder]: ...

    def __init__(self, draft: Draft, memory_limit: int | None = None) -> None:
        self._draft = draft
        self._memory_limit = memory_limit
        self._states: tuple[State, ...] = (state_of(draft, OPEN),)

    @property
    def schedule(self) -> Schedule:
        """Return the commands, as a value."""
        return self._states[-1].schedule

    @property
    def loops(self) -> Loops:
        """Return the loops that the next command is about."""
        return self._states[-1].loops

    def apply(self, commands: ScheduleBuilder | Schedule | Command | str) -> ScheduleBuilder:
        """Return all of `commands`, a text or a value, as one step: between them nothing is
        checked.

        Raises ScheduleError, and changes nothing then.
        """
        if isinstance(commands, Command):
            return self._record(commands)
        more = as_schedule(commands) or OPEN
        return self._extend(more.commands) if more.commands else self

    def _record(self, command: Command) -> ScheduleBuilder:
        return self._extend((command,))

    def _extend(self, commands: tuple[Command, ...]) -> ScheduleBuilder:
        schedule = Schedule((*self.schedule.commands, *commands))
        self._states = (*self._states, state_of(self._draft, schedule))
        return self

    def undo(self) -> ScheduleBuilder:
        """Take the last step back. Raises ScheduleError where there is none."""
        if len(self._states) == 1:
            raise ScheduleError(
                "Expected a command to take back, found none",
                hint="undo() takes back what a method or apply() has added, once for each",
            )
        self._states = self._states[:-1]
        return self

    def legal_moves(self) -> tuple[Command, ...]:
        """Return commands that could come next, each tried: `s.apply(move)` will not refuse it.

        Of the infinitely many there are, those with a few sizes that make a difference, and none
        that says how to add to common elements where there are none. What a `bound` promises is not
        known here.
        """
        state = self._states[-1]
        sparse = [n for n, o in self._draft.operands.items() if not o.type.format.is_dense]
        units = units_of(self._draft.request.machine.is_gpu)
        trial = Schedule(tuple(candidates(state.loops, sparse, units)))
        readable = trial.reading(state.sources)
        moves: dict[Command, None] = {}
        for command in readable.commands:
            if _without_race(command) not in moves and self._allows(command):
                moves[command] = None
        return tuple(moves)

    def _allows(self, command: Command) -> bool:
        try:
            state_of(self._draft, Schedule((*self.schedule.commands, command)))
        except ScheduleError:
            return False
        return True

    def compile(self, threads: int | None = None) -> Kernel:
        """Return the kernel, as `tp.compile` makes it with this schedule."""
        options = CallOptions(
            schedule=self.schedule,
            threads=check_threads(threads),
            static=self._draft.request.static,
            target=self._draft.request.machine.target.name,
            memory_limit=self._memory_limit,
        )
        return compile_draft(self._draft, options)

    def show(self) -> Drawing:
        """Draw the provenance of the loops and the levels that they run over.

        `print` the drawing, or `.save("s.svg")`. Without commands they are those that the compiler
        chooses.
        """
        from taco_py.report.show.graphs import draw

        return draw(graphs_of(self._states[-1].plan))

    def __str__(self) -> str:
        return str(self.schedule)

    def _repr_html_(self) -> str:
        """Show it in a notebook: the commands so far, and the loops that they make."""
        from taco_py.language.notebook.markup import block, table

        rows = [("computes", to_text(self._draft.assignment))]
        return block(table(rows), self.schedule._repr_html_(), self.show().svg)

    def __repr__(self) -> str:
        return f"<schedule of {to_text(self._draft.assignment)}: {str(self) or 'open'}>"


def _without_race(command: Command) -> Command:
    """Return `command` where each iteration writes elements of its own."""
    return replace(command, race=Race.NONE) if isinstance(command, Parallelize) else command


for _name, _method in methods(ScheduleBuilder._record).items():
    setattr(ScheduleBuilder, _name, _method)

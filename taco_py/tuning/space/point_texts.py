"""The space of a call's plans: points, their plans as text, their axes and neighbours.

()                                              the plan that is chosen without timing
(("kernel y: share", "serial()"),)              the same on one thread
(("plan: contraction", "one kernel"), …)        another program; its kernels have axes of their own
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from itertools import islice, product
from random import Random
from typing import Any

from codegen.records import dataclass
from taco_py.arguments.options import CallOptions
from taco_py.calls.call.libraries import libraries_of
from taco_py.compiler.schedule.commands import Nest
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.ways import way_of
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.printer import program_text
from taco_py.planner.ir.program import Program
from taco_py.tuning.space.axis import KERNEL, PLAN, USUAL, Axis, Option, Point, point_of
from taco_py.tuning.space.kernel_options import Allowed, axes_of_kernel, edited


@dataclass(frozen=True, slots=True, eq=False)
class Space:
    """The plans that a call may have.

    settings  of the call
    planned   the plan of a call with other settings; raises ScheduleError where there is none
    planner   axes that are about the planner
    threads   that kernels may use
    memo      programs by settings, axes of their kernels by theirs
    """

    settings: CallOptions
    planned: Callable[[CallOptions], Plan]
    planner: tuple[Axis, ...]
    threads: int = 1
    memo: dict[Any, Any] = field(default_factory=dict)

    # ------------------------------------------------------------ what there is

    def axes(self, point: Point) -> tuple[Axis, ...]:
        """Return the axes at a point: the planner's, then those of its plan's kernels."""
        return (*self.planner, *self._kernel_axes(self.settings_of(point)))

    def _kernel_axes(self, settings: CallOptions) -> tuple[Axis, ...]:
        key = "axes", settings
        if key not in self.memo:
            plan = self._plan(settings)
            self.memo[key] = () if plan is None else self._axes_of_kernels(plan, settings)
        axes: tuple[Axis, ...] = self.memo[key]
        return axes

    def _axes_of_kernels(self, plan: Plan, settings: CallOptions) -> tuple[Axis, ...]:
        every = Allowed(libraries_of(settings), self.threads)
        facts = plan.program.facts
        kernels = ((step, every.for_kernel(step, facts)) for step in plan.kernels)
        return tuple(axis for step, allowed in kernels for axis in axes_of_kernel(step, allowed))

    def options_at(self, point: Point) -> dict[str, Option]:
        """Return the options of a point that there are, by the names of their axes."""
        by_axis = dict(point)
        axes = self.planner
        if any(name.startswith(KERNEL) for name in by_axis):
            axes = self.axes(point)
        pairs = ((axis, axis.option(by_axis.get(axis.name, USUAL))) for axis in axes)
        return {a.name: o for a, o in pairs if o is not None and a.name in by_axis}

    def normalize(self, point: Point) -> Point:
        """Return the point without axes and options that its plan has not."""
        return point_of({name: option.name for name, option in self.options_at(point).items()})

    # ------------------------------------------------------------ plans

    def settings_of(self, point: Point) -> CallOptions:
        """Return the settings that the planner is asked with."""
        by_axis, settings = dict(point), self.settings
        for axis in self.planner:
            option = axis.option(by_axis.get(axis.name, USUAL))
            for name, value in () if option is None else option.changes:
                settings = replace(settings, **{name: _join(getattr(settings, name), name, value)})
        return settings

    def _plan(self, settings: CallOptions) -> Plan | None:
        """Return the plan of settings, None where there is none."""
        key = "plan", settings
        if key not in self.memo:
            try:
                self.memo[key] = self.planned(settings), ""
            except ScheduleError as error:
                self.memo[key] = None, error.message
        plan: Plan | None = self.memo[key][0]
        return plan

    def plan(self, point: Point) -> Plan:
        """Return the plan of a point, with the planner's log. Raises ScheduleError where there is
        none."""
        settings = self.settings_of(point)
        plan = self._plan(settings)
        if plan is None:
            raise ScheduleError(self.memo["plan", settings][1])
        return replace(plan, program=self._edited(plan.program, point))

    def _edited(self, program: Program, point: Point) -> Program:
        """Return the program with the point's options in the schedules of its kernels."""
        options = self.options_at(point)
        for step in program.kernels:
            head = f"{KERNEL}{step.target}: "
            mine = tuple(option for name, option in options.items() if name.startswith(head))
            if mine:
                program = program.with_kernel(edited(step, mine))
        return program

    def text(self, point: Point) -> str:
        """Return the text of a point's plan. Raises ScheduleError where it has none."""
        return program_text(self.plan(point).program)

    def identity(self, plan: Plan) -> str:
        """Return the text that plans of the same effect have in common.

        It has no loop orders of kernels that are no loops."""
        program = plan.program
        for step in program.kernels:
            if not way_of(step.schedule.make).in_loops:
                commands = (c for c in step.schedule.commands if not isinstance(c, Nest))
                program = program.with_kernel(replace(step, schedule=Schedule(tuple(commands))))
        return program_text(program)

    def features(self, point: Point) -> tuple[str, ...]:
        """Return the features of the point's options."""
        return tuple(option.feature for option in self.options_at(point).values())

    # ------------------------------------------------------------ walks

    def neighbours(self, point: Point) -> Iterator[Point]:
        """Yield the points that differ from one at one axis."""
        for axis in self.axes(point):
            for option in axis.options:
                other = self.normalize(point_of({**dict(point), axis.name: option.name}))
                if other != point:
                    yield other

    def random(self, numbers: Random, changes: int) -> Point:
        """Return a point with options other than the usual at so many axes at most."""
        return self.mutated((), numbers, changes)

    def mutated(self, point: Point, numbers: Random, changes: int = 1) -> Point:
        """Return a point that differs at so many axes at most, evenly of planner and kernels."""
        for _ in range(changes):
            axes = self.axes(point)
            groups = [[a for a in axes if a.name.startswith(head)] for head in (PLAN, KERNEL)]
            group = numbers.choice([group for group in groups if group] or [[]])
            if not group:
                return point
            axis = numbers.choice(group)
            option = numbers.choice(axis.options)
            point = self.normalize(point_of({**dict(point), axis.name: option.name}))
        return point

    def every(self) -> Iterator[Point]:
        """Yield all points, the planner's options in the outer loops."""
        for options in product(*(axis.options for axis in self.planner)):
            names = (axis.name for axis in self.planner)
            planned = point_of({n: o.name for n, o in zip(names, options, strict=True)})
            axes = self._kernel_axes(self.settings_of(planned))
            for inner in product(*(axis.options for axis in axes)):
                by_axis = {axis.name: option.name for axis, option in zip(axes, inner, strict=True)}
                yield point_of({**dict(planned), **by_axis})

    def count(self, most: int = 100_000) -> int:
        """Count how many points there are, at most so many."""
        return sum(1 for _ in islice(self.every(), most))


def _join(old: Any, name: str, value: Any) -> Any:
    """Return the value of a field of settings: of sets, static sizes and paths by name, with those
    that are there."""
    if isinstance(old, frozenset):
        return old | value
    return tuple(sorted((*old, *value))) if name in ("static", "paths") else value

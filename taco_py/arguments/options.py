"""The options of a call: all that it says besides its text and its operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Any

import numpy as np

from codegen.machine.target import TARGETS, Where
from codegen.records import dataclass
from taco_py.arguments.learned_price import ANALYTIC, Price, check_price
from taco_py.arguments.option_checks import (
    MEASURE,
    TUNED,
    as_schedules,
    check_allow,
    check_budget,
    check_casting,
    check_forbid,
    check_libraries,
    check_static,
    check_target,
    check_threads,
)
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.data.storage.borrow import as_dtype

CHECKS: Mapping[str, Callable[[Any], Any]] = MappingProxyType({
    "schedule": as_schedules,
    "threads": check_threads,
    "dtype": partial(as_dtype, what="dtype"),
    "casting": check_casting,
    "static": check_static,
    "libraries": check_libraries,
    "schedule_budget": check_budget,
    "forbid": check_forbid,
    "allow": check_allow,
    "target": check_target,
    "price": check_price,
})  # fmt: skip
"""How keyword arguments are checked, in the order in which mistakes are reported."""
NONE_BY_DEFAULT = frozenset(("schedule", "threads", "dtype", "static", "schedule_budget"))
"""The keyword arguments of which None says as much as leaving them out."""
CHECKED_LATER = ("format", "path", "outputs", "border", "shape")
"""The keyword arguments that are checked against the text, by who knows what it assigns."""


@dataclass(frozen=True, slots=True)
class CallOptions:
    """All that a call says besides its text and its operands.

    Options that compare equal lead to equal plans of an assignment.

    path, contract  einsum's: contractions in the order in which they are taken, None to choose
    weak       whether a Python number takes the dtype of what it meets; for einsum it is an array
    wide_sums  whether a sum of small integers is of the type of `numpy.sum`; einsum's is not
    measure    whether the best few schedules are timed on the operands and the fastest is taken
    libraries  whether routines of libraries may be called in place of generated code
    often      whether it is one of many calls, as of a function: see `Libraries.often`
    schedule_budget  seconds of the search for a schedule, None for as many as it takes
    memory     elements that each intermediate of a contraction may store
    forms, look_up, reversed, orders   as `planner.ir.goal` has them
    forbid     the rules that take no part, by name
    allow      what a plan may lose: see `check_allow`
    target     what kernels run on: "c", "cuda" or "cuda-emulated"
    memory_limit  bytes that calls of a kernel may take at once, None for what the process may
    tuned      whether a plan is looked for in the store of tuned plans
    price      by which plans are compared where no schedule is given: see `learned_price`
    plan       the text of the plan that is carried out, "" to make one
    schedules, paths  of statements among several, by the names that they assign
    outputs, border, shape  as the call says them: which results, and where these end
    """

    format: Any = None
    schedule: Schedule | None = None
    threads: int | None = None
    dtype: np.dtype[Any] | None = None
    casting: str = "safe"
    static: tuple[tuple[str, int], ...] = ()
    path: Any = None
    contract: bool = True
    weak: bool = True
    wide_sums: bool = True
    measure: bool = False
    libraries: bool = True
    often: bool = False
    schedule_budget: float | None = None
    memory: float = inf
    forms: bool | None = None
    look_up: bool = True
    reversed: frozenset[tuple[str, str, int]] = frozenset()
    orders: frozenset[tuple[str, int, tuple[str, ...]]] = frozenset()
    forbid: frozenset[str] = frozenset()
    allow: frozenset[str] = frozenset()
    target: str = "c"
    memory_limit: int | None = None
    tuned: bool = False
    price: Price = ANALYTIC
    plan: str = ""
    schedules: tuple[tuple[str, Schedule], ...] = ()
    paths: tuple[tuple[str, Any], ...] = ()
    outputs: Any = field(default=None, compare=False)
    border: Any = field(default="error", compare=False)
    shape: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, keywords: Mapping[str, Any]) -> CallOptions:
        """Check the keyword arguments of a call; those that are left out have their defaults.

        Raises NotationError, OperandTypeError, DimensionError or ScheduleError.
        """
        schedule = keywords.get("schedule")
        word = schedule if isinstance(schedule, str) else ""
        if word not in (MEASURE, TUNED):
            return cls.of_kernel(keywords)
        options = cls.of_kernel({**keywords, "schedule": None})
        return replace(options, measure=word == MEASURE, tuned=word == TUNED)

    @classmethod
    def of_kernel(cls, keywords: Mapping[str, Any]) -> CallOptions:
        """Check the keyword arguments of a kernel without data, which no schedule is timed on.

        Raises what `of` raises.
        """
        values: dict[str, Any] = {}
        for name, check in CHECKS.items():
            value = keywords.get(name)
            if value is not None or (name in keywords and name not in NONE_BY_DEFAULT):
                values[name] = check(value)
        for name in CHECKED_LATER:
            if name in keywords:
                values[name] = keywords[name]
        for name in ("schedule", "path"):
            if isinstance(values.get(name), Mapping):
                values[f"{name}s"] = tuple((n, _frozen(v)) for n, v in values.pop(name).items())
        return cls(**values)

    def with_price(self, price: Any) -> CallOptions:
        """Return the options with the price that plans are compared by.

        Raises OperandTypeError for what is no price.
        """
        return replace(self, price=check_price(price))

    @property
    def is_native(self) -> bool:
        """Tell whether kernels are functions of this process, which runs no device."""
        return TARGETS[self.target].where is Where.NATIVE

    @property
    def chosen_by_data(self) -> bool:
        """Tell whether the schedule is chosen by timing, now or before, or by a learned price."""
        return self.measure or self.tuned or self.is_priced

    @property
    def is_priced(self) -> bool:
        """Tell whether the schedule is left to a learned price."""
        is_open = self.schedule is None and not self.schedules and not self.plan
        return self.price != ANALYTIC and is_open

    @property
    def counts(self) -> bool:
        """Tell whether plans count elements, and are for operands of these sizes alone."""
        return self.memory < inf

    @property
    def is_bounded(self) -> bool:
        """Tell whether the call states a border or the shape of its result."""
        return (self.border, self.shape) != ("error", None)


def _frozen(value: Any) -> Any:
    """Return a path whose lists are tuples, so that options have a hash; others as they are."""
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value

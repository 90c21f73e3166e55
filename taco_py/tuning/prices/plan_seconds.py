"""The seconds that plans are expected to take, by the analytic price or by a learned one.

kernels of all plans  →  features, each kernel once  →  one pass over the trees  →  sums by plan
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Protocol

import numpy as np

from codegen.records import dataclass
from taco_py.compiler.cost.calibrated import as_shipped
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.plan_price import PricedFor
from taco_py.tuning.prices.copy_features import COPIES, Copy, features_of_copy
from taco_py.tuning.prices.forest import Rows
from taco_py.tuning.prices.kernel_features import KernelFacts, features_of
from taco_py.tuning.prices.price_model import LearnedModel, PriceModel, rows_of

CLEAR = 1.15
"""How many times as fast a plan is that is clearly faster."""


@dataclass(frozen=True, slots=True)
class ExpectedSeconds:
    """What a plan is expected to take: the median, and the quartiles around it.

    outside  whether a kernel of the plan is unlike all that the price was learned from
    """

    seconds: float
    low: float
    high: float
    outside: bool = False

    def may_lose_to(self, other: ExpectedSeconds) -> bool:
        """Tell whether another plan may be clearly faster: its quartiles are below this median."""
        return other.seconds < self.high and other.low * CLEAR < self.seconds


class PlanPrices(Protocol):
    """The prices of the plans of one call.

    priced  the operands of the call, its machine and its threads
    """

    priced: PricedFor

    @property
    def model(self) -> LearnedModel | None:
        """Return the model; None for the analytic price."""
        ...

    def of(self, plans: Sequence[Plan | None]) -> list[ExpectedSeconds]:
        """Return the seconds of plans; infinite where there is none."""
        ...


@dataclass(frozen=True, slots=True)
class _Kernel:
    """A kernel or a copy of a plan: its analytic seconds, and the row of its features."""

    seconds: float
    row: int


class PlanSeconds:
    """The prices of the plans of one call, with or without a model.

    priced  the operands of the call, its machine and its threads
    model   None for the analytic price
    with_features  whether features are counted without a model too: they have the price as shipped,
            as models correct it
    """

    def __init__(
        self, priced: PricedFor, model: PriceModel | None, with_features: bool = False
    ) -> None:
        self.with_features = with_features or model is not None
        shipped = replace(priced, machine=as_shipped(priced.machine))
        self.priced, self.model = shipped if self.with_features else priced, model
        self.rows: list[np.ndarray[tuple[int], np.dtype[np.float64]]] = []
        self._ratios, self._outside = np.ones((3, 0)), np.zeros(0, bool)
        self.kernels: dict[tuple[object, ...], _Kernel] = {}

    def of(self, plans: Sequence[Plan | None]) -> list[ExpectedSeconds]:
        """Return the seconds of plans; infinite where there is none."""
        parts = [self._parts(plan) for plan in plans]
        self._predict()
        expected = []
        for part in parts:
            if part is None:
                expected.append(ExpectedSeconds(inf, inf, inf))
                continue
            rest, kernels = part
            seconds, places = np.array([k.seconds for k in kernels]), [k.row for k in kernels]
            if self.model is None:
                total = rest + float(seconds.sum())
                expected.append(ExpectedSeconds(total, total, total))
                continue
            low, middle, high = (rest + float(seconds @ ratio[places]) for ratio in self._ratios)
            expected.append(ExpectedSeconds(middle, low, high, bool(self._outside[places].any())))
        return expected

    def _predict(self) -> None:
        """Pass the kernels that are new over the trees, all at once."""
        count = len(self._outside)
        if self.model is None or count == len(self.rows):
            return
        ratios, outside = self.model.predict(rows_of(self.rows[count:]))
        self._ratios = np.hstack([self._ratios, ratios])
        self._outside = np.concatenate([self._outside, outside])

    def parts_of(self, plan: Plan) -> tuple[float, list[float], Rows]:
        """Return the analytic seconds around kernels and copies, of each of them, and its features.

        Raises ScheduleError where a kernel cannot be made.
        """
        parts = self._parts(plan)
        if parts is None:
            raise ScheduleError("The plan has no price, for its loops cannot be as they are")
        rest, kernels = parts
        rows = rows_of([self.rows[kernel.row] for kernel in kernels])
        return rest, [kernel.seconds for kernel in kernels], rows

    def _parts(self, plan: Plan | None) -> tuple[float, list[_Kernel]] | None:
        """Return the seconds around them, and the kernels and copies; None without a price."""
        if plan is None:
            return None
        facts = self.priced.facts_of(plan)
        try:
            kernels = [self._kernel(kernel, facts) for kernel in plan.kernels]
            copies = [self._copy(step, facts) for step in plan.steps if isinstance(step, COPIES)]
            rest = self.priced.around_kernels(plan) - sum(copy.seconds for copy in copies)
        except ScheduleError:
            return None
        if any(kernel.seconds == inf for kernel in kernels):
            return None
        return max(rest, 0.0), kernels + copies

    def _copy(self, step: Copy, facts: Mapping[str, Operand]) -> _Kernel:
        key = (type(step), facts[step.source], facts[step.target])
        if key not in self.kernels:
            seconds, row = self.priced.around_loops(step, facts), len(self.rows)
            if self.with_features:
                source, threads = facts[step.source], self.priced.threads
                copied = features_of_copy(step, source, facts[step.target], seconds, threads)
                self.rows.append(copied)
            self.kernels[key] = _Kernel(seconds, row)
        return self.kernels[key]

    def _kernel(self, step: KernelStep, facts: Mapping[str, Operand]) -> _Kernel:
        operands = {name: facts[step.source(name)] for name, _ in step.problem.operands}
        key = (step.problem, step.schedule, step.sizes, tuple(operands.values()))
        if key not in self.kernels:
            seconds, row = self.priced.kernel(step, facts), len(self.rows)
            if self.with_features and seconds < inf:
                operands = {
                    name: replace(operand, type=step.problem.type_of(name))
                    for name, operand in operands.items()
                }
                priced = self.priced
                self.rows.append(
                    features_of(
                        KernelFacts(step, operands, priced.machine, seconds, priced.threads)
                    )
                )
            self.kernels[key] = _Kernel(seconds, row)
        return self.kernels[key]

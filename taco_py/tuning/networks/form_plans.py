"""The forms of the plans of one call, each kernel once; and networks as prices of plans."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

import numpy as np

from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.plan_price import PricedFor
from taco_py.tuning.networks.network import Network
from taco_py.tuning.networks.plan_arrays import PlanForms, join_plans
from taco_py.tuning.networks.tree_and_graph import KernelForm, form_of
from taco_py.tuning.prices.kernel_features import KernelFacts
from taco_py.tuning.prices.plan_seconds import ExpectedSeconds, PlanPrices, PlanSeconds
from taco_py.tuning.prices.price_model import LearnedModel, PriceModel


class PlanFormer:
    """The forms of kernels of one call, noted by what they depend on."""

    def __init__(self, priced: PricedFor) -> None:
        self.priced = priced
        self.kernels: dict[tuple[object, ...], tuple[float, KernelForm]] = {}

    def forms(self, plans: Sequence[Plan]) -> PlanForms:
        """Return plans with the forms of their kernels. Raises ScheduleError for loops that none
        can have."""
        forms: list[KernelForm] = []
        seconds: list[float] = []
        places: dict[int, int] = {}
        kernels, rest = [], []
        for plan in plans:
            facts, mine = self.priced.facts_of(plan), list[int]()
            for step in plan.kernels:
                price, form = self._kernel(step, facts)
                place = places.setdefault(id(form), len(forms))
                if place == len(forms):
                    forms.append(form)
                    seconds.append(price)
                mine.append(place)
            kernels.append(tuple(mine))
            rest.append(self.priced.around_kernels(plan))
        return PlanForms(tuple(forms), np.array(seconds), tuple(kernels), np.array(rest))

    def _kernel(self, step: KernelStep, facts: Mapping[str, Operand]) -> tuple[float, KernelForm]:
        """Return a kernel's analytic seconds and its form. Raises ScheduleError."""
        operands = {
            name: replace(facts[step.source(name)], type=step.problem.type_of(name))
            for name, _ in step.problem.operands
        }
        key = (step.problem, step.schedule, step.sizes, tuple(operands.values()))
        if key not in self.kernels:
            seconds = self.priced.kernel(step, facts)
            if seconds == inf:
                raise ScheduleError("The kernel has no price, for its loops cannot be as they are")
            machine, threads = self.priced.machine, self.priced.threads
            form = form_of(KernelFacts(step, operands, machine, seconds, threads))
            self.kernels[key] = seconds, form
        return self.kernels[key]


class NetworkSeconds:
    """The prices of the plans of one call by a network."""

    def __init__(self, priced: PricedFor, network: Network) -> None:
        self.priced, self.model = priced, network
        self.former = PlanFormer(priced)

    def of(self, plans: Sequence[Plan | None]) -> list[ExpectedSeconds]:
        """Return the seconds of plans; infinite where there is none.

        Nothing is known of how sure they are, so each counts as unlike what was measured.
        """
        none = ExpectedSeconds(inf, inf, inf)
        expected = [none for _ in plans]
        able: list[tuple[int, PlanForms]] = []
        for place, plan in enumerate(plans):
            if plan is not None and any(True for _ in plan.kernels):
                try:
                    able.append((place, self.former.forms((plan,))))
                except ScheduleError:
                    continue
        if able:
            seconds = self.model.seconds(join_plans([forms for _, forms in able]))
            for (place, _), one in zip(able, seconds.tolist(), strict=True):
                expected[place] = ExpectedSeconds(one, one, one, outside=True)
        return expected


def plan_prices(priced: PricedFor, model: LearnedModel | None) -> PlanPrices:
    """Return the prices of the plans of a call by a model; the analytic ones where it is None."""
    if isinstance(model, Network):
        return NetworkSeconds(priced, model)
    assert model is None or isinstance(model, PriceModel)
    return PlanSeconds(priced, model)

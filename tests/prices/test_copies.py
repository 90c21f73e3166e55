"""Copies of plans: they have prices and features of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from taco_py.planner.ir.nodes import KernelStep, Locate, Reformat
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.prices.copy_features import COPIES
from taco_py.tuning.prices.kernel_features import FEATURES
from taco_py.tuning.prices.plan_seconds import PlanSeconds
from tests.prices.test_forest import drawn_model

PLACE = {name: place for place, name in enumerate(FEATURES)}
rng = np.random.default_rng(0)


def matrix(rows: int, columns: int, entries: int, form: str = "csr") -> Any:
    coordinates = rng.integers(0, rows, entries), rng.integers(0, columns, entries)
    return sp.coo_array((rng.random(entries), coordinates), shape=(rows, columns)).asformat(form)


def space(text: str, **operands: Any) -> CallSpace:
    return space_of(tunable(text, operands, {"threads": 1}))


def test_a_copy_is_a_part_of_a_plan_with_features() -> None:
    call = space("z[j] = sum(i, A[i,j] * B[i,j])", A=matrix(300, 200, 900),
                 B=matrix(300, 200, 900, "csc"))  # fmt: skip
    plan = call.space.plan(())
    assert any(isinstance(step, Reformat) for step in plan.steps)
    prices = PlanSeconds(call.priced, None, with_features=True)
    rest, seconds, rows = prices.parts_of(plan)
    kinds = [step for step in plan.steps if isinstance(step, (KernelStep, *COPIES))]
    assert len(seconds) == len(rows) == len(kinds)
    copies = rows[:, PLACE["step reformat"]] == 1.0
    assert copies.sum() == sum(isinstance(step, Reformat) for step in plan.steps)
    assert (rows[copies][:, PLACE["order changes"]] == 1.0).all()
    assert rest + sum(seconds) == pytest.approx(prices.of([plan])[0].seconds)


def test_positions_of_each_element_cost_by_the_elements() -> None:
    """An operand of few entries is located in an array of as many numbers as it has elements."""

    def located(rows: int) -> float:
        A, B = matrix(rows, 300, 900), matrix(rows, 300, 3000, "csc")
        call = space("z[j] = sum(i, A[i,j] * B[i,j])", A=A, B=B)
        plans = (call.plan(point) for point in call.space.neighbours(()))
        found = [p for p in plans if p and any(isinstance(s, Locate) for s in p.steps)]
        return min(prices.seconds for prices in PlanSeconds(call.priced, None).of(found))

    assert located(8000) > 6 * located(1000)


def test_more_threads_than_ran_are_outside_of_a_model() -> None:
    model = drawn_model(0)
    rows = np.zeros((2, len(FEATURES)))
    rows[1, PLACE["threads"]] = 64.0
    assert model.predict(rows)[1].tolist() == [False, True]

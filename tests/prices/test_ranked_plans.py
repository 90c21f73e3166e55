"""Plans by their prices: nothing is compiled for the list, and each row can be measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.data.kernels import KERNELS
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.printer import program_text
from tests.prices.test_forest import drawn_model

rng = np.random.default_rng(0)
A = sp.random_array((300, 200), density=0.05, format="csr", rng=rng)
CALLS: dict[str, dict[str, Any]] = {
    "y[i] = A[i,j] * x[j]": {"A": A, "x": rng.random(200)},
    "C[i,k] = A[i,j] * B[j,k]": {"A": A, "B": rng.random((200, 8))},
    "C[i,j] = A[i,k] * B[k,j]": {"A": A, "B": A.T.tocsr()},
    "C[i,k] = X[i,j] * Y[j,k]": {"X": rng.random((40, 50)), "Y": rng.random((50, 30))},
    "s[i] = sum(j, A[i,j]); y[i,j] = A[i,j] / s[i]": {"A": A},
}


@pytest.mark.parametrize("model", [None, 0])
@pytest.mark.parametrize("text", CALLS)
def test_plans_come_in_the_order_of_their_prices_and_parse_back(
    text: str, model: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a kernel is compiled")

    price = "analytic" if model is None else drawn_model(model)
    with monkeypatch.context() as patch:
        patch.setattr(KERNELS, "get_or_build", refuse)
        rows = tp.rank(text, CALLS[text], price=price, limit=12)
    assert 1 < len(rows) <= 12
    seconds = [row.seconds for row in rows]
    assert seconds == sorted(seconds)
    assert len({row.plan for row in rows}) == len(rows)
    for row in rows:
        assert program_text(parse_program(row.plan)) == row.plan
        low, high = row.interval
        assert low <= row.seconds <= high
        assert row.unsure or model is not None


def test_a_row_is_measured_and_its_result_is_compared() -> None:
    text = "C[i,k] = A[i,j] * B[j,k]"
    for row in tp.rank(text, CALLS[text], limit=3):
        assert 0.0 < row.measure() < 1.0


@pytest.mark.parametrize("name", ["limit", "seconds"])
@pytest.mark.parametrize("value", [0, -1, "3", float("nan")])
def test_limits_that_are_none_are_refused(name: str, value: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match=f"Expected {name} to be"):
        tp.rank("y[i] = A[i,j] * x[j]", A=A, x=rng.random(200), **{name: value})


@pytest.mark.parametrize("price", ["learnt", 3, object()])
def test_prices_that_there_are_not_are_refused(price: Any) -> None:
    with pytest.raises(tp.OperandTypeError, match="Expected price to be"):
        tp.rank("y[i] = A[i,j] * x[j]", A=A, x=rng.random(200), price=price)

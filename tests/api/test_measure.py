"""`schedule="measure"`: results are those of any schedule, and the choice is remembered."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.api.arguments import Settings
from taco_py.api.measure import Choice, alternatives, fastest
from taco_py.diagnostics.errors import ScheduleError
from taco_py.schedule.schedule import Schedule
from tests.problems import operands as sizes_of
from tests.problems import problem

TEXTS = (
    "A[i,j] = B[i,k] * C[k,j]",
    "y[i] = sum(j, k, B[i,j] * C[j,k] * x[k])",
    "A[i,j] = B[i,j] + C[i,j]",
    "s = B[i,i]",
)


def operands(text: str) -> dict[str, Any]:
    rng = np.random.default_rng(2)
    known: dict[str, Any] = {
        name: sp.random_array((30, 30), density=0.2, format="csr", rng=rng) for name in "BC"
    }
    known["x"] = rng.random(30)
    right = text.partition("=")[2]
    return {name: value for name, value in known.items() if f"{name}[" in right}


@pytest.mark.parametrize("text", TEXTS)
def test_results_are_the_same(text: str) -> None:
    given = operands(text)
    expected = tp.evaluate(text, given)
    for _ in range(2):
        found = tp.evaluate(text, given, schedule="measure")
        assert abs(found - expected).max() < 1e-12


def test_explain_shows_what_was_measured() -> None:
    given = operands(TEXTS[0])
    assert "loop order" in tp.explain(TEXTS[0], given, schedule="measure")


def test_formats_alone_cannot_be_measured() -> None:
    with pytest.raises(tp.ScheduleError, match="times them on data"):
        tp.compile("y[i] = A[i,j] * x[j]", A=tp.CSR, x=tp.dense(1), schedule="measure")


def test_contractions_that_were_given_are_kept() -> None:
    known = problem("Z[i,l] = A[i,j] * B[j,k] * C[k,l]", dict.fromkeys("ABC", "CSR"))
    for path, found in ((None, True), (((1, 2), (0, 1)), False)):
        settings = Settings(path=path)
        others = alternatives(known.assignment, sizes_of(known), known.result, settings)
        assert bool(others) == found


def test_threads_that_call_at_once_measure_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = operands(TEXTS[0])
    measured: list[int] = []

    def counted(plain: Settings, others: Any, attempt: Any) -> Settings:
        measured.append(1)
        return fastest(plain, others, attempt)

    monkeypatch.setattr("taco_py.api.measure.fastest", counted)
    text = TEXTS[0].replace("A[", "Once[")
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: tp.evaluate(text, given, schedule="measure"), range(4)))
    assert measured == [1]
    assert all(abs(each - found[0]).max() == 0 for each in found)


def choices() -> tuple[Settings, ...]:
    return tuple(Settings(schedule=s) for s in (None, *map(Schedule.parse, ("serial()", ""))))


def counting(order: dict[Settings, float]) -> Callable[[Settings], None]:
    """An attempt that takes as long as it says; a negative time is a refusal."""
    from time import perf_counter

    def attempt(choice: Settings) -> None:
        if order[choice] < 0:
            raise ScheduleError("Expected nothing, found something")
        end = perf_counter() + order[choice]
        while perf_counter() < end:
            pass

    return attempt


def test_the_fastest_is_taken_and_refusals_are_passed_over() -> None:
    first, second, third = choices()
    times = {first: 0.02, second: -1.0, third: 0.0}
    assert fastest(first, (Choice(second), Choice(third)), counting(times)) == third


def test_what_is_expected_to_be_much_slower_is_not_tried() -> None:
    first, second, third = choices()
    tried: list[Settings] = []
    others = (Choice(second, 1e-4), Choice(third, 1e4))
    fastest(first, others, tried.append)
    assert set(tried) == {first, second}


def test_what_is_much_slower_is_not_tried_again() -> None:
    first, second, _ = choices()
    tried: list[Settings] = []
    run = counting({first: 0.0, second: 0.03})

    def attempt(choice: Settings) -> None:
        tried.append(choice)
        run(choice)

    assert fastest(first, (Choice(second),), attempt) == first
    assert tried.count(second) == 2


def test_products_are_tried_in_pairs_and_loops_only_where_they_may_pay() -> None:
    """One kernel of the chain would take 200 ^ 5 steps."""
    matrices = [np.random.default_rng(k).random((200, 200)) for k in range(4)]
    subscripts = "ij,jk,kl,lm->im"
    found = tp.einsum(subscripts, *matrices, schedule="measure")
    np.testing.assert_allclose(found, np.linalg.multi_dot(matrices), rtol=1e-12)

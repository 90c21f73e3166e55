"""Which loop threads share, and the reason where none may."""

from __future__ import annotations

import pytest

from taco_py.compiler.concrete.concretize import concretize
from taco_py.compiler.concrete.nodes import Forall
from taco_py.compiler.iteration.graph import IterationGraph, build_graph
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.parallel import Parallelism, choose_parallel
from taco_py.compiler.schedule.schedule import OPEN, Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from tests.problems import problem


def graph(
    text: str, formats: dict[str, str], orders: str, result: str | None = None
) -> IterationGraph:
    whole = problem(text, formats, result)
    return build_graph(whole, concretize(whole, tuple(tuple(o) for o in orders.split())))


SPMV = "y[i] = A[i,j] * x[j]"
PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
CSRS = {"A": "CSR", "B": "CSR"}

SHARED = (
    (SPMV, {"A": "CSR"}, "ij", "d", "i"),
    (SPMV, {"A": "DCSR"}, "ij", "d", "i"),
    (PRODUCT, {"A": "CSR"}, "ikj", "dd", "i"),
    (PRODUCT, CSRS, "ikj", "dd", "i"),
    (PRODUCT, {"B": "CSC"}, "jki", "dd", "j"),
    ("r[i] = b[i] - A[i,j] * x[j]", {"A": "CSR"}, "i ij", "d", "i"),
    (PRODUCT, CSRS, "ikj", "ds", "i"),
    (PRODUCT, {"A": "DCSR", "B": "CSR"}, "ikj", "ss", "i"),
    ("y[i] = a[i] + b[i]", {"a": "s", "b": "s"}, "i i", "d", "i"),
    ("y[i] = a[i] + b[i]", {"a": "s", "b": "s"}, "i i", "s", "i"),
)


@pytest.mark.parametrize(("text", "formats", "orders", "result", "index"), SHARED)
def test_shared(text: str, formats: dict[str, str], orders: str, result: str, index: str) -> None:
    found = choose_parallel(graph(text, formats, orders, result), OPEN)
    assert found.index == index
    assert isinstance(found.statement, Forall)
    assert found.statement.parallel
    assert found.reason == f"loop {index}: each iteration writes its own part of the result"


def test_sums_of_ranges_are_kept_apart() -> None:
    found = choose_parallel(graph("s = A[i,j]", {"A": "CSR"}, "ij"), OPEN)
    assert found.index == "i"
    assert found.reason == "loop i: sums of ranges are kept apart, and added up in order"


REFUSED = (
    (SPMV, {"A": "CSC"}, "ji", "d", "the loop j is summed over"),
    (SPMV, {"A": "CSC"}, "ji", "s", "all loops add to one workspace"),
    (
        "C[i,j] = A[i,j] + B[i,j]",
        {"A": "CSR", "B": "CSC"},
        "ij ji",
        "dd",
        "the terms are computed one after another",
    ),
    (SPMV, {"A": "COO"}, "ij", "d", "the loop i may meet a coordinate of A1 more than"),
)


@pytest.mark.parametrize(("text", "formats", "orders", "result", "reason"), REFUSED)
def test_refused(
    text: str, formats: dict[str, str], orders: str, result: str | None, reason: str
) -> None:
    found = choose_parallel(graph(text, formats, orders, result), OPEN)
    assert found.index is None
    assert reason in found.reason
    assert "; to share one: " in found.reason


def test_without_loops_there_is_nothing_to_share() -> None:
    whole = problem("s = a * b")
    found = choose_parallel(build_graph(whole, concretize(whole, ((),))), OPEN)
    assert found.reason == "no loop, for there is no loop to share among threads"


def test_one_thread_is_a_choice() -> None:
    serial = graph(SPMV, {"A": "CSR"}, "ij", "d")
    found = choose_parallel(serial, Schedule.parse("serial()"))
    assert (found.statement, found.index) == (serial.statement, None)
    assert found.reason == "one thread was asked for"


def scheduled(schedule: str, form: str = "CSR") -> Parallelism:
    whole = problem(SPMV, {"A": form}, "d")
    commands = Schedule.parse(schedule)
    loops = apply_all(Loops(whole.assignment, textual_orders(whole.assignment)), commands)
    return choose_parallel(loops.graph(whole), commands)


def test_what_cannot_be_had_is_refused_in_words() -> None:
    with pytest.raises(ScheduleError) as caught:
        scheduled("reorder(j,i), parallelize(j)", "CSC")
    assert caught.value.message == (
        "The loop j cannot be parallel: the loop j is summed over: its iterations add to the same "
        "elements"
    )
    assert caught.value.hint is not None
    assert "parallelize(j,CPUThread,Atomics)" in caught.value.hint


def test_what_is_asked_for_is_shared() -> None:
    assert scheduled("parallelize(i)").index == "i"
    assert scheduled("split(i,i0,i1,4), parallelize(i0)").index == "i0"
    assert scheduled("reorder(j,i), parallelize(j,CPUThread,Atomics)", "CSC").index == "j"

"""Schedules as text and as values, and the loop orders that they ask for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taco_py.diagnostics.errors import ScheduleError
from taco_py.schedule.commands import Parallelize, Reorder, Schedule, Serial, orders_of
from tests.problems import assignment

names = st.from_regex(r"[a-z][a-z0-9_]{0,3}", fullmatch=True)
commands = st.one_of(
    st.lists(names, min_size=2, max_size=5, unique=True).map(tuple).map(Reorder),
    names.map(Parallelize),
    st.just(Serial()),
)
schedules = st.lists(commands, max_size=4).map(tuple).map(Schedule)


@given(schedules)
def test_what_prints_parses_back(schedule: Schedule) -> None:
    assert Schedule.parse(str(schedule)) == schedule


@given(st.text(st.sampled_from("reorder(i,j) parallelize\n;é"), max_size=30))
def test_no_text_crashes_the_parser(text: str) -> None:
    try:
        Schedule.parse(text)
    except ScheduleError as error:
        assert error.span is not None
        assert 0 <= error.span.start <= error.span.stop <= len(text)


def test_parse() -> None:
    schedule = Schedule.parse(" reorder( i, k ,j ),parallelize(i) , serial()")
    assert schedule.commands == (Reorder(("i", "k", "j")), Parallelize("i"), Serial())
    assert schedule.reorders == (Reorder(("i", "k", "j")),)
    assert schedule.parallel == "i"
    assert schedule.serial
    assert Schedule.parse("") == Schedule()
    assert Schedule().parallel is None
    assert Schedule.parse("parallelize(i), parallelize(j)").parallel == "j"


MISTAKES = (
    (
        "reorder(i,j), tile(i,32)",
        "Expected a scheduling command, found 'tile'\n"
        "  reorder(i,j), tile(i,32)\n"
        "                ^^^^^^^^^^\n"
        "hint: the commands are reorder, parallelize, serial",
    ),
    (
        "reorder(i)",
        "Expected two or more different indices for reorder, found i\n  reorder(i)\n  ^^^^^^^^^^",
    ),
    (
        "serial(), reorder(i,j,i)",
        "Expected two or more different indices for reorder, found i, j, i\n"
        "  serial(), reorder(i,j,i)\n"
        "            ^^^^^^^^^^^^^^",
    ),
    (
        "parallelize()",
        "Expected one index for parallelize, found nothing\n  parallelize()\n  ^^^^^^^^^^^^^",
    ),
    ("serial(i)", "Expected nothing for serial, found i\n  serial(i)\n  ^^^^^^^^^"),
    (
        "reorder(i,j) serial()",
        "Expected a command such as reorder(i,j), found something else\n"
        "  reorder(i,j) serial()\n"
        "  ^^^^^^^^^^^^^^^^^^^^^\n"
        "hint: the commands are reorder, parallelize, serial, with commas between them",
    ),
)


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_are_pointed_at(text: str, message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule.parse(text)
    assert str(caught.value) == message


PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
ORDERS = (
    (PRODUCT, "", "ijk"),
    (PRODUCT, "reorder(i,k,j)", "ikj"),
    (PRODUCT, "reorder(k,i)", "kji"),
    (PRODUCT, "reorder(j,i), reorder(k,i)", "jki"),
    # a command concerns the terms that have all its indices
    ("y[i] = b[i] + A[i,j] * x[j]", "reorder(j,i)", "i ji"),
    ("C[i,j] = A[i,j] + B[i,j]", "reorder(j,i)", "ji ji"),
)


@pytest.mark.parametrize(("text", "schedule", "expected"), ORDERS)
def test_orders(text: str, schedule: str, expected: str) -> None:
    found = orders_of(Schedule.parse(schedule), assignment(text))
    assert " ".join("".join(order) for order in found) == expected


def test_an_index_that_no_term_has_is_refused() -> None:
    with pytest.raises(ScheduleError, match=r"indices that one term .* found reorder\(i,l\)"):
        orders_of(Schedule.parse("reorder(i,l)"), assignment(PRODUCT))


def test_an_inner_sum_stays_below_the_loops_it_depends_on() -> None:
    text = "y[i] = b[i] / (A[i,j] * x[j])"
    assert orders_of(Schedule.parse("reorder(i,j)"), assignment(text)) == (("i", "j"),)
    with pytest.raises(ScheduleError, match="the loop over j inside the one over i"):
        orders_of(Schedule.parse("reorder(j,i)"), assignment(text))

"""The schedule of a planned kernel says all that is chosen: loop orders, the way, commands."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.schedule.apply import loops_of
from taco_py.compiler.schedule.commands import Make, Nest, Parallelize, Reorder, Serial
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from tests.problems import plan, problem

SHARED = Schedule((Parallelize("i"),))
NESTS = Schedule.of_orders([("i", "k", "j"), ("i", "j")])
TILES = Make("tiles", (8,))


def test_a_schedule_of_orders_has_loops_as_they_nest() -> None:
    assert NESTS.orders == (("i", "k", "j"), ("i", "j"))
    assert NESTS.make == Make("loops")
    assert Schedule.of_orders([()]).orders == ((),)
    assert str(NESTS.then(SHARED)) == ("loops(i,k,j), loops(i,j), parallelize(i,CPUThread,NoRaces)")


def test_another_way_comes_behind_the_orders_and_is_given_once() -> None:
    tiled = NESTS.then(SHARED).with_way(TILES)
    assert str(tiled) == (
        "loops(i,k,j), loops(i,j), make(tiles,8), parallelize(i,CPUThread,NoRaces)"
    )
    assert tiled.with_way(TILES) == tiled
    assert tiled.with_way(Make("staged")).make == Make("staged")
    assert tiled.with_way(Make()) == NESTS.then(SHARED)
    assert tiled.on_loops == SHARED
    assert (tiled.orders, tiled.parallel, tiled.serial) == (NESTS.orders, "i", False)


def test_orders_and_way_are_none_of_the_commands_on_loops() -> None:
    tiled = NESTS.with_way(TILES)
    assert not (tiled.shapes or tiled.merges or tiled.marked or tiled.sharing.orders)


def test_other_names_are_for_orders_too() -> None:
    names = {"i": "a", "j": "b", "k": "c"}
    named = NESTS.with_way(TILES).then(SHARED).renamed(names, {})
    assert str(named) == (
        "loops(a,c,b), loops(a,b), make(tiles,8), parallelize(a,CPUThread,NoRaces)"
    )


def test_each_part_of_a_schedule_tells_kernels_apart() -> None:
    whole = problem("C[i,j] = A[i,k] * B[k,j]", {})
    nests = Schedule.of_orders([("i", "k", "j")])
    schedules = (
        nests,
        Schedule.of_orders([("i", "j", "k")]),
        nests.with_way(Make("tiles")),
        nests.with_way(TILES),
        nests.then(SHARED),
    )
    assert len({Recipe(whole, schedule).key for schedule in schedules}) == len(schedules)


def test_the_loops_of_a_kernel_are_those_of_its_schedule() -> None:
    whole = problem("C[i,j] = A[i,k] * B[k,j] + D[i,j]", {})
    loops = loops_of(whole.assignment, NESTS.then(Schedule((Reorder(("k", "j")),))))
    assert loops.orders == (("i", "k", "j"), ("i", "j"))
    loops = loops_of(whole.assignment, NESTS.then(Schedule((Reorder(("j", "i")),))))
    assert loops.orders == (("j", "k", "i"), ("j", "i"))


def test_a_plan_prints_its_schedules() -> None:
    (kernel,) = plan(problem("y[i] = A[i,j] * x[j]", {"A": "CSR"})).kernels
    assert str(kernel.schedule) == "loops(i,j)"
    assert kernel.schedule.commands == (Nest(("i", "j")),)


def test_what_users_see_is_commands_that_are_read_back() -> None:
    a, b = np.ones((200, 200)), np.ones((200, 200))
    kernel = tp.compile("C[i,j] = A[i,k] * B[k,j]", A=tp.dense(2), B=tp.dense(2))
    assert Schedule.parse(str(kernel.schedule)) == kernel.schedule
    np.testing.assert_allclose(kernel(A=a, B=b), a @ b)
    assert not kernel.schedule.compiler_commands


@pytest.mark.parametrize("command", [Nest(("i", "j")), TILES], ids=str)
@pytest.mark.parametrize("more", [(), (Serial(),), (Reorder(("j", "i")),)], ids=len)
def test_what_planning_alone_gives_is_refused(
    command: Nest | Make, more: tuple[Serial | Reorder, ...]
) -> None:
    schedule = Schedule((*more, command))
    facts = {"A": tp.CSR, "x": tp.dense(1)}
    text = "y[i] = A[i,j] * x[j]"
    builder = tp.schedule(text, **facts)
    for ask in (
        lambda: tp.compile(text, **facts, schedule=schedule),
        lambda: tp.evaluate(text, A=np.eye(3), x=np.ones(3), schedule=schedule),
        lambda: builder.apply(schedule),
        lambda: builder.apply(command),
    ):
        with pytest.raises(tp.ScheduleError, match=r"found (loops|make)\(") as error:
            ask()
        assert error.value.hint
    assert str(builder.schedule) == ""

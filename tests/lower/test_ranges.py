"""Which coordinates nests of derived loops visit: each of them once, in whatever order.

The kernels of `R[i,j] = A[i,j,k]` are interpreted: an element of R counts the visits of its pair,
one for each k, whatever has become of the three loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import taco_py as tp
from taco_py.compiler.iteration.graph import conflicts
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.commands import Command, Reorder
from taco_py.compiler.schedule.legality import check
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.compiler.ways.recipe import Recipe
from taco_py.data.storage.pack import pack_coo
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.formats import CSF, Format, dense
from taco_py.language.notation.checks import accesses
from taco_py.language.notation.nodes import Assignment
from taco_py.language.problem import Problem, TensorType
from taco_py.language.provenance.relations import Divide, Fuse, Split
from taco_py.planner.ir.nodes import KernelStep
from taco_py.running.execute.run import Execution, compute
from tests.interpreted import interpreted
from tests.problems import assignment

COUNT: Assignment = assignment("R[i,j] = A[i,j,k]")
(A,) = accesses(COUNT.value)
Sizes = Mapping[str, int]


def visits(sizes: Sizes, schedule: Schedule, stored: Any, form: Format) -> Any:
    """How often each pair is visited, where `stored` says what A stores.

    Raises ScheduleError, also where A would have to be copied into another order first.
    """
    whole = Problem(COUNT, (("A", TensorType(form, "float64")),), TensorType(dense(2), "float64"))
    orders = textual_orders(COUNT)
    loops = apply_all(Loops(COUNT, orders), schedule)
    if conflicts(whole, A, loops.index_orders[0]):
        raise ScheduleError("A is stored in another order", hint="copy it")
    check(loops, whole)
    schedule = Schedule.of_orders(orders).then(schedule)
    kernel = interpreted(Recipe(whole, schedule))
    coordinates = list(np.nonzero(stored))
    data = pack_coo(coordinates, np.ones(len(coordinates[0])), stored.shape, form)
    places = tuple((index, "A", mode) for mode, index in enumerate(sizes))
    step = KernelStep("R", whole, schedule, places)
    execution = Execution({"A": data}, 1, kernels={("R", "evaluate"): kernel})
    return compute(step, execution, None).values


def check_visits(sizes: Sizes, schedule: Schedule, form: Format, part: float) -> None:
    stored = np.random.default_rng(1).random(tuple(sizes.values())) < part
    if form.is_dense:
        stored[...] = True
    found = visits(sizes, schedule, stored, form)
    np.testing.assert_array_equal(found, stored.sum(axis=2))


NESTS = (
    "split(i,a,b,3)",
    "split(i,a,b,3), reorder(b,a)",
    "split(i,a,b,3), reorder(a,j,k,b)",
    "split(i,a,b,100)",
    "divide(i,a,b,3), divide(b,c,d,2)",
    "divide(i,a,b,100), reorder(b,a)",
    "split(i,a,b,4), split(b,c,d,3)",
    "split(i,a,b,4), split(b,c,d,3), reorder(c,a,d)",
    "split(i,a,b,4), split(b,c,d,3), reorder(d,c,a)",
    "split(i,a,b,4), split(a,c,d,2), reorder(c,j,d,k,b)",
    "fuse(i,j,f)",
    "fuse(i,j,f), fuse(f,k,g)",
    "fuse(i,j,f), split(f,a,b,5)",
    "fuse(i,j,f), split(f,a,b,5), reorder(b,a)",
    "fuse(i,j,f), split(f,a,b,5), reorder(a,k,b)",
    "fuse(i,j,f), split(f,a,b,5), split(b,c,d,2), reorder(c,a,d)",
    "split(i,a,b,2), fuse(b,j,f)",
    "split(i,a,b,2), split(j,c,d,3), reorder(a,c,b,d), fuse(a,c,f), fuse(b,d,g)",
    "split(i,a,b,2), split(j,c,d,3), reorder(a,c,b,d), fuse(c,b,f), split(f,g,h,2)",
    "split(i,a,b,4), split(b,c,d,2), fuse(c,d,e)",
    "split(i,a,b,2), reorder(b,a,j,k), fuse(a,j,c), fuse(c,k,d)",
    "bound(i,a,7,MaxExact), split(a,b,c,7)",
)


@pytest.mark.parametrize("schedule", NESTS)
@pytest.mark.parametrize("sizes", [(7, 5, 2), (1, 1, 1), (0, 3, 2), (4, 6, 1)], ids=str)
def test_dense_nests(schedule: str, sizes: tuple[int, int, int]) -> None:
    if "bound" in schedule and sizes[0] != 7:
        return
    named = dict(zip("ijk", sizes, strict=True))
    check_visits(named, Schedule.parse(schedule), dense(3), 1.0)


SPARSE = (
    "split(i,a,b,3), split(j,c,d,2), reorder(a,c,b,d)",
    "split(i,a,b,4), split(b,c,d,3), reorder(a,c,d)",
    "divide(j,a,b,3), divide(k,c,d,2), reorder(a,i,b,c,d)",
    "fuse(i,j,f), split(f,a,b,5)",
    "fuse(i,j,f), pos(f,p,A), split(p,a,b,3)",
    "fuse(i,j,f), fuse(f,k,g), pos(g,p,A), divide(p,a,b,3)",
    "fuse(i,j,f), fuse(f,k,g), pos(g,p,A), split(p,a,b,6), split(b,c,d,4)",
    "fuse(j,k,f), pos(f,p,A), split(p,a,b,2), reorder(i,a,b)",
    "pos(k,p,A), split(p,a,b,2), reorder(i,j,b,a)",
    "split(j,a,b,2), pos(b,p,A), split(p,c,d,2)",
)


@pytest.mark.parametrize("schedule", SPARSE)
@pytest.mark.parametrize("part", [0.0, 0.2, 0.6, 1.0])
@pytest.mark.parametrize("sizes", [(7, 5, 3), (1, 1, 1), (3, 0, 2)], ids=str)
def test_sparse_nests(schedule: str, part: float, sizes: tuple[int, int, int]) -> None:
    named = dict(zip("ijk", sizes, strict=True))
    check_visits(named, Schedule.parse(schedule), CSF(3), part)


@st.composite
def nests(draw: Any) -> tuple[Command, ...]:
    """Up to four tiles and fusions of any loops, then any order of what there is."""
    commands: list[Command] = []
    loops = Loops(COUNT, textual_orders(COUNT))
    for number in range(draw(st.integers(1, 4))):
        (order,) = loops.orders
        variable, size = draw(st.sampled_from(order)), draw(st.sampled_from((1, 2, 3, 7)))
        names = f"a{number}", f"b{number}"
        kind = draw(st.sampled_from("sdff"))
        if kind == "f" and len(order) > 1:
            place = draw(st.integers(0, len(order) - 2))
            commands.append(Fuse(order[place], order[place + 1], names[0]))
        else:
            commands.append((Split if kind == "s" else Divide)(variable, *names, size))
        loops = apply_all(loops, Schedule((commands[-1],)))
        shuffled = tuple(draw(st.permutations(loops.orders[0])))
        if len(shuffled) > 1 and draw(st.booleans()):
            commands.append(Reorder(shuffled))
            loops = apply_all(loops, Schedule((commands[-1],)))
    return tuple(commands)


@settings(max_examples=100, deadline=None)
@given(nests(), st.tuples(*[st.integers(0, 6)] * 3), st.sampled_from(("dense", "sparse")))
def test_random_nests(commands: tuple[Command, ...], sizes: Any, kind: str) -> None:
    form = dense(3) if kind == "dense" else CSF(3)
    try:
        check_visits(dict(zip("ijk", sizes, strict=True)), Schedule(commands), form, 0.4)
    except ScheduleError as error:
        assert error.hint
        assume(False)


def test_tiles_of_tiles_end_where_the_index_ends() -> None:
    """Two loops of 2^31 rounds each would not."""
    size = 2**31 - 1
    schedule = f"split(i,a,b,8), split(a,c,d,{size}), split(c,e,f,{size}), reorder(e,f,d,k,b)"
    values = np.arange(700.0).reshape(100, 7)
    found = tp.evaluate("C[i,k] = A[i,k] + A[i,k]", A=values, schedule=schedule)
    np.testing.assert_array_equal(found, 2 * values)

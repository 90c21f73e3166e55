"""Plans for whole nests: against every pair of instances, and what they decide for known nests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from codegen.machine.cpu import Processor
from codegen.pretty import pretty
from polyhedral.affine import affine
from polyhedral.band_schedule import Schedule, Tag, original, rearrange
from polyhedral.isl.bands import components
from polyhedral.isl.limits import limited
from polyhedral.isl.nest_relations import hold, keeps_order
from polyhedral.model import Nest, nest, statement
from polyhedral.nests.dependence import dependences
from polyhedral.nests.tile_legality import check_order, check_parallel, check_reduction
from polyhedral.nests.tile_plan import Band, choose_sizes
from polyhedral.programs.program_loops import program_loops
from polyhedral.programs.program_plan import ProgramPlan, plan_program
from polyhedral.programs.question import ProgramQuestion
from tests.polyhedral.brute_force import conflicting, new_key, pairs, written
from tests.polyhedral.random_nests import PARAMETERS, changes, nests, nests_of_updates
from tests.polyhedral.test_to_loops import logging, run_log

JACOBI = nest(
    statement("S", "t in 0..T, i in 1..N-1", "B[i] =; A[i]; A[i-1]; A[i+1]", (0, 0, 0)),
    statement("R", "t in 0..T, j in 1..N-1", "A[j] =; B[j]; B[j-1]; B[j+1]", (0, 1, 0)),
)
GEMM = nest(statement("S", "i in 0..N, j in 0..N, k in 0..N", "C[i,j] +=; A[i,k]; B[k,j]"))
LU = nest(
    statement("L", "i in 0..N, j in 0..i, k in 0..j", "A[i,j] +=; A[i,k]; A[k,j]", (0, 0, 0, 0)),
    statement("D", "i in 0..N, j in 0..i", "A[i,j] =; A[i,j]; A[j,j]", (0, 0, 1)),
    statement("U", "i in 0..N, l in i..N, m in 0..i", "A[i,l] +=; A[i,m]; A[m,l]", (0, 1, 0, 0)),
)
random = settings(
    max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def planned(data: Any) -> tuple[Nest, ProgramPlan]:
    made = data.draw(nests())
    sizes = st.lists(st.integers(1, 3), min_size=0, max_size=3).map(tuple)
    tiles = data.draw(st.one_of(st.none(), sizes))
    question = ProgramQuestion(
        made,
        PARAMETERS,
        processor=Processor(
            vector_bytes=32,
            cache_bytes=data.draw(st.sampled_from(((32768,), (64, 4096), (256, 512)))),
        ),
        tiles=tiles,
        reorder=data.draw(st.booleans()),
        parallel=True,
    )
    plan = plan_program(question)
    note(f"{made}\n{plan.schedule}")
    return made, plan


def test_updates_by_two_operators_stay_in_order() -> None:
    """y = max(y + a, b) is a recurrence, though sums and maxima by themselves are none."""
    loops = "i in 0..N, j in 0..M"
    one = statement("S", loops, "y[i] +=; a[j]", (0, 0, 0))
    for update, tags in (("y[i] max=; b[j]", {Tag.SERIAL}), ("y[i] +=; b[j]", {Tag.VECTOR})):
        made = nest(one, statement("T", loops, update, (0, 0, 1)))
        with limited(10**6) as context:
            found = {(each.source.name, each.sink.name) for each in hold(context, made).dependents}
            strict = [each for each in hold(context, made).dependents if not each.commuting]
        assert found == {("S", "S"), ("S", "T"), ("T", "S"), ("T", "T")}
        assert bool(strict) == ("max" in update)
        plan = plan_program(ProgramQuestion(made, {"N": 64, "M": 4096}, tiles=(), reorder=False))
        assert {row.tag for row in plan.schedule.of("S") if row.name == "j"} == tags


def serial(plan: ProgramPlan) -> ProgramPlan:
    """`plan` without marks: the log that its statements write to is no sum."""
    rows = tuple(
        (name, tuple(replace(row, tag=Tag.SERIAL) for row in own))
        for name, own in plan.schedule.rows
    )
    return replace(plan, schedule=Schedule(rows))


@random
@given(st.data())
def test_a_plan_keeps_every_pair_in_order_and_its_loops_run_it(data: Any) -> None:
    made, plan = planned(data)
    for first, second, _ in pairs(made, PARAMETERS):
        assert new_key(plan.schedule, first) < new_key(plan.schedule, second)
    loops = program_loops(made, serial(plan), logging(made), {})
    note(pretty(loops))
    log = run_log(made, loops)
    numbers = {each.name: at for at, each in enumerate(made.statements)}
    place = {entry: at for at, entry in enumerate(log)}
    instances = [
        (numbers[s.name], *(p[v] for v in s.variables)) for s, p in written(made, PARAMETERS)
    ]
    assert sorted(log) == sorted(instances)
    for (one, at), (other, there), _ in pairs(made, PARAMETERS):
        first = (numbers[one.name], *(at[v] for v in one.variables))
        second = (numbers[other.name], *(there[v] for v in other.variables))
        assert place[first] < place[second]


@random
@given(st.data())
def test_tagged_loops_have_independent_iterations(data: Any) -> None:
    made, plan = planned(data)
    order = written(made, PARAMETERS)
    for position, first in enumerate(order):
        for second in order[position + 1 :]:
            for one, other in conflicting(first, second, PARAMETERS):
                for place, row in enumerate(plan.schedule.of(first[0].name)):
                    mine, theirs = new_key(plan.schedule, first), new_key(plan.schedule, second)
                    crosses = mine[:place] == theirs[:place] and mine[place] != theirs[place]
                    sums = row.tag is Tag.VECTOR and one.commutes(other)
                    assert row.tag is Tag.SERIAL or not crosses or sums


@settings(random, max_examples=30)
@given(nests_of_updates(), st.sampled_from((None, (), (1, 3))), st.booleans())
def test_plans_of_updates_by_two_operators_are_legal(
    made: Nest, tiles: tuple[int, ...] | None, reorder: bool
) -> None:
    """By the dependences that are listed pair by pair, for all sizes."""
    question = ProgramQuestion(made, PARAMETERS, tiles=tiles, reorder=reorder, parallel=True)
    schedule = plan_program(question, 0).schedule
    note(f"{made}\n{schedule}")
    found = dependences(made, 0)
    assert check_order(made, schedule, found, 0)
    for name, rows in schedule.rows:
        touching = [each for each in found if name in (each.source, each.sink)]
        for row in rows:
            if row.tag is Tag.VECTOR:
                assert check_reduction(made, schedule, row.name, touching, 0)
            if row.tag is Tag.PARALLEL:
                assert check_parallel(made, schedule, row.name, touching, 0)


@random
@given(st.data())
def test_held_dependences_judge_orders_as_the_listed_ones_do(data: Any) -> None:
    made = data.draw(nests())
    change = data.draw(changes(made))
    schedule = rearrange(made, change.loops, change.rows)
    kept = all(
        new_key(schedule, first) < new_key(schedule, second)
        for first, second, _ in pairs(made, PARAMETERS)
    )
    with limited(0) as context:
        assert keeps_order(hold(context, made), schedule) == kept


def test_the_planes_of_a_stencil_are_skewed_and_shifted() -> None:
    with limited(0) as context:
        (band,) = components(hold(context, JACOBI))
    assert band.statements == ("S", "R")
    planes = {name: [str(each) for each in found] for name, found in band.planes}
    assert planes == {"S": ["t", "i + 2*t"], "R": ["t", "j + 2*t + 1"]}
    assert band.parallel == (False, False)


def question(made: Nest, size: int = 4096, **wishes: Any) -> ProgramQuestion:
    values = {name: 64 if name == "T" else size for name in made.parameters}
    return ProgramQuestion(made, values, **wishes)


def test_a_long_stencil_is_tiled_in_time() -> None:
    plan = plan_program(question(JACOBI, 1 << 22))
    assert "S, R: tile t, i by" in str(plan)
    assert "footprint: B: (2*T_t + T_i)" in str(plan)
    assert check_order(JACOBI, plan.schedule, dependences(JACOBI))


def test_full_tiles_run_apart_where_rows_are_short() -> None:
    def last(plan: ProgramPlan) -> bool:
        return [row.separates for row in plan.schedule.rows[0][1] if row.name.endswith("_tile")][-1]

    short, long = (plan_program(question(GEMM, tiles=(16, size))) for size in (64, 65))
    assert last(short)
    assert not last(long)
    assert "full tiles: in loops of their own, for rows of 64 are short" in str(short)
    assert "for rows of 65 are long" in str(long)
    skewed = plan_program(question(JACOBI, tiles=(4, 8)))
    assert not last(skewed)
    assert "full tiles: in the same loops as the others, for they are skewed" in str(skewed)
    simpler = short.simpler
    assert simpler is not None
    assert "ISL ran out of its budget" in str(simpler)
    assert not last(simpler)
    assert simpler.simpler is None


def test_threads_share_the_tiles_of_a_wave() -> None:
    plan = plan_program(question(JACOBI, tiles=(8, 64), parallel=True))
    rows = plan.schedule.of("S")
    assert [str(row) for row in rows[:3]] == ["0", "t/8 + (i + 2*t)/64", "(i + 2*t)/64"]
    assert rows[2].tag is Tag.PARALLEL


def test_a_product_gets_sizes_an_order_and_jammed_loops() -> None:
    plan = plan_program(question(GEMM, 1024))
    rows = {row.name: row for row in plan.schedule.of("S")}
    assert [name for name in rows if name][-3:] == ["i", "k", "j"]
    assert rows["j"].tag is Tag.VECTOR
    assert rows["i"].unroll * rows["k"].unroll > 1
    told = str(plan)
    for reason in ("reuse: i 1, j 1, k 2", "footprint: C: T_i * T_j; A", "vector loop: S: j"):
        assert f"  {reason}" in told
    assert "tau = " in told
    assert "traffic: into cache 1 " in told
    assert ", into cache 2 " in told


def test_a_tile_plan_tells_its_sizes_and_its_vector_loop() -> None:
    (gemm,) = GEMM.statements
    planes = tuple(affine(loop) for loop in "ijk")
    held = dict.fromkeys("CAB", 8)
    band = Band(
        ((gemm, planes),), ("i", "j", "k"), (1024,) * 3, {"S": "j"}, {"N": 1024}, (2**20,), 64, held
    )
    plan = choose_sizes(band)
    assert plan.vector == "j"
    head, vector, *reasons = str(plan).splitlines()
    assert head == f"tile i, j, k by {', '.join(map(str, plan.sizes))}"
    assert vector == "vector loop: j"
    assert tuple(reasons) == plan.reasons
    small = choose_sizes(replace(band, extents=(8,) * 3, values={"N": 8}))
    assert str(small).startswith("no tiles\n")


@pytest.mark.parametrize("order", ["iajb", "ijab", "iabj"])
@pytest.mark.parametrize(("weights", "vector"), [(3, "j"), (8, "j"), (32, "j"), (512, "b")])
def test_a_short_loop_is_no_vector_loop(order: str, weights: int, vector: str) -> None:
    """By themselves, sums along b leave more in place than rows along j do."""
    ends = {"i": "N", "j": "N", "a": "A", "b": "A"}
    loops = ", ".join(f"{each} in 0..{ends[each]}" for each in order)
    made = nest(statement("S", loops, "O[i,j] +=; K[a,b]; I[i+a,j+b]"))
    plan = plan_program(ProgramQuestion(made, {"N": 1024, "A": weights}))
    tags = {row.name: row.tag for row in plan.schedule.of("S")}
    assert tags[vector] is Tag.VECTOR, f"{plan}"


def test_a_short_row_is_better_than_leaps() -> None:
    loops = "k in 0..N, j in 0..4, i in 0..N"
    made = nest(statement("S", loops, "C[i,j] +=; A[k,i]; B[k,j]"))
    plan = plan_program(question(made))
    assert [row.name for row in plan.schedule.of("S") if row.name][-1] == "j"


def test_a_factorisation_runs_by_columns() -> None:
    plan = plan_program(question(LU, 1024))
    assert "order inside: D: j, i; L: k, i, j; U: m, i, l" in str(plan)
    assert check_order(LU, plan.schedule, dependences(LU))


def test_no_tiles_where_all_that_is_used_again_fits() -> None:
    plan = plan_program(question(JACOBI, 1000))
    assert "used again: B, A, " in str(plan)
    assert "within the 1048576 of the cache" in str(plan)
    assert plan.schedule.depth == original(JACOBI).depth


@pytest.mark.parametrize(
    ("loops", "why"),
    [
        ("i in 0..N", "a single loop"),
        ("i in 0..N, j in 0..N, k in 0..N", "no two loops that could share tiles"),
    ],
)
def test_a_band_of_one_loop_says_whether_there_are_others(loops: str, why: str) -> None:
    plan = plan_program(question(nest(statement("S", loops, "a[0] +="))))
    assert str(plan) == f"as written\n  {why}"


def test_a_cache_that_holds_no_tile_is_named() -> None:
    tiny = Processor(vector_bytes=32, cache_bytes=(64, 63))
    plan = plan_program(replace(question(GEMM, 1024), processor=tiny))
    assert "of 63 bytes, more than there are: no tile fits" in str(plan)


@pytest.mark.parametrize("budget", [1, 100, 2000])
def test_a_small_budget_leaves_the_order_and_says_so(budget: int) -> None:
    plan = plan_program(question(JACOBI), budget)
    assert plan.schedule == original(JACOBI)
    assert f"as written: Expected ISL to answer within {budget} operations" in str(plan)


def test_no_tiles_where_as_much_moves_without_them() -> None:
    """A window that slides is near all the time."""
    made = nest(
        statement(
            "S", "i in 0..N, j in 0..N, a in 0..3, b in 0..3", "O[i,j] +=; K[a,b]; I[i+a,j+b]"
        )
    )
    memory = Processor(vector_bytes=32, cache_bytes=(49152, 1 << 20, 1 << 25))
    plan = plan_program(ProgramQuestion(made, {"N": 2048}, memory))
    assert "S: no tiles" in str(plan)
    assert "not clearly less in tiles of i 120, j 512, a 3: traffic: " in str(plan)
    assert all(row.size == 1 for row in plan.schedule.of("S"))

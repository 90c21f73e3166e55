"""Tiles of loops that a caller names: what dependences allow runs as asked, the rest is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import taco_py as tp
from benchmarks.polybench_programs import KERNELS
from benchmarks.tile_sizes import NAMES, choice
from polyhedral.band_schedule import Tag, original
from polyhedral.model import nest, statement
from polyhedral.programs.program_loops import MOST_LOOPS
from polyhedral.programs.program_plan import plan_program
from polyhedral.programs.question import ProgramQuestion
from polyhedral.programs.requested_tiles import plan_asked

PRODUCT = tp.program("for i in N: for j in M: for k in K: C[i,j] += A[i,k] * B[k,j]")
SWEEP = nest(statement("S", "t in 0..T, i in 1..N-1", "A[i] =; A[i-1]; A[i+1]"))
ROWS = nest(statement("S", "i in 0..N, j in 1..N", "A[i,j] =; A[i,j-1]"))


def test_a_product_runs_in_the_tiles_asked_for() -> None:
    rng = np.random.default_rng(0)
    for n, m, k in ((33, 17, 9), (1, 40, 8), (0, 3, 2), (16, 16, 0), (16, 32, 8)):
        a, b, c = rng.random((2 * n, k))[::-2], rng.random((k, m)), np.ones((n, m))
        PRODUCT(A=a, B=b, C=c, N=n, M=m, K=k, tiles={"k": 8, "i": 16, "j": 16}, threads=2)
        np.testing.assert_allclose(c, 1 + a @ b, 1e-12)


def test_what_a_dependence_forbids_is_refused_with_a_pair() -> None:
    smooth = tp.program("for t in T: A[i] = A[i-1] + A[i+1]")
    a = np.ones(9)
    with pytest.raises(tp.ScheduleError) as caught:
        smooth(A=a, T=3, tiles={"t": 2, "i": 4})
    assert "flow dependence S0 -> S0 on A" in str(caught.value)
    assert "must stay before" in str(caught.value)
    assert "where S0 is A[i] = A[i-1] + A[i+1]" in str(caught.value)
    span = caught.value.span
    assert span is not None and span.source.text[span.start :] == "A[i] = A[i-1] + A[i+1]"
    assert (a == 1).all()


@pytest.mark.parametrize(
    ("tiles", "error", "words"),
    [
        ({"q": 4}, tp.ScheduleError, "found q"),
        ({"i": 0}, tp.OperandTypeError, "positive sizes"),
        ({}, tp.OperandTypeError, "positive sizes"),
        ({1: 4}, tp.OperandTypeError, "positive sizes"),
    ],
)
def test_other_wishes_are_refused(tiles: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        tp.program("A[i] = 1")(A=np.ones(3), tiles=tiles)


def question(made: Any, parallel: bool = False) -> ProgramQuestion:
    return ProgramQuestion(made, dict.fromkeys(made.parameters, 64), parallel=parallel)


def test_the_plan_says_what_it_found() -> None:
    plan = plan_asked(question(ROWS, True), {"j": 8, "i": 128})
    assert str(plan).splitlines() == [
        "tile j, i by 8, 128",
        "  sizes: asked for",
        "  legal: every dependence stays in order",
        "  full tiles: in the same loops as the others, for rows of 128 are long",
        "  threads share: i_tile",
    ]
    tags = {row.name: row.tag for row in plan.schedule.of("S")}
    assert (tags["i_tile"], tags["j_tile"]) == (Tag.PARALLEL, Tag.SERIAL)
    alone = plan_asked(question(ROWS), {"i": 8, "j": 8})
    assert "threads share" not in str(alone)
    assert [row.separates for row in alone.schedule.of("S") if row.name == "j_tile"] == [True]


def test_a_small_budget_leaves_the_loops_and_says_so() -> None:
    for budget in (1, 300):
        plan = plan_asked(question(SWEEP), {"t": 4, "i": 4}, budget)
        assert plan.schedule == original(SWEEP)
        assert f"as written: Expected ISL to answer within {budget} operations" in str(plan)


@pytest.mark.parametrize("name", NAMES)
def test_the_picture_of_tile_sizes_draws_programs_that_the_model_tiles(name: str) -> None:
    kernel = replace(KERNELS[name], large=512)
    program, data = tp.program(kernel.text), kernel.data(512)
    loops, sizes = choice(program, kernel, data)
    assert len(loops) == len(sizes) == 3
    assert set(loops) == set("ijk")
    again = program.explain(**data, **kernel.sizes(512, 1), **kernel.numbers, tiles=sizes)
    assert f"tile {', '.join(loops)} by {', '.join(map(str, sizes))}" in again


def test_a_program_that_the_model_does_not_tile_is_not_drawn() -> None:
    kernel = KERNELS["jacobi-1d"]
    with pytest.raises(ValueError, match="Expected a program that the model tiles"):
        choice(tp.program(kernel.text), replace(kernel, large=64), kernel.data(64))


def test_full_tiles_that_would_make_too_much_code_stay_with_the_others() -> None:
    kernel = KERNELS["trmm"]
    program, data = tp.program(kernel.text), kernel.data(13)
    given = {**data, **kernel.sizes(13, 1), **kernel.numbers}
    told = program.explain(**given, tiles=(3, 8, 2))
    assert "in the same loops as the others, for loops of their own made" in told
    assert "full tiles: in loops of their own" not in told
    made = program.source(**given, tiles=(3, 8, 2)).count("omp simd")
    assert made < 3 * MOST_LOOPS  # passes make several of one; 69 where full tiles run apart
    plain = {name: array.copy() for name, array in data.items()}
    program(**{**given, **plain}, tiles=None)
    program(**given, tiles=(3, 8, 2))
    np.testing.assert_allclose(data["B"], plain["B"])


def test_no_more_iterations_are_jammed_than_a_tile_has() -> None:
    made = nest(statement("S", "i in 0..N, j in 0..N, k in 0..N", "C[i,j] +=; A[i,k]; B[k,j]"))
    for size in (1, 2, 3, 16):
        plan = plan_program(ProgramQuestion(made, {"N": 512}, tiles=(size, 64, 64)))
        jammed = {row.name: row.unroll for row in plan.schedule.of("S") if row.name}
        assert jammed["i"] <= size
        assert jammed["i"] * jammed["k"] > 1


def test_why_threads_share_no_tiles() -> None:
    made = nest(statement("S", "i in 1..N, j in 1..N", "A[i,j] =; A[i-1,j]; A[i,j-1]"))
    told = str(plan_asked(question(made, True), {"i": 4, "j": 4}))
    assert "threads share: none, for tiles wait for each other: of i_tile, flow dep" in told
    assert "; of j_tile, flow dependence S -> S on A (0, 1)" in told


def test_loops_that_there_are_not() -> None:
    with pytest.raises(tp.ScheduleError, match="Expected loops of the nest, found z") as caught:
        tp.program("A[i,j] = 2 * A[i,j]").explain(A=np.ones((3, 3)), tiles={"z": 4})
    assert caught.value.hint == "they are i, j"

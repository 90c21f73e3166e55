"""Affine expressions and nests: arithmetic, text, printing, and what is refused in which words."""

from __future__ import annotations

import doctest
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import polyhedral
from codegen.machine.cpu import Processor
from polyhedral.affine import Affine, affine, parse_affine, variable
from polyhedral.band_schedule import Row, Schedule, original, permute, rearrange
from polyhedral.errors import NestError, NonAffineError, PolyhedralError, ScheduleError
from polyhedral.model import Mode, Nest, access, instances, loops, nest, statement
from polyhedral.nests.tile import strip_mine, tile
from polyhedral.nests.tile_size import Cache
from polyhedral.nests.to_loops import to_loops
from polyhedral.programs.program_plan import plan_program
from polyhedral.programs.question import ProgramQuestion

IV, JV = variable("i"), variable("j")
GEMM = nest(
    statement("Z", "i in 0..N, j in 0..M", "C[i,j] =", (0, 0, 0)),
    statement("S", "i in 0..N, j in 0..M, k in 0..K", "C[i,j] +=; A[i,k]; B[k,j]", (0, 0, 1, 0)),
)
SIZES = dict.fromkeys(GEMM.parameters, 64)

affines = st.builds(
    lambda factors, constant: sum(
        (variable(name) * factor for name, factor in factors.items()), affine(constant)
    ),
    st.dictionaries(st.sampled_from("ijN"), st.integers(-5, 5)),
    st.integers(-9, 9),
)
values = st.fixed_dictionaries({name: st.integers(-7, 7) for name in "ijN"})


@given(affines)
def test_what_prints_parses_back(value: Affine) -> None:
    assert parse_affine(str(value)) == value


@given(affines, affines, st.integers(-4, 4), values)
def test_arithmetic(one: Affine, other: Affine, factor: int, at: dict[str, int]) -> None:
    assert (one + other).evaluate(at) == one.evaluate(at) + other.evaluate(at)
    assert (one - other).evaluate(at) == one.evaluate(at) - other.evaluate(at)
    assert (factor * one).evaluate(at) == factor * one.evaluate(at)
    moved = one.substitute({"i": other})
    assert moved.evaluate(at) == one.evaluate({**at, "i": other.evaluate(at)})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (IV - IV, "0"),
        (2 * IV - JV + 1, "2*i - j + 1"),
        (1 - IV, "-i + 1"),
        (parse_affine("3*(i + j) - (j - 2)"), "3*i + 2*j + 2"),
    ],
)
def test_printing(value: Affine, text: str) -> None:
    assert str(value) == text


REFUSED: list[tuple[Callable[[], object], type[PolyhedralError], str]] = [
    (lambda: access("A[i, j*k]"), NonAffineError, "found j * k in the access A[i, j*k]"),
    (lambda: access("A[i, p[j]]"), NonAffineError, "found p[j] in the access A[i, p[j]]"),
    (lambda: access("A[i/2]"), NonAffineError, "found i / 2 in the access A[i/2]"),
    (lambda: access("A[i"), NonAffineError, "Expected an access like 'A[i, j]'"),
    (lambda: parse_affine("i +"), NonAffineError, "Expected an affine expression, found 'i +'"),
    (
        lambda: nest(statement("S", "i in 0..N", "y[i] =; x[crd]")),
        NonAffineError,
        "in the access x[crd] of S, found crd",
    ),
    (
        lambda: Nest((statement("S", "i in 0..j, j in 0..4", "y[i] ="),)),
        NonAffineError,
        "in the bound j of loop i of S, found j",
    ),
    (lambda: loops("i = 0..N"), NestError, "Expected a loop like 'i in 0..N', found 'i = 0..N'"),
    (
        lambda: nest(statement("S", "i in 0..4", "y[i] =", (0,))),
        NestError,
        "Expected 2 order numbers for S with 1 loops, found 1",
    ),
    (
        lambda: nest(statement("S", "i in 0..4", "y[i] ="), statement("S", "i in 0..4", "y[i] =")),
        NestError,
        "Expected different names of statements, found S twice",
    ),
    (
        lambda: nest(statement("S", "i in 0..4", "y[i] ="), statement("T", "i in 0..4", "y[i] =")),
        NestError,
        "Expected an order between S and T",
    ),
    (
        lambda: nest(
            statement("S", "i in 0..4", "y[i] ="), statement("T", "j in 0..4", "y[j] =", (0, 1))
        ),
        NestError,
        "Expected one name for each loop",
    ),
    (lambda: tile(GEMM, "ij", {"k": 4}), ScheduleError, "Expected sizes of i, j, found one of k"),
    (lambda: tile(GEMM, "ij", {"i": 0}), ScheduleError, "1 or more, up to 2^31, found 0"),
    (lambda: tile(GEMM, "ij", {"i": 2**63}), ScheduleError, "found 9223372036854775808"),
    (lambda: tile(GEMM, "ij", {"i": 2**20000}), ScheduleError, "found one of more than 64 bits"),
    (lambda: ProgramQuestion(GEMM, {"N": 4}), NestError, "a value for each parameter, found none"),
    (lambda: ProgramQuestion(GEMM, SIZES, tiles=(4, 0)), ScheduleError, "1 or more, up to 2^31"),
    (lambda: ProgramQuestion(GEMM, SIZES, tiles=(2.5,)), ScheduleError, "integers, found 2.5"),  # type: ignore[arg-type]
    (
        lambda: ProgramQuestion(GEMM, SIZES, Processor(cache_bytes=())),
        ScheduleError,
        "caches of 1 byte or more, found ()",
    ),
    (lambda: plan_program(ProgramQuestion(GEMM, SIZES), -1), ScheduleError, "found -1"),
    (lambda: to_loops(GEMM, original(GEMM), {}), NestError, "a body for each statement, found"),
    (
        lambda: to_loops(GEMM, Schedule(()), {}),
        NestError,
        "Expected a row of the schedule for each statement, found none for",
    ),
    (lambda: tile(GEMM, "ij", {"i": 2.5}), ScheduleError, "sizes that are integers, found 2.5"),  # type: ignore[dict-item]
    (
        lambda: tile(GEMM, "ij", {"i": 2}, planes={"q": IV}),
        ScheduleError,
        "Expected planes of i, j, found one of q",
    ),
    (
        lambda: nest(statement("S", "i in 0..N", "A[i] ="), context=["M - 1"]),
        NonAffineError,
        "parameters only in the condition M - 1 >= 0 of a nest, found M",
    ),
    (
        lambda: nest(statement("S", "i in 0..N", "A[i] ="), context=[1.5]),  # type: ignore[list-item]
        NonAffineError,
        "Expected an affine expression, found 1.5",
    ),
    (
        lambda: tile(GEMM, "ij", {"i": 2}, planes={"i": 1.5}),  # type: ignore[dict-item]
        NonAffineError,
        "found 1.5",
    ),
    (
        lambda: ProgramQuestion(GEMM, {**SIZES, "N": 2.5}),
        NestError,
        "Expected an integer for",
    ),
    (lambda: Cache(0), ScheduleError, "a cache of 1 byte or more in lines of 1 or more, found 0"),
    (
        lambda: statement("S", "i in 0..N, j in 0..B[i]", "A[i] ="),
        NonAffineError,
        "found B[i] in the bounds of loop j of S.",
    ),
    (
        lambda: nest(statement("S", "i in 0..N", "A[i+M] =")),
        NonAffineError,
        "a parameter that no bound uses is to be listed among the nest's",
    ),
    (lambda: tile(GEMM, "ijk", {"i": 4}), ScheduleError, "found Z beside one of them"),
    (lambda: permute(GEMM, "ii"), ScheduleError, "Expected different loops, found i, i"),
    (lambda: permute(GEMM, "ik"), ScheduleError, "hint: name j too, in between"),
    (lambda: permute(GEMM, "iq"), ScheduleError, "Expected loops of the nest, found q"),
    (
        lambda: rearrange(GEMM, "ij", [Row("i", IV)]),
        ScheduleError,
        "Expected an untiled row for every loop, found none for j",
    ),
]


def test_sizes_may_be_integers_of_numpy() -> None:
    made = nest(statement("S", "i in 0..N", "y[i] ="))
    assert tile(made, "i", {"i": np.int64(4)}) == tile(made, "i", {"i": 4})  # type: ignore[dict-item]
    assert ProgramQuestion(made, {"N": 9}, tiles=(np.int64(4),)).tiles == (4,)  # type: ignore[arg-type]


def test_planes_and_conditions_may_be_texts() -> None:
    one = statement("S", "t in 0..T, i in 0..N", "A[i] =; A[i-1]")
    assert nest(one, context="N - 1; T - 2") == nest(one, context=["N - 1", "T - 2"])
    skewed = {"i": variable("i") + variable("t")}
    assert tile(nest(one), "ti", {"i": 2}, planes={"i": "i + t"}) == tile(
        nest(one), "ti", {"i": 2}, planes=skewed
    )


@pytest.mark.parametrize(("make", "error", "words"), REFUSED, ids=[words for *_, words in REFUSED])
def test_refusals(make: Callable[[], object], error: type[PolyhedralError], words: str) -> None:
    with pytest.raises(error) as caught:
        make()
    assert words in str(caught.value)


def test_a_nest_prints() -> None:
    assert str(GEMM) == (
        "[K, M, N]\n"
        "Z(0, 0, 0): C[i, j] = for i in 0..N, j in 0..M\n"
        "S(0, 0, 1, 0): C[i, j] +=; A[i, k]; B[k, j] for i in 0..N, j in 0..M, k in 0..K"
    )


@pytest.mark.parametrize(
    ("text", "mode", "operator"),
    [
        ("A[i]", Mode.READ, None),
        ("A[i] =", Mode.WRITE, None),
        ("A[i] +=", Mode.UPDATE, "+"),
        ("A[i] max=", Mode.UPDATE, "max"),
        ("A[i] -=", Mode.UPDATE, None),
    ],
)
def test_modes(text: str, mode: Mode, operator: str | None) -> None:
    found = access(text)
    assert (found.mode, found.operator) == (mode, operator)


def test_schedules_print() -> None:
    assert str(original(GEMM)) == "Z -> [0, i, 0, j, 0, 0, 0]\nS -> [0, i, 0, j, 1, k, 0]"
    tiled = tile(GEMM, "ij", {"i": 32, "j": 8}, points="ji")
    assert str(tiled) == "Z -> [0, i/32, j/8, j, i, 0, 0, 0]\nS -> [0, i/32, j/8, j, i, 1, k, 0]"
    assert str(strip_mine(GEMM, "k", 4)).splitlines()[1] == "S -> [0, i, 0, j, 1, k/4, k, 0]"
    skewed = tile(GEMM, "ij", {"j": 8}, planes={"j": IV + JV})
    assert "[0, (i + j)/8, i, i + j, 0" in str(skewed)


def test_instances() -> None:
    triangle = statement("S", "i in 0..3, j in max(0, i-1)..min(i+1, 2)", "y[i] =")
    found = [(point["i"], point["j"]) for point in instances(triangle, {})]
    assert found == [(0, 0), (1, 0), (1, 1), (2, 1)]


def test_the_example_of_the_package() -> None:
    tried = doctest.testmod(polyhedral)
    assert tried.attempted > 0 and tried.failed == 0


def test_importing_the_package_does_not_load_isl() -> None:
    rooms = "affine, band_schedule, isl, model, nests, products, programs"
    nests = "dependence, footprint, tile, tile_legality, tile_plan, to_loops"
    imports = f"from polyhedral import {rooms}; from polyhedral.nests import {nests}"
    code = f"import sys; {imports}; print('islpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

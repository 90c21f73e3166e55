"""Iterations that wait for the ones before them, and the sizes of tiles that follow from it."""

from __future__ import annotations

import pytest

from polyhedral.model import nest, statement
from polyhedral.nests.chain import chain_cycles, chained
from polyhedral.programs.program_plan import plan_program
from polyhedral.programs.question import ProgramQuestion


@pytest.mark.parametrize(
    ("accesses", "loop", "waits"),
    [
        ("A[i,j] =; A[i,j-1]", "j", True),
        ("A[i,j] =; A[i,j-1]", "i", False),
        ("A[i,j] =; A[i,j-2]; A[i,j+1]", "j", True),
        ("A[i,j] =; A[i,j+1]", "j", False),
        ("A[i,j] =; A[i-1,j-1]", "j", False),
        ("A[i,2*j] =; A[i,2*j-2]", "j", True),
        ("A[i,j] =; B[i,j-1]", "j", False),
        ("A[i,j] =; A[j,i]", "j", False),
        ("A[i] =; A[i]; B[j]", "j", True),
        ("A[i] +=; B[j]", "j", False),
        ("A[j,j] =; A[j-1,j-1]", "j", True),
        ("A[j,j] =; A[j-1,j-2]", "j", False),
    ],
)
def test_what_waits_for_the_iteration_before(accesses: str, loop: str, waits: bool) -> None:
    made = statement("S", "i in 0..N, j in 0..N", accesses)
    assert chained(made, loop) is waits
    assert not chained(made, "k")
    assert not chained(made, None)


def test_short_rows_wait_less() -> None:
    made = statement("S", "i in 0..N, j in 0..N", "A[i,j] =; A[i,j-1]; A[i-1,j]")
    cycles = [chain_cycles(made, row) for row in (8, 32, 1024)]
    assert cycles == sorted(cycles)
    assert cycles[-1] > 2 * cycles[0]


@pytest.mark.parametrize("size", [256, 1024, 4096])
def test_a_sweep_in_place_gets_short_rows_and_a_stencil_of_two_arrays_long_ones(size: int) -> None:
    """In one cache or beyond: the rows of a sweep are cut for another reason than room."""
    ranges = "t in 0..T, i in 1..N-1, j in 1..N-1"
    sweep = nest(statement("S", ranges, "A[i,j] =; A[i-1,j]; A[i+1,j]; A[i,j-1]; A[i,j+1]"))
    rows = plan_program(ProgramQuestion(sweep, {"T": 16, "N": size}))
    (row,) = [row for row in rows.schedule.of("S") if row.name == "j_tile"]
    assert row.size <= 32
    assert "each iteration waits for the one before it: S along j" in str(rows)
    there = statement("S0", ranges, "B[i,j] =; A[i,j-1]; A[i,j+1]; A[i-1,j]", (0, 0, 0, 0))
    back = statement("S1", ranges, "A[i,j] =; B[i,j]", (0, 1, 0, 0))
    plan = plan_program(ProgramQuestion(nest(there, back), {"T": 16, "N": size}))
    assert "waits for" not in str(plan)
    assert all(row.size >= min(size, 512) for row in plan.schedule.of("S0") if row.name == "j_tile")

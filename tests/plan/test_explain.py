"""Each line that explain() shows is true of the plan and of its kernels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from taco_py.compiler.driver import CompiledKernel, compile_recipe
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.planner.ir.goal import Request
from taco_py.planner.ir.nodes import KernelStep, Operand
from taco_py.planner.ir.plan import Plan
from taco_py.planner.ir.program import Program
from taco_py.planner.make import Options, make_plan
from taco_py.report.explanation.plan_report import explain
from tests.problems import operands, plan, problem

PRODUCT = "C[i,j] = A[i,k] * B[k,j]"
SPMV = "y[i] = A[i,j] * x[j]"


def compiled(step: KernelStep) -> CompiledKernel:
    recipe = step.recipe()
    return compile_recipe(recipe)


def planned(step: KernelStep) -> Plan:
    """A plan of one kernel."""
    facts = {step.target: Operand(step.problem.result, (), 0.0)}
    return Plan(Program((step,), facts, (step.target,), {}), step.problem.result)


def shown(made: Plan, copies: tuple[str, ...] = ()) -> dict[str, str]:
    """What stands behind each heading; lines below one that have none belong to it."""
    found: dict[str, str] = {}
    for line in explain(made, [compiled(k) for k in made.kernels], copies).splitlines():
        head = re.match(r"\s{0,2}([a-z]+(?: [a-z]+)?)\s{2,}(.*)", line)
        if head is not None:
            last = head[1]
            found[last] = f"{found[last]}\n{head[2]}" if last in found else head[2]
        else:
            found[last] += f"\n{line.strip()}"
    return found


def of(
    text: str,
    formats: Mapping[str, str],
    result: str | None = None,
    schedule: str | None = None,
) -> dict[str, str]:
    options = Options(schedule=None if schedule is None else Schedule.parse(schedule))
    return shown(plan(problem(text, formats, result), options=options))


def test_a_kernel_shows_notation_formats_and_loops() -> None:
    found = of(SPMV, {"A": "CSR"})
    assert found["kernel"] == "y[i] = sum(j, A[i,j] * x[j])"
    assert found["formats"] == "A: ds/float64/int32, x: d/float64, y: d/float64"
    assert found["loop order"] == "i,j"
    assert found["concrete"].splitlines()[0] == "forall i parallel"
    assert "t += A[i,j] * x[j]" in found["concrete"]
    assert found["iterates"].splitlines()[0].startswith("i: ")
    assert "A2" in found["iterates"]
    assert not {"convert", "split", "copy", "diagonal", "squeeze"} & found.keys()


def test_conversions_are_shown_with_their_reason_and_road() -> None:
    found = of(PRODUCT, {"A": "CSR", "B": "CSC"}, "ds")
    assert found["convert"] == (
        "B_kj from B: loops run in the order i,k,j: CSC -> CSR: transposed by counting sort, "
        "O(rows + nnz)"
    )
    assert found["loop order"] == "i,k,j"
    back = of("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR"}, "COO")
    assert back["convert"].startswith("C_1 from C: the result is wanted as uq: DCSR -> COO(2)")


def test_a_dense_temporary_is_no_table_among_the_schedules() -> None:
    dense = np.ones((70, 70))
    told = tp.explain("y[i] = A[i,j] * B[j,k] * x[k]", A=dense, B=dense, x=dense[0])
    chosen = told.partition("chosen")[2]
    assert "where T[j]: dense workspace" in chosen


def test_workspaces_are_those_of_the_statement() -> None:
    assert of(PRODUCT, {"A": "CSR", "B": "CSR"})["workspaces"] == "w[j]: row"
    assert of(SPMV, {"A": "CSR"})["workspaces"].endswith(": scalar")
    assert of("C[i,j] = 2 * B[i,j]", {"B": "CSR"})["workspaces"] == "none"


def test_what_is_parallel_or_why_not() -> None:
    assert of(SPMV, {"A": "CSR"})["parallel"].startswith("loop i: ")
    serial = of(SPMV, {"A": "CSR"}, schedule="serial()")
    assert serial["parallel"] == "one thread was asked for"
    assert "parallel" not in serial["concrete"]
    assert of("s = a * b", {})["parallel"].startswith("no loop, for ")


def test_what_a_kernel_relies_on() -> None:
    assert of(SPMV, {"A": "CSR"})["relies on"] == "nothing but valid arrays"
    added = of("C[i,j] = A[i,j] + B[i,j]", {"A": "CSR", "B": "CSR"})["relies on"]
    assert added == "A sorted and without duplicates; B sorted and without duplicates"


def test_temporaries_say_why_and_what_they_are_made_of() -> None:
    found = of("y[i] = A[i,j] * B[j,k] * x[k]", {"A": "CSR", "B": "CSR"})
    assert found["split"].startswith("T: in pairs about ")
    assert found["kernel"].splitlines()[-1] == "y[i] = sum(j, A[i,j] * T[j])"
    assert found["computes"].startswith("T, with A = B, ")


def test_diagonals_and_axes_of_size_one() -> None:
    assert of("s = A[i,i]", {"A": "CSR"})["diagonal"] == "A_diagonal from A[i,i]"
    whole = problem("y[i] = A[i] * x[i]", {"A": "COO"}, "d")
    known = operands(problem("y[i,j] = A[i,j] * x[i]", {"A": "COO"}, "dd"), {"j": 1})
    request = Request(whole.result)
    made = make_plan(whole.assignment, known, request, Options(), unit_modes=(("A", (1,)),))
    assert shown(made)["squeeze"] == "A_squeezed from A, modes (1,) of size 1"


def test_copies_of_a_run_come_after_the_summary() -> None:
    found = shown(plan(problem(SPMV, {"A": "CSR"})), ("A: made contiguous",))
    assert found["copy"] == "A: made contiguous"
    summary = ["runs", "expected", "price", "largest", "limit", "numbers"]
    assert list(found)[:8] == [*summary, "roofline", "copy"]


HITS = {"memory": "found in this process", "disk": "in the kernel cache on disk", "built": "built"}


def test_where_the_kernel_came_from_and_how_long_that_took() -> None:
    (step,) = plan(problem("y[i] = 3 * A[i,j] * x[j]", {"A": "CSR"})).kernels
    first, again = compiled(step), compiled(step)
    assert again.hit == "memory"
    for kernel in (first, again):
        (line,) = [
            line
            for line in explain(planned(step), [kernel]).splitlines()
            if line.startswith("  compiled")
        ]
        assert f"{kernel.seconds * 1e3:.1f} ms" in line
        assert HITS[kernel.hit] in line


@pytest.mark.parametrize("hit", HITS)
def test_every_kind_of_hit_has_words(hit: str) -> None:
    (step,) = plan(problem(SPMV, {"A": "CSR"})).kernels
    assert HITS[hit] in explain(planned(step), [replace(compiled(step), hit=hit)])


def test_made_for_static_sizes() -> None:
    made = plan(problem(SPMV))
    (step,) = made.kernels
    fixed = replace(step, problem=replace(step.problem, static=(("j", 8),)))
    assert "made for" not in shown(made)
    assert shown(replace(made, program=made.program.with_kernel(fixed)))["made for"] == "j = 8"


@pytest.mark.parametrize(
    ("schedule", "whole"),
    [(None, False), ("split(i,i0,i1,8)", True), ("reorder(i,k,j), split(i,i0,i1,8)", False)],
)
def test_loops_that_store_every_coordinate_are_told(schedule: str | None, whole: bool) -> None:
    """A tile of the loops as they are written: i, j, k."""
    a = sp.random_array((30, 30), density=0.1, format="csr", rng=0)
    told = tp.explain("C[i,j] = A[i,k] * B[k,j]", A=a, B=a, schedule=schedule)
    assert ("  stores      every j of C," in told) == whole

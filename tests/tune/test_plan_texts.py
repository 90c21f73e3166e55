"""Points of the space: each is a text that parses back, runs by itself, and computes the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import taco_py as tp
from codegen.runtime import blas
from taco_py.calls.call.prepare import prepare_computation, start
from taco_py.compiler.driver import compile_recipe
from taco_py.compiler.schedule.commands import Make
from taco_py.compiler.ways.recipe import Recipe
from taco_py.data.storage.pack import to_dense
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.planner.ir.parser import parse_program
from taco_py.planner.ir.printer import program_text
from taco_py.running.execute.run import run
from taco_py.running.plan_texts.compare_plan import CallStatements
from taco_py.running.plan_texts.fitted_plan import parsed_plan, plan_of_text, renamed
from taco_py.tuning.bench.call_space import CallSpace, space_of
from taco_py.tuning.bench.tune_call import tunable
from taco_py.tuning.space.axis import label_of, point_of
from taco_py.tuning.space.kernel_options import edited
from tests.corpus.data import operands
from tests.corpus.expressions import CASES, Case
from tests.corpus.formats import operand_options, store
from tests.machines import on_machine

RANDOM = np.random.default_rng(0)
A = sp.random_array((60, 50), density=0.1, format="csr", rng=RANDOM)
T = tp.tensor(RANDOM.random((12, 10, 8)) * (RANDOM.random((12, 10, 8)) < 0.2), tp.CSF(3))
CALLS: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "spmv": lambda: ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(50)}),
    "mttkrp": lambda: (
        "M[i,r] = T[i,k,l] * C[k,r] * D[l,r]",
        {"T": T, "C": RANDOM.random((10, 5)), "D": RANDOM.random((8, 5))},
    ),
    "spgemm": lambda: ("C[i,k] = A[i,j] * B[j,k]", {"A": A, "B": A.T.tocsr()}),
    "sum": lambda: ("C[i,j] = A[i,j] + B[i,j]", {"A": A, "B": A[::-1].tocsr()}),
    "integers": lambda: ("s[j] = A[i,j]", {"A": (A * 9).astype(np.int64)}),
}


@cache
def space(name: str) -> CallSpace:
    text, objects = CALLS[name]()
    call = tunable(text, objects, {})
    return space_of(call)


def result(found: CallSpace, text: str) -> np.ndarray[Any, Any]:
    settings = replace(found.space.settings, plan=text)
    prepared = prepare_computation(found.computation.with_options(settings))
    assert not text or program_text(prepared.plan.program) == text
    return to_dense(run(prepared.plan, start(prepared, settings, None)))


@pytest.mark.parametrize("name", CALLS)
def test_every_point_is_a_text_that_runs_by_itself(name: str) -> None:
    found, numbers = space(name), Random(3)
    wanted = result(found, "")
    points = [(), *found.space.neighbours(())]
    points += [found.space.random(numbers, 3) for _ in range(10)]
    run_ = 0
    for point in [(), *numbers.sample(points, 4)]:
        try:
            text = found.space.text(point)
            assert program_text(parse_program(text)) == text
            got = result(found, text)
        except ScheduleError:
            continue
        np.testing.assert_allclose(got, wanted, rtol=1e-12, err_msg=label_of(point))
        run_ += 1
    assert run_ > 1


@pytest.mark.parametrize("case", CASES[::3], ids=lambda case: case.name)
def test_auto_s_plan_is_made_again_from_its_text(case: Case) -> None:
    arrays = operands(case, "mixed")
    options = {name: operand_options(np.ndim(each), more=True) for name, each in arrays.items()}
    objects = {
        name: store(each, options[name][len(case.text) % len(options[name])])
        for name, each in arrays.items()
    }
    call = tunable(case.text, objects, {})
    text = program_text(prepare_computation(call).plan.program)
    again = prepare_computation(call.with_options(replace(call.options, plan=text)))
    assert program_text(again.plan.program) == text


def test_sums_of_floats_are_shared_alike_for_any_number_of_threads() -> None:
    names = [option.name for axis in space("spmv").space.axes(()) for option in axis.options]
    assert any("Ordered" in name for name in names)
    assert not any("Atomics" in name or "Temporary" in name for name in names)
    exact = [option.name for axis in space("integers").space.axes(()) for option in axis.options]
    assert any("Atomics" in name for name in exact)


def test_axes_of_another_program_are_those_of_its_kernels() -> None:
    text = "C[i,l] = A[i,j] * B[j,k] * E[k,l]"
    objects = {"A": A, "B": A.T.tocsr(), "E": RANDOM.random((60, 20))}
    call = tunable(text, objects, {})
    found = space_of(call).space
    assert any(axis.name.startswith("kernel T: ") for axis in found.axes(()))
    one = point_of({"plan: contraction": "one kernel"})
    assert not any(axis.name.startswith("kernel T: ") for axis in found.axes(one))
    both = point_of({**dict(one), "kernel T: share": "serial()"})
    assert found.normalize(both) == one
    assert all(point != one for point in found.neighbours(one))


def test_small_spaces_are_listed_whole() -> None:
    whole = space("sum").space
    found = replace(whole, planner=whole.planner[:2])
    every = list(found.every())
    assert len(every) == len(set(every)) == found.count()
    assert () in every
    assert found.count(5) == 5


# ---------------------------------------------------------------- plans from texts


def plan_text(name: str = "spmv") -> str:
    found = space(name)
    return found.space.text(())


def refused(text: str, objects: dict[str, Any], words: str) -> None:
    call = tunable("y[i] = A[i,j] * x[j]", objects, {})
    with pytest.raises(tp.ScheduleError, match=words):
        prepare_computation(call.with_options(replace(call.options, plan=text)))


def test_texts_that_are_no_plans_or_do_not_fit() -> None:
    usual = {"A": A, "x": np.ones(50)}
    refused("nonsense", usual, "the text of a plan")
    good = plan_text()
    refused(good.replace("return y", "return z"), usual, "the text of a plan")
    refused(good, {**usual, "A": A.tocsc()}, "for the operand A")
    refused(good, {**usual, "x": np.ones(50, np.float32)}, "for the operand x")
    refused(good.replace("by loops(i,j)", "by loops(i,j), make(tiles)"), usual, "kernel made by")
    refused(good.replace("by loops(i,j)", "by loops(i,j), make(other)"), usual, "kernels of")
    refused(good.replace("by loops(i,j)", "by loops(j,i), unroll(k,2)"), usual, "no loop over k")
    written = (
        "A: ds/float64/int32 of 1 by 1, 1 entries\ny[i] = A[i,i]    → d/float64 of 1, 1 entries"
    )
    refused(written + "\nreturn y", usual, "text of a plan|a plan with its kernels")


def test_sizes_that_are_compiled_in_go_where_they_differ() -> None:
    x, y = np.ones((500, 3)), np.ones((3, 300))
    text, objects = "C[i,k] = A[i,j] + B[j,k] * A[i,j]", {"A": x, "B": y}
    call = tunable(text, objects, {})
    plan = space_of(call).space.text(())
    assert "static" in plan
    other = {"A": np.ones((500, 4)), "B": np.ones((4, 300))}
    options = replace(call.options, plan=plan)
    prepared = prepare_computation(replace(call, objects=other, options=options))
    assert "static" not in program_text(prepared.plan.program)
    found = run(prepared.plan, start(prepared, call.options, None))
    np.testing.assert_allclose(to_dense(found), tp.evaluate(text, other))


def test_a_plan_over_tensors_of_other_names() -> None:
    program = parsed_plan(plan_text("spgemm"))
    other = renamed(program, {"A": "B", "B": "A", "C": "D"})
    assert other.results == ("D",)
    call = tunable("D[i,k] = B[i,j] * A[j,k]", {"B": A, "A": A.T.tocsr()}, {})
    found = space_of(call)
    np.testing.assert_allclose(result(found, program_text(other)), (A @ A.T).toarray())
    clash = renamed(parsed_plan(plan_text("mttkrp")), {"T": "M_1", "C": "C", "D": "D", "M": "M"})
    assert len(set(clash.facts)) == len(clash.facts)


def test_loops_that_make_a_result_out_of_order_are_refused() -> None:
    found = space("mttkrp")
    text = found.space.text(())
    loops = "loops(i,k,l,r), split(r,r0,r1,2), reorder(r0,i,k,l,r1)"
    with pytest.raises(tp.ScheduleError, match="in the order in which it is stored"):
        facts = {name: g.operand for name, g in found.prepared.operands.items()}
        from taco_py.planner.ir.goal import Request

        request = Request(found.prepared.plan.result)
        checked = found.prepared.checked
        call = CallStatements(
            checked.assignments, facts, checked.elaborated.types, (checked.target,)
        )
        plan_of_text(text.replace("loops(i,k,l,r)", loops), facts, request, call, False)


# ---------------------------------------------------------------- commands of planned kernels


def test_how_many_threads_run_a_kernel_is_part_of_its_text() -> None:
    found = space("spmv")
    text = found.space.text(()).replace("by loops(i,j)", "by loops(i,j), threads(2)")
    (kernel,) = parse_program(text).kernels
    assert kernel.schedule.threads == 2
    assert program_text(parse_program(text)) == text
    assert Recipe(kernel.problem, kernel.schedule) == Recipe(
        kernel.problem, kernel.schedule.of_code
    )
    np.testing.assert_allclose(result(found, text), A @ np.ones(50))
    assert edited(kernel, ()).schedule == kernel.schedule
    with pytest.raises(tp.ScheduleError, match="scheduling command"):
        tp.Schedule.parse("threads(2)")


def test_rows_and_depth_of_register_tiles_are_part_of_a_text() -> None:
    a, b = RANDOM.random((70, 90)), RANDOM.random((90, 50))
    call = tunable("C[i,j] = A[i,k] * B[k,j]", {"A": a, "B": b}, {"libraries": False})
    found = space_of(call)
    (name,) = [axis.name for axis in found.space.axes(()) if axis.name.endswith(": way")]
    told = set()
    for way in ("make(tiles,0,4)", "make(tiles,0,0,64)"):
        text = found.space.text(point_of({name: way}))
        assert way in text
        np.testing.assert_allclose(result(found, text), a @ b)
        (kernel,) = prepare_computation(
            call.with_options(replace(call.options, plan=text))
        ).plan.kernels
        told.add(compile_recipe(Recipe(kernel.problem, kernel.schedule)).report.tiles[0])
    assert len(told) == 2
    assert any("tiles of 4 rows" in line for line in told)
    assert any("depth 64" in line for line in told)


def test_routines_are_of_libraries_that_this_machine_has() -> None:
    text = "C[i,j] = A[i,k] * B[k,j]"
    a, b = RANDOM.random((2, 40, 40))

    def here() -> CallSpace:
        return space_of(tunable(text, {"A": a, "B": b}, {}))

    def ways(call: CallSpace) -> set[str]:
        return {option.name for axis in call.space.axes(()) for option in axis.options}

    plan = tp.compile(text, A=a, B=b).plan
    (kernel,) = plan.kernels
    called = replace(kernel, schedule=kernel.schedule.with_way(Make("library")))
    words = program_text(plan.program.with_kernel(called))
    with on_machine("no_blas"):
        assert "make(library)" not in ways(here())
        with pytest.raises(ScheduleError, match=r"Expected a library for float64 .* found none"):
            result(here(), words)
    if blas.available("float64", None):
        np.testing.assert_allclose(result(here(), words), a @ b)

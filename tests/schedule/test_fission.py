"""Loops taken apart and put together: the statements that this makes, results, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import taco_py as tp
from taco_py.compiler.concrete.printer import to_text
from taco_py.compiler.schedule.apply import apply_all
from taco_py.compiler.schedule.loop_state import Loops, textual_orders
from taco_py.compiler.schedule.schedule import Schedule
from taco_py.language.diagnostics.errors import ScheduleError
from taco_py.language.notation.parser import parse_assignment
from tests.interpreted import interpreted
from tests.problems import problem

RNG = np.random.default_rng(13)


def sparse(*shape: int) -> np.ndarray:
    return RNG.random(shape) * (RNG.random(shape) < 0.3)


ARRAYS = {
    "A": sparse(13, 11),
    "B": sparse(11, 17),
    "E": sparse(13, 11),
    "F": sparse(11, 17),
    "G": sparse(11, 13),
    "H": sparse(11, 13),
    "x": RNG.random(11),
    "z": RNG.random(11),
    "b": RNG.random(13),
}
SPARSE = "ABEFGH"
SPMV, TWO = "y[i]=A[i,j]*x[j]", "C[i,j]=A[i,k]*B[k,j]+E[i,k]*F[k,j]"
PRODUCT, COLUMNS = "C[i,j]=A[i,k]*B[k,j]", "y[i]=G[j,i]*x[j]+H[j,i]*z[j]"
RESIDUAL = "y[i]=b[i]-A[i,j]*x[j]"
WHOLE = "reorder(i,k,j), precompute(A(i,k)*B(k,j),{i,j},{iw,jw},w)"
SCHEDULES = (
    (TWO, "reorder(i,k,j), fission(i)"),
    (TWO, "reorder(i,k,j), fission(i), loopfuse(i)"),
    (TWO, "reorder(i,k,j), loopfuse(k), loopfuse(j)"),
    (PRODUCT, "reorder(i,k,j)"),
    (SPMV, "fission(i)"),
    (SPMV, "fission(i), loopfuse(i)"),
    (SPMV, "split(i,i0,i1,4), fission(i1)"),
    (RESIDUAL, "fission(i)"),
    (RESIDUAL, "fission(i), loopfuse(i)"),
    ("y[i]=A[i,j]*b[i]+E[i,j]*x[j]", "fission(i), fission(i)"),
    ("y[i]=A[i,j]*x[j]+E[i,j]*z[j]", "fission(i), fission(i), loopfuse(i)"),
    (COLUMNS, "reorder(j,i), loopfuse(j)"),
    (COLUMNS, "reorder(j,i), loopfuse(j), loopfuse(i)"),
    (COLUMNS, "reorder(j,i), loopfuse(j), fission(j)"),
    (COLUMNS, "split(j,j0,j1,4), reorder(j0,j1,i), loopfuse(j0), loopfuse(j1)"),
)


def used(text: str) -> list[str]:
    return [name for name in ARRAYS if f"{name}[" in text.partition("=")[2]]


@pytest.mark.parametrize("rows", ["dense", "sparse"])
@pytest.mark.parametrize(("text", "schedule"), SCHEDULES)
def test_results(text: str, schedule: str, rows: str) -> None:
    form = tp.CSR if rows == "dense" else tp.DCSR
    operands = {
        name: tp.tensor(ARRAYS[name], format=form if name in SPARSE else None)
        for name in used(text)
    }
    expected = tp.evaluate_dense(parse_assignment(text), {n: ARRAYS[n] for n in used(text)})
    for threads in (1, 2):
        found = tp.evaluate(
            text, schedule=schedule, format=tp.dense(expected.ndim), threads=threads, **operands
        )
        np.testing.assert_allclose(np.asarray(found), expected)


def test_threads_fill_a_dense_workspace_each_its_own_part() -> None:
    operands = {"A": tp.tensor(ARRAYS["A"], format=tp.CSR), "x": ARRAYS["x"]}
    for threads in (1, 2, 3):
        found = tp.evaluate(
            SPMV, schedule="fission(i), parallelize(i)", threads=threads, **operands
        )
        np.testing.assert_allclose(np.asarray(found), ARRAYS["A"] @ ARRAYS["x"])


@pytest.mark.parametrize("schedule", ["reorder(i,k,j), fission(i)", f"{WHOLE}, loopfuse(i)"])
def test_sparse_results(schedule: str) -> None:
    operands = {name: tp.tensor(ARRAYS[name], format=tp.CSR) for name in "AB"}
    form = tp.CSR if "fission" in schedule else tp.dense(2)
    found = tp.evaluate(PRODUCT, schedule=schedule, format=form, **operands)
    found = found.to_numpy() if isinstance(found, tp.Tensor) else np.asarray(found)
    np.testing.assert_allclose(found, ARRAYS["A"] @ ARRAYS["B"])


def scheduled(text: str, schedule: str, result: str) -> str:
    whole = problem(text, {name: "CSR" for name in used(text) if name in SPARSE}, result)
    loops = Loops(whole.assignment, textual_orders(whole.assignment))
    return to_text(apply_all(loops, Schedule.parse(schedule)).statement(whole))


STATEMENTS = (
    (
        SPMV,
        "d",
        "fission(i)",
        "forall i\n"
        "  y[i] = t[i]\n"
        "where t[i]: dense workspace of float64\n"
        "  forall i\n"
        "    forall j\n"
        "      t[i] += A[i,j] * x[j]",
    ),
    (
        PRODUCT,
        "dd",
        f"{WHOLE}, loopfuse(i)",
        "forall i\n"
        "  forall j\n"
        "    C[i,j] += w[j]\n"
        "  where w[j]: row workspace of float64\n"
        "    forall k\n"
        "      forall j\n"
        "        w[j] += A[i,k] * B[k,j]",
    ),
    (
        TWO,
        "dd",
        "reorder(i,k,j), fission(i)",
        "forall i\n"
        "  forall k\n"
        "    forall j\n"
        "      C[i,j] += A[i,k] * B[k,j]\n"
        "forall i\n"
        "  forall k\n"
        "    forall j\n"
        "      C[i,j] += E[i,k] * F[k,j]",
    ),
)


@pytest.mark.parametrize(("text", "result", "schedule", "statement"), STATEMENTS)
def test_statements(text: str, result: str, schedule: str, statement: str) -> None:
    assert scheduled(text, schedule, result) == statement


@pytest.mark.parametrize("text", [SPMV, RESIDUAL, TWO])
def test_loopfuse_takes_fission_back(text: str) -> None:
    before = "reorder(i,k,j), serial()" if text == TWO else "serial()"
    result = "dd" if text == TWO else "d"
    again = scheduled(text, f"{before}, fission(i), loopfuse(i)", result)
    assert again == scheduled(text, before, result)


LIST, TABLE = "precompute(A(i,k)*B(k,j),j,j)", "precompute(A(i,k)*B(k,j),{i,j},{i,j})"
VECTOR = "y[i]=A[i,j]*x[j]+1"
BESIDE_A_LIST = (
    (f"{PRODUCT}+D[i,j]", f"reorder(i,k,j), {LIST}, loopfuse(j)", "every coordinate of j together"),
    (f"{PRODUCT}+S[i,j]", f"reorder(i,k,j), {LIST}, loopfuse(j)", "S2 together with the entries"),
    (f"{PRODUCT}+S[i,j]", f"reorder(k,i,j), {TABLE}, loopfuse(i)", "every coordinate of i"),
    (f"{PRODUCT}+3", f"reorder(i,k,j), {LIST}, fission(i)", "would be sparse over i, j"),
    (f"{PRODUCT}+v[j]", f"reorder(i,k,j), {LIST}, fission(i)", "would be sparse over i, j"),
    (VECTOR, "precompute(A(i,j),j,j), fission(i)", "would be sparse over i, j"),
    (VECTOR, "reorder(j,i), precompute(A(i,j)*x(j),i,i), loopfuse(i)", "every coordinate of i"),
)


@pytest.mark.parametrize(("text", "schedule", "reason"), BESIDE_A_LIST)
def test_lists_and_tables_are_read_alone(text: str, schedule: str, reason: str) -> None:
    """Their entries are in no order that could be kept beside other coordinates."""
    form = tp.DCSR if text == VECTOR else tp.CSR
    given = {name: form for name in "ABS" if f"{name}[" in text}
    given |= {name: tp.dense(1 if name in "xv" else 2) for name in "xvD" if f"{name}[" in text}
    result = text[0]
    *before, last = Schedule.parse(schedule).commands
    made = tp.schedule(text, **given, **{result: tp.dense(1 if text == VECTOR else 2)})
    for command in before:
        made.apply(str(command))
    assert str(last) not in map(str, made.legal_moves())
    with pytest.raises(ScheduleError) as caught:
        made.apply(str(last))
    assert reason in caught.value.message
    assert caught.value.hint


ROWS = ((SPMV, "A(i,j)"), (SPMV, "A(i,j)*x(j)"), ("y[i]=A[i,j]*E[i,j]", "A(i,j)*E(i,j)"))


@pytest.mark.parametrize(("text", "part"), ROWS)
def test_entries_of_a_table_are_not_summed_one_by_one(text: str, part: str) -> None:
    schedule = f"precompute({part},j,j), fission(i)"
    with pytest.raises(ScheduleError, match="is met entry by entry, and t would sum one") as caught:
        scheduled(text, schedule, "d")
    assert caught.value.hint == "leave the loop over i around both whole"


def test_rows_that_a_table_comes_to_entry_by_entry_are_computed_again() -> None:
    given = {name: tp.tensor(ARRAYS[name], format=tp.CSR) for name in "AB"}
    schedule = "reorder(i,k,j), precompute(A(i,k)*B(k,j),j,j), fission(i)"
    kernel = tp.compile(PRODUCT, A=tp.CSR, B=tp.CSR, C=tp.CSR, schedule=schedule)
    pattern = kernel.assemble(**given)
    found = kernel.compute(pattern, **given)
    np.testing.assert_allclose(found.to_numpy(), ARRAYS["A"] @ ARRAYS["B"])
    other = {**given, "A": tp.tensor(ARRAYS["E"], format=tp.CSR)}
    with pytest.raises(tp.StructureError, match="Expected a pattern of"):
        kernel.compute(pattern, **other)


TEAMS = "fission(i), parallelize(i,CPUThread,NoRaces), precompute(2*A(i,j),j,v,w)"


def test_workspaces_of_loops_that_threads_share_are_allocated_there_alone() -> None:
    """The check of the loop IR refuses a name that a scope has already."""
    text = "y[i]=2*A[i,j]*x[j]+3*b[i]"
    kernel = tp.compile(text, A=tp.DCSR, x=tp.dense(1), b=tp.dense(1), schedule=TEAMS)
    assert all(interpreted(each.recipe).threaded for each in kernel.compiled)


REFUSED = (
    (
        "C[i,j]=A[i,j]*b[i]-E[i,j]",
        "ds",
        "precompute(E(i,j),{},{},w), fission(j)",
        "C would store every",
    ),
    (SPMV, "d", "fission(j)", "no loop over j is right around several statements"),
    (SPMV, "d", "loopfuse(i)", "no two loops over i follow each other"),
    (SPMV, "d", "fission(k)", "there is no loop over k"),
    (SPMV, "d", "fission(i), split(i,a,b,4)", "has taken the loops apart"),
    (PRODUCT, "ss", "reorder(i,k,j), fission(i)", "C stores each i once"),
)


@pytest.mark.parametrize(("text", "result", "schedule", "reason"), REFUSED)
def test_refusals(text: str, result: str, schedule: str, reason: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        scheduled(text, schedule, result)
    assert reason in caught.value.message
    assert caught.value.hint
